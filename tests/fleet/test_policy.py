"""Packs that a device's owner allows: from neighbours while no hub is heard, whatever a neighbour tries."""

from __future__ import annotations

import json
import shutil
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tuf.api.metadata import Timestamp

from fleet.middle import between
from fleet.running import diagnosis
from zodiacedge.fleet.agent.relay import Relay
from zodiacedge.fleet.trust.keys import key_in, make_keys
from zodiacedge.fleet.trust.metadata import LIFETIMES
from zodiacedge.fleet.trust.repository import Repository
from zodiacedge.packs.file import encoded
from zodiacedge.util.gzipped import gzipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.middle import Middle
    from fleet.running import Device, Farm

pytestmark = pytest.mark.slow
HOT = ("reading", "wt1", 95)


@pytest.fixture
def neighbour(farm: Farm, make_device: Callable[..., Device]) -> Iterator[str]:
    """The address of a device that has the second version, as a delta, and keeps it whole for others."""
    device = make_device("wt2")
    relay = Relay(device.kb, device.agent.folder / "relay", farm.base, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{relay.server_port}/"
    device.agent.serve(base)
    device.settle("on probation diagnosis 1")
    farm.publish(diagnosis(2))
    device.settle("on probation diagnosis 2")
    device.until(lambda: any(path.endswith(".2.zpack") for path in device.agent._handed))
    yield base
    relay.close()


@pytest.fixture
def alone(farm: Farm, make_device: Callable[..., Device]) -> Callable[..., Device]:
    """Return a maker of a device that heard the hub once and needed nothing then; the hub is away now."""

    def make(*neighbours: str, allow: tuple[str, ...] = ("diagnosis",)) -> Device:
        device = make_device("wt1", allow=allow)
        state(device, HOT, remove=True)
        device.until(lambda: device.agent._assigned == {})
        farm.stop()
        for number, base in enumerate(neighbours):
            state(device, ("urn:zodiac:neighbour", f"n{number}", base, "air"))
        state(device, HOT)
        return device

    return make


def state(device: Device, fact: tuple[object, ...], *, remove: bool = False) -> None:
    with device.kb.change() as change:
        (change.remove_facts if remove else change.add_facts)([fact])


def test_a_pack_that_is_allowed_comes_from_a_neighbour_and_goes(
    neighbour: str, alone: Callable[..., Device]
) -> None:
    device = alone(neighbour)
    device.settle("on probation diagnosis 2")
    assert device.kb.matching("?- hot(T) .")
    device.restart(probation=0.0)
    device.settle("active diagnosis 2")
    state(device, HOT, remove=True)
    device.settle("removed diagnosis")
    assert device.packs() == []
    assert device.agent.memory.own == {}


def test_a_pack_that_was_installed_by_hand_stays_although_it_was_to_be_brought(
    farm: Farm, alone: Callable[..., Device]
) -> None:
    device = alone()
    # So it is when an agent is killed before the pack arrives.
    device.agent.memory.own["diagnosis"] = 1
    device.kb.install(farm.repository.pack("diagnosis", 1))
    state(device, HOT, remove=True)
    device.until(lambda: device.agent.memory.own == {})
    assert device.packs()


def test_a_pack_that_is_not_allowed_does_not_come(neighbour: str, alone: Callable[..., Device]) -> None:
    device = alone(neighbour, allow=("other",))
    device.settle("F003")
    for _ in range(5):
        device.agent._next_try = 0.0
        device.agent.step()
    assert device.packs() == []


def test_while_the_hub_is_heard_it_alone_decides(
    farm: Farm, neighbour: str, make_device: Callable[..., Device]
) -> None:
    # It allows the pack to other devices only.
    device = make_device("wt9", allow=("diagnosis",))
    state(device, ("urn:zodiac:neighbour", "n", neighbour, "air"))
    device.until(lambda: farm.facts('?- requested("wt9", P) .'))
    for _ in range(5):
        device.agent._next_try = 0.0
        device.agent.step()
    assert device.packs() == []
    assert device.agent._policy.lacking(set()) == ["diagnosis"]


def test_a_hub_that_is_back_decides_about_what_it_assigns(
    farm: Farm, neighbour: str, alone: Callable[..., Device]
) -> None:
    device = alone(neighbour)
    device.settle("on probation diagnosis 2")
    farm.say('paused("diagnosis", 2) .', "pause")
    farm.start()
    device.settle("on probation diagnosis 1")
    assert device.agent.memory.own == {}


def test_a_hub_that_is_back_and_says_nothing_of_it_changes_nothing(
    farm: Farm, neighbour: str, alone: Callable[..., Device]
) -> None:
    device = alone(neighbour)
    device.settle("on probation diagnosis 2")
    farm.say("", "operator")
    farm.start()
    device.until(lambda: farm.facts('?- running("wt1", P, V, D) .') and not device.agent.memory.stale)
    device.agent.step()
    assert device.packs() == ["diagnosis 2"]
    assert farm.facts('?- assigned("wt1", P, V) .') == set()
    # What the owner allows no more goes.
    device.allow = ()
    device.restart()
    device.settle("removed diagnosis")


def copied(farm: Farm, folder: Path) -> Path:
    """Copy what the hub serves, as an attacker has it."""
    shutil.copytree(farm.repository.path, folder)
    return folder


def other_contents(farm: Farm, folder: Path, middle: Middle) -> None:
    """Hand on another pack under the name of the published one."""
    copied(farm, folder)
    for blob in (folder / "targets").rglob("*.zpack"):
        blob.write_bytes(gzipped(encoded(diagnosis(2, 1))))
    middle.folder = folder


def other_keys(farm: Farm, folder: Path, middle: Middle) -> None:
    """Publish with other keys."""
    make_keys(folder / "keys")
    other = Repository(folder / "repository")
    other.create(folder / "keys")
    for number in (1, 2, 3):
        other.publish(diagnosis(number, 1), folder / "keys")
    middle.folder = other.path
    assert farm.repository.root() != other.root()


def stolen_online_key(farm: Farm, folder: Path, middle: Middle) -> None:
    """Publish with the key of the hub, which may sign timestamps and assignments and no packs."""
    copied(farm, folder / "repository")
    make_keys(folder / "keys")
    shutil.copy(farm.keys / "online.pem", folder / "keys" / "online.pem")
    Repository(folder / "repository").publish(diagnosis(3, 1), folder / "keys")
    middle.folder = folder / "repository"


def frozen(farm: Farm, folder: Path, middle: Middle) -> None:
    """Hand on metadata that has expired."""
    before = dict(LIFETIMES)
    LIFETIMES[Timestamp.type] = timedelta(seconds=-1)
    try:
        copied(farm, folder)
        Repository(folder).renew(key_in(farm.keys, "online"))
    finally:
        LIFETIMES.update(before)
    middle.folder = folder


def nonsense(_farm: Farm, folder: Path, middle: Middle) -> None:
    """Answer with what is no metadata."""
    middle.folder = folder
    middle.instead["metadata/timestamp.json"] = json.dumps({"signed": {}}).encode()


@pytest.mark.parametrize("attack", [other_contents, other_keys, frozen, nonsense])
def test_a_neighbour_that_attacks_gets_nothing_in_and_the_next_is_asked(
    farm: Farm,
    neighbour: str,
    alone: Callable[..., Device],
    tmp_path: Path,
    attack: Callable[[Farm, Path, Middle], None],
) -> None:
    with between(tmp_path / "nothing") as middle:
        attack(farm, tmp_path / "evil", middle)
        device = alone(middle.base)
        device.settle("F002" if attack is frozen else "F001")
        assert device.packs() == []
        assert any("timestamp" in path for path in middle.asked)
        state(device, ("urn:zodiac:neighbour", "second", neighbour, "air"))
        device.settle("on probation diagnosis 2")
        device.agent.neighbours.close()


def test_a_neighbour_with_the_key_of_the_hub_publishes_nothing(
    farm: Farm, alone: Callable[..., Device], tmp_path: Path
) -> None:
    with between(tmp_path / "nothing") as middle:
        stolen_online_key(farm, tmp_path / "evil", middle)
        device = alone(middle.base)
        device.settle("F001: packs/diagnosis/1.zpack is refused: pack-diagnosis was signed by 0/1 keys")
        assert device.packs() == []
        device.agent.neighbours.close()


def test_a_neighbour_does_not_roll_back_what_was_seen(
    farm: Farm, alone: Callable[..., Device], tmp_path: Path
) -> None:
    old = copied(farm, tmp_path / "old")
    farm.publish(diagnosis(2))
    farm.publish(diagnosis(3))
    with between(old) as middle:
        device = alone(middle.base)
        device.settle("F001")
        assert device.packs() == []
        device.agent.neighbours.close()


def test_a_version_that_failed_is_not_brought_again(
    farm: Farm, alone: Callable[..., Device], tmp_path: Path
) -> None:
    farm.publish(diagnosis(2, 50, '[[checks]]\nnone = "?- hot(T), reading(T, 95) ."'))
    with between(copied(farm, tmp_path / "copy")) as middle:
        device = alone(middle.base)
        device.settle("refused diagnosis 2")
        for _ in range(3):
            device.agent._next_try = 0.0
            device.agent.step()
            time.sleep(0.05)
        assert device.packs() == []
        assert len([text for text in device.told if text.startswith("staged")]) == 1
        device.agent.neighbours.close()
