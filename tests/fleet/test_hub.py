"""The hub: rollouts by rules, status that nobody forges or repeats, an operator's files, ranges."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
import time
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
import urllib3

from fleet.running import diagnosis, until
from packs.making import refused
from zodiacedge.fleet.agent.link import HubLink
from zodiacedge.fleet.identity import DeviceKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from securesystemslib.signer import CryptoSigner

    from fleet.running import Device, Farm

pytestmark = pytest.mark.slow


@pytest.fixture
def pool() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(retries=False) as pool:
        yield pool


def send(farm: Farm, pool: urllib3.PoolManager, key: DeviceKey, **document: object) -> int:
    """Send a status, and return the HTTP status of the answer."""
    body = json.dumps({"device": "wt1", "packs": {}, "needs": [], **document}).encode()
    return post(farm, pool, body, key.sign(body))


def post(farm: Farm, pool: urllib3.PoolManager, body: bytes, signature: str) -> int:
    headers = {"Zodiac-Signature": signature}
    return pool.request("POST", f"{farm.base}status", body=body, headers=headers).status


def test_a_status_is_signed_and_taken_once(
    farm: Farm, make_device: Callable[..., Device], pool: urllib3.PoolManager, tmp_path: Path
) -> None:
    device = make_device()
    device.close()
    key = DeviceKey(device.folder / "device.key")
    body = json.dumps({"device": "wt1", "sequence": 5, "packs": {}, "needs": ["diagnosis"]}).encode()
    assert post(farm, pool, body, key.sign(body)) == 200
    assert farm.facts("?- requested(D, P) .") == {'requested("wt1", "diagnosis")'}
    assert send(farm, pool, key, sequence=6) == 200
    # Somebody in between repeats what was true once, or changes it, or signs it with another key.
    assert post(farm, pool, body, key.sign(body)) == 403
    assert post(farm, pool, body.replace(b"5", b"7"), key.sign(body)) == 403
    assert send(farm, pool, DeviceKey(tmp_path / "evil.key"), sequence=8) == 403
    assert post(farm, pool, body, "no signature") == 403
    assert send(farm, pool, key, sequence=9, device="nobody") == 403
    assert farm.facts("?- requested(D, P) .") == set()
    farm.stop()
    farm.start()
    assert post(farm, pool, body, key.sign(body)) == 403
    assert send(farm, pool, key, sequence=7) == 200
    device.restart()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 50_000,
        b'{"device": "../x", "sequence": 1}',
        b'{"device": 1}',
        b"null",
    ],
)
def test_a_request_that_makes_no_sense_is_refused(farm: Farm, pool: urllib3.PoolManager, body: bytes) -> None:
    assert post(farm, pool, body, "") == 400
    assert pool.request("POST", f"{farm.base}enrol", body=body).status == 400
    assert pool.request("GET", f"{farm.base}healthz").data == b"ok\n"


def test_a_proof_and_a_state_that_are_no_text_of_this_world_are_refused(
    farm: Farm, make_device: Callable[..., Device], pool: urllib3.PoolManager
) -> None:
    device = make_device()
    device.close()
    assert farm.hub
    farm.hub.state.codes.make("wt5", [], farm.repository.root())
    for text in ("é", "\ud800"):
        body = json.dumps({"name": "wt5", "key": "0" * 64, "proof": text}).encode()
        assert pool.request("POST", f"{farm.base}enrol", body=body).status == 403
    key = DeviceKey(device.folder / "device.key")
    packs = {"diagnosis": {"version": 1, "state": "\ud800"}}
    assert send(farm, pool, key, sequence=50, packs=packs) == 400
    assert send(farm, pool, key, sequence=51) == 200
    device.restart()


def test_a_full_disk_of_the_hub_is_no_refusal(
    farm: Farm,
    make_device: Callable[..., Device],
    pool: urllib3.PoolManager,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = make_device()
    device.close()
    assert farm.hub

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    key = DeviceKey(device.folder / "device.key")
    with monkeypatch.context() as disk:
        disk.setattr(farm.hub.state, "report", full)
        assert send(farm, pool, key, sequence=50) == 503
    assert send(farm, pool, key, sequence=50) == 200
    device.restart()


def test_keys_are_rotated_while_the_hub_runs(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    farm.repository.rotate(farm.keys, "online")
    farm.publish(diagnosis(2))
    device.settle("on probation diagnosis 2")
    assert not [text for text in device.told if text.startswith("F0")]
    assert farm.problems == []


def test_a_hub_with_a_key_that_is_trusted_no_more_says_so_and_signs_nothing(
    farm: Farm, make_device: Callable[..., Device], tmp_path: Path
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    keys = shutil.copytree(farm.keys, tmp_path / "offline")
    farm.repository.rotate(keys, "online")
    farm.repository.publish(diagnosis(2), keys)
    timestamp = (farm.repository.path / "metadata/timestamp.json").read_bytes()
    assert farm.hub
    farm.hub._watch.look()
    assert {problem.diagnostics[0].code for problem in farm.problems} == {"F005"}
    assert (farm.repository.path / "metadata/timestamp.json").read_bytes() == timestamp
    shutil.copy(keys / "online.pem", farm.keys / "online.pem")
    device.settle("on probation diagnosis 2")


def test_what_is_too_large_is_refused(farm: Farm, pool: urllib3.PoolManager) -> None:
    assert pool.request("POST", f"{farm.base}enrol", body=b" " * (2 << 20)).status == 413


def test_nothing_but_the_repository_is_served(farm: Farm, pool: urllib3.PoolManager) -> None:
    for path in ("metadata/../../store/_zodiac.json", "targets/%2e%2e/%2e%2e/rules/assign.rules", "codes/"):
        assert pool.request("GET", farm.base + path).status == 404


def test_blobs_have_ranges(farm: Farm, pool: urllib3.PoolManager) -> None:
    (blob,) = (farm.repository.path / "targets").rglob("*.zpack")
    url = farm.base + blob.relative_to(farm.repository.path).as_posix()
    part = pool.request("GET", url, headers={"Range": "bytes=10-19"})
    assert (part.status, part.data) == (206, blob.read_bytes()[10:20])
    several = pool.request("GET", url, headers={"Range": "bytes=0-1,4-5"})
    assert (several.status, blob.read_bytes()[4:6] in several.data) == (206, True)
    other = pool.request("GET", url, headers={"Range": "bytes=0-1", "If-Range": '"another"'})
    assert (other.status, other.data) == (200, blob.read_bytes())


@pytest.mark.parametrize("path", ["targets/packs", f"targets/{'x' * 300}", "metadata/nothing.json"])
def test_what_is_no_file_is_not_found(farm: Farm, pool: urllib3.PoolManager, path: str) -> None:
    assert pool.request("GET", farm.base + path).status == 404


def test_metadata_is_compressed_for_those_who_take_it(farm: Farm, pool: urllib3.PoolManager) -> None:
    whole = (farm.repository.path / "metadata/timestamp.json").read_bytes()
    url = f"{farm.base}metadata/timestamp.json"
    packed = pool.request("GET", url, headers={"Accept-Encoding": "gzip"}, decode_content=False)
    assert gzip.decompress(packed.data) == whole
    assert len(packed.data) < len(whole)
    assert pool.request("GET", url).data == whole
    # Who goes on with a part counts bytes of the file.
    rest = pool.request("GET", url, headers={"Accept-Encoding": "gzip", "Range": "bytes=5-"})
    assert (rest.status, rest.data) == (206, whole[5:])


def test_a_version_is_assigned_when_devices_see_it(
    farm: Farm, pool: urllib3.PoolManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub that looks while a publication goes on assigns what the snapshot lists, then or before."""
    farm.say('wanted("wt1", "diagnosis") .', "more")
    assert farm.hub
    code = farm.hub.state.codes.make("wt1", [], farm.repository.root())
    link = HubLink(farm.base, DeviceKey(farm.folder / "device.key"))
    link.enrol("wt1", code, farm.folder / "root.json")
    link.close()
    goes_on, half = threading.Event(), threading.Event()
    renew = farm.repository._renew

    def slowly(*args: CryptoSigner) -> None:
        half.set()
        assert goes_on.wait(60)
        renew(*args)

    monkeypatch.setattr(farm.repository, "_renew", slowly)
    publishes = threading.Thread(target=farm.repository.publish, args=(diagnosis(2), farm.keys))
    publishes.start()
    assert half.wait(60)
    time.sleep(1)
    assert b"diagnosis/1.zpack" in pool.request("GET", f"{farm.base}metadata/devices/wt1.json").data
    goes_on.set()
    publishes.join()
    until(lambda: b"diagnosis/2.zpack" in pool.request("GET", f"{farm.base}metadata/devices/wt1.json").data)


def test_a_connection_that_outlasts_a_hub_is_broken_off(farm: Farm) -> None:
    """It is one that does not end when the server asks it to."""
    stays = Mock()
    assert farm._server
    farm._server.server_state.connections.add(stays)
    farm.stop()
    stays.transport.abort.assert_called_once_with()


def test_metrics_count(farm: Farm, make_device: Callable[..., Device], pool: urllib3.PoolManager) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    lines = pool.request("GET", f"{farm.base}metrics").data.decode().splitlines()
    assert "zodiac_hub_enrolled_total 1" in lines
    assert 'zodiac_hub_facts{predicate="assigned"} 1' in lines


def test_canaries_go_first_and_failures_halt(farm: Farm, make_device: Callable[..., Device]) -> None:
    farm.say('wanted(D, "diagnosis") :- group(D, "north") .  canary("wt1") .', "rollout")
    canary, other = make_device("wt1"), make_device("wt2")
    canary.settle("on probation diagnosis 1")
    other.agent.step()
    assert farm.facts("?- assigned(D, P, V) .") == {'assigned("wt1", "diagnosis", 1)'}
    canary.restart(probation=0.0)
    canary.settle("active diagnosis 1")
    canary.until(lambda: len(farm.facts("?- assigned(D, P, V) .")) == 2)
    other.settle("on probation diagnosis 1")
    farm.publish(diagnosis(2, 50, '[[checks]]\nnone = "?- hot(T), reading(T, 95) ."'))
    canary.settle("refused diagnosis 2")
    canary.until(lambda: farm.facts("?- halted(P, V) ."))
    assert farm.facts("?- assigned(D, P, V) .") == {
        'assigned("wt1", "diagnosis", 1)',
        'assigned("wt2", "diagnosis", 1)',
    }
    assert (canary.packs(), other.packs()) == (["diagnosis 1"], ["diagnosis 1"])
    assert farm.hub
    assert "stop" in str(farm.hub.state.kb.explain('halted("diagnosis", 2)'))


def test_an_operator_changes_rules_while_the_hub_runs(farm: Farm) -> None:
    farm.say('paused("diagnosis", 1) .', "pause")
    assert farm.facts("?- halted(P, V) .") == {'halted("diagnosis", 1)'}
    farm.say("paused(", "pause")
    assert [problem.diagnostics[0].code for problem in farm.problems] == ["L001"]
    assert farm.facts("?- halted(P, V) .") == {'halted("diagnosis", 1)'}
    (farm.folder / "hub" / "rules" / "pause.rules").unlink()
    assert farm.hub
    farm.hub._watch.look()
    assert farm.facts("?- halted(P, V) .") == set()


def test_who_looks_waits_for_what_the_watch_is_taking(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    assert farm.hub
    begun, goes_on = threading.Event(), threading.Event()
    take = farm.hub.state.take_rules

    def slowly() -> bool:
        begun.set()
        assert goes_on.wait(60)
        return take()

    monkeypatch.setattr(farm.hub.state, "take_rules", slowly)
    (farm.folder / "hub" / "rules" / "pause.rules").write_text('paused("diagnosis", 1) .', "utf-8")
    assert begun.wait(60)
    threading.Timer(0.2, goes_on.set).start()
    farm.hub._watch.look()
    assert farm.facts("?- halted(P, V) .") == {'halted("diagnosis", 1)'}


def test_the_watch_goes_on_after_a_disk_that_was_full(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    assert farm.hub
    hub, tried = farm.hub.state, threading.Event()
    take = hub.take_rules

    def full() -> bool:
        monkeypatch.setattr(hub, "take_rules", take)
        tried.set()
        raise OSError("No space left on device")

    monkeypatch.setattr(hub, "take_rules", full)
    (farm.folder / "hub" / "rules" / "pause.rules").write_text('paused("diagnosis", 1) .', "utf-8")
    assert tried.wait(60)
    until(lambda: farm.facts("?- halted(P, V) ."))
    assert [problem.diagnostics[0].message for problem in farm.problems] == [
        "the folder of the hub: cannot be used: No space left on device"
    ]


def test_names_that_nobody_waits_for_any_more_are_forgotten(farm: Farm, pool: urllib3.PoolManager) -> None:
    assert pool.request("GET", f"{farm.base}news/nobody?after=-1").json() == {"version": 0}
    assert farm.hub
    assert not farm.hub._news
    assert b"zodiac_hub_waiting 0" in pool.request("GET", f"{farm.base}metrics").data


def test_an_enrolment_whose_answer_was_lost_is_repeated(
    farm: Farm, pool: urllib3.PoolManager, tmp_path: Path
) -> None:
    assert farm.hub
    code = farm.hub.state.codes.make("wt1", ["north"], farm.repository.root())
    key, root = DeviceKey(tmp_path / "device.key"), tmp_path / "root.json"
    link, thief = HubLink(farm.base, key), HubLink(farm.base, DeviceKey(tmp_path / "thief.key"))
    link.enrol("wt1", code, root)
    assert send(farm, pool, key, sequence=5) == 200
    link.enrol("wt1", code, root)
    # Whoever overheard it repeats neither a status nor, with another key, the enrolment.
    assert send(farm, pool, key, sequence=5) == 403
    with refused("F008"):
        thief.enrol("wt1", code, root)
    assert send(farm, pool, key, sequence=6) == 200
    assert farm.facts('?- group("wt1", G) .') == {'group("wt1", "north")'}
    link.close()
    thief.close()


def test_a_device_that_lost_its_numbers_enrols_again_with_a_new_code(
    farm: Farm, pool: urllib3.PoolManager, tmp_path: Path
) -> None:
    assert farm.hub
    key, root = DeviceKey(tmp_path / "device.key"), tmp_path / "root.json"
    link = HubLink(farm.base, key)
    for group in ("north", "south"):
        link.enrol("wt1", farm.hub.state.codes.make("wt1", [group], farm.repository.root()), root)
        assert send(farm, pool, key, sequence=1) == 200
    assert farm.facts('?- group("wt1", "south"), group("wt1", G) .') >= {'group("wt1", "south")'}
    link.close()


def test_a_hub_that_was_killed_while_a_device_enrolled_enrols_it_again(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert farm.hub
    code = farm.hub.state.codes.make("wt1", [], farm.repository.root())
    link = HubLink(farm.base, DeviceKey(tmp_path / "device.key"))
    with monkeypatch.context() as killed:
        killed.setattr(farm.hub.state.kb, "change", None)
        with refused("F003"):
            link.enrol("wt1", code, tmp_path / "root.json")
    link.enrol("wt1", code, tmp_path / "root.json")
    assert farm.facts("?- device(D) .") == {'device("wt1")'}
    link.close()


def test_a_status_tells_digests(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    digest = diagnosis(1).manifest.digest
    device.until(lambda: farm.facts("?- running(D, P, V, X) ."))
    assert farm.facts("?- running(D, P, V, X) .") == {f'running("wt1", "diagnosis", 1, "{digest}")'}


def test_another_program_may_decide(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device("wt7")
    (farm.folder / "hub" / "rules" / "operator.rules").unlink()
    farm.say('all: assigned(D, "diagnosis", 1) :- device(D) .', "assign")
    device.settle("on probation diagnosis 1")


def test_two_devices_of_one_name_are_told_apart(
    farm: Farm, make_device: Callable[..., Device], pool: urllib3.PoolManager, tmp_path: Path
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    # The second enrols with a new code: then the first is no longer believed.
    assert farm.hub
    code = farm.hub.state.codes.make("wt1", [], farm.repository.root())
    link = HubLink(farm.base, DeviceKey(tmp_path / "second.key"))
    link.enrol("wt1", code, tmp_path / "second-root.json")
    link.close()
    assert send(farm, pool, DeviceKey(device.folder / "device.key"), sequence=99) == 403
    assert send(farm, pool, DeviceKey(tmp_path / "second.key"), sequence=1) == 200
