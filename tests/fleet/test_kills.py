"""kill -9 of an agent at every step of an activation: nothing is half in force, and it goes on from there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from fleet.running import diagnosis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.running import Device, Farm

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("killed_agent.py")
KILLS = int(os.environ.get("ZODIAC_EXAMPLES", "200"))
SEED = int(os.environ.get("ZODIAC_SEED", "0"))


class Runner:
    """Runs agents that are killed."""

    def __init__(self, process: subprocess.Popen[str], farm: Farm) -> None:
        self._process, self._farm = process, farm

    def run(self, at: int, version: int, room: int = 0) -> str:
        """Run an agent that is killed at an event or ends at a version; return what became of it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        stdin.write(f"{self._farm.folder} {self._farm.base} {at} {version} {room}\n")
        stdin.flush()
        return stdout.readline()


@pytest.fixture
def runner(farm: Farm) -> Iterator[Runner]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        yield Runner(process, farm)
        assert process.stdin
        process.stdin.close()
        process.wait(20)


def state(farm: Farm) -> tuple[list[str], set[str]]:
    """Return the packs in force, and the rules with the facts that they must have derived."""
    with ze.open(farm.folder / "wt1.zodiac") as kb:
        assert kb.verify("reference").ok
        return [str(manifest) for manifest in kb.packs()], {rule.label for rule in kb.rules}


def killed_everywhere(farm: Farm, device: Device, runner: Runner, points: list[int]) -> None:
    """Let an upgrade be killed at points, in turn; each version ends in force."""
    device.settle("on probation diagnosis 1")
    device.close()
    known = 1
    for number, point in enumerate(points, 2):
        farm.publish(diagnosis(number, 50 + number))
        first = runner.run(point, number)
        packs, labels = state(farm)
        assert packs in ([f"diagnosis {known}"], [f"diagnosis {number}"]), first
        assert labels == {"need", "diagnosis/r1"}
        # It is killed at the same point again, and then left alone.
        runner.run(point, number)
        last = runner.run(0, number)
        assert f"{{'diagnosis': {number}}}" in last, (point, first, last)
        assert state(farm)[0] == [f"diagnosis {number}"]
        known = number
    device.restart()


def test_ten_kills_leave_a_version_and_the_agent_goes_on(
    farm: Farm, make_device: Callable[..., Device], runner: Runner
) -> None:
    killed_everywhere(farm, make_device(), runner, [3, 6, 9, 11, 13, 15, 17, 18, 20, 22])


def test_a_disk_that_is_full_while_staging_changes_nothing(
    farm: Farm, make_device: Callable[..., Device], runner: Runner
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    device.close()
    farm.publish(diagnosis(2, 50))
    told = runner.run(0, 2, room=300)
    assert "File too large" in told or "D007" in told, told
    assert state(farm)[0] == ["diagnosis 1"]
    assert "{'diagnosis': 2}" in runner.run(0, 2)
    assert state(farm)[0] == ["diagnosis 2"]
    device.restart()


@pytest.mark.soak
def test_two_hundred_kills_leave_a_version_and_the_agent_goes_on(
    farm: Farm, make_device: Callable[..., Device], runner: Runner
) -> None:
    dice = Random(SEED)
    killed_everywhere(farm, make_device(), runner, [dice.randint(1, 30) for _ in range(min(KILLS, 200))])
