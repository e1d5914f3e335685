"""The attacks that The Update Framework lists, each mounted by a server between a device and its hub."""

from __future__ import annotations

import json
import shutil
import time
import tracemalloc
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tuf.api.metadata import MetaFile, Snapshot, TargetFile, Targets, Timestamp

from fleet.middle import version
from packs.making import refused
from zodiacedge.fleet.trust.keys import key_in, make_keys
from zodiacedge.fleet.trust.metadata import LIFETIMES, signed_bytes
from zodiacedge.fleet.trust.repository import Repository
from zodiacedge.packs.delta import PackDelta
from zodiacedge.packs.file import encoded
from zodiacedge.util.gzipped import gzipped

if TYPE_CHECKING:
    from pathlib import Path

    from securesystemslib.signer import CryptoSigner

    from fleet.middle import Handler, World

DAY = timedelta(days=1)
ASSIGNMENT = "metadata/devices/wt1.json"


def online(world: World) -> CryptoSigner:
    """Return the stolen online key."""
    return key_in(world.keys, "online")


def test_without_an_attack_the_device_takes_what_is_assigned(world: World) -> None:
    assert world.take() == "diagnosis 2"
    client = world.client()
    client.refresh()
    delta = client.fetch("diagnosis", 2, (1, version(1).manifest.digest))
    assert isinstance(delta, PackDelta)
    assert client.newest("diagnosis") == 2
    assert client.newest("other") is None


def test_a_publication_that_was_killed_before_its_timestamp_is_shown_by_the_next_renewal(
    world: World,
) -> None:
    file = world.folder / "repository/metadata/timestamp.json"
    before = file.read_bytes()
    world.publish(3)
    file.write_bytes(before)
    assert 3 not in world.repository.published()["diagnosis"]
    assert world.repository.renew(online(world), only_if_needed=True)
    assert 3 in world.repository.published()["diagnosis"]
    assert not world.repository.renew(online(world), only_if_needed=True)


def test_arbitrary_rules_in_a_blob_are_refused(world: World) -> None:
    (name,) = (p.name for p in (world.folder / "repository/targets/packs/diagnosis").glob("*.2.zpack"))
    genuine = world.bytes_of(f"targets/packs/diagnosis/{name}")
    # Another pack of the same name and version, which as a blob has as many bytes.
    others = (gzipped(encoded(version(2, limit))) for limit in range(3, 10_000))
    evil = next(other for other in others if len(other) == len(genuine))
    world.middle.instead[f"targets/packs/diagnosis/{name}"] = evil
    with refused("F001"):
        world.take()
    # When the attacker is gone, nothing of theirs is left.
    world.middle.instead.clear()
    assert world.take() == "diagnosis 2"


def test_arbitrary_rules_signed_by_other_keys_are_refused(world: World, tmp_path: Path) -> None:
    make_keys(tmp_path / "evil-keys")
    evil = Repository(tmp_path / "evil")
    evil.create(tmp_path / "evil-keys")
    evil.publish(version(3, 99), tmp_path / "evil-keys")
    evil.assign("wt1", {"diagnosis": 3}, key_in(tmp_path / "evil-keys", "online"))
    world.middle.folder = evil.path
    with refused("F001"):
        world.take()


@pytest.mark.parametrize("seen", ["metadata/timestamp.json", ASSIGNMENT])
def test_a_rollback_to_what_was_signed_before_is_refused(world: World, seen: str) -> None:
    old = world.bytes_of(seen)
    world.publish(3)
    world.assign(3)
    assert world.take() == "diagnosis 3"
    world.middle.instead[seen] = old
    with refused("F001"):
        world.take()


def test_a_frozen_repository_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.take() == "diagnosis 2"
    monkeypatch.setitem(LIFETIMES, Timestamp.type, timedelta(seconds=1))
    world.repository.renew(online(world))
    frozen = world.bytes_of("metadata/timestamp.json")
    monkeypatch.undo()
    world.publish(3)
    world.middle.instead["metadata/timestamp.json"] = frozen
    time.sleep(1.5)
    with refused("F002"):
        world.take()


def test_a_frozen_assignment_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.take() == "diagnosis 2"
    monkeypatch.setitem(LIFETIMES, "assignment", timedelta(seconds=1))
    world.assign(1)
    time.sleep(1.5)
    with refused("F002"):
        world.take()


def test_metadata_of_different_times_does_not_mix(world: World) -> None:
    old = world.bytes_of("metadata/2.pack-diagnosis.json")
    world.publish(3)
    world.middle.instead["metadata/3.pack-diagnosis.json"] = old
    with refused("F001"):
        world.take()


def endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.send(b" " * (1 << 16))
    except OSError:
        return


def dripping(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.send(b" ")
            time.sleep(0.05)
    except OSError:
        return


def test_endless_data_ends(world: World) -> None:
    for name in ("metadata/timestamp.json", ASSIGNMENT):
        world.middle.instead = {name: endless}
        world.middle.sent = 0
        with refused("F001"):
            world.take()
        # What is in flight counts too.
        assert world.middle.sent < 32 << 20


def test_a_blob_without_an_end_ends(world: World) -> None:
    (name,) = (p.name for p in (world.folder / "repository/targets/packs/diagnosis").glob("*.2.zpack"))
    world.middle.instead[f"targets/packs/diagnosis/{name}"] = endless
    with refused("F001"):
        world.take()
    world.middle.instead.clear()
    assert world.take() == "diagnosis 2"


@pytest.mark.parametrize("name", ["metadata/timestamp.json", "metadata/1.snapshot.json", ASSIGNMENT])
def test_what_is_small_and_expands_without_an_end_ends(world: World, name: str) -> None:
    bomb = gzipped(b" " * (512 << 20))

    def expanding(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(bomb)))
        handler.end_headers()
        handler.send(bomb)

    newest = f"metadata/{world.repository.metadata.version('snapshot')}.snapshot.json"
    world.middle.instead[newest if "snapshot" in name else name] = expanding
    tracemalloc.start()
    with refused("F001"):
        world.take()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The server of the test holds half a MiB of it.
    assert most < 16 << 20
    world.middle.instead.clear()
    assert world.take() == "diagnosis 2"


@pytest.mark.parametrize("body", [b"no gzip", gzipped(b"{}")[:-3], gzipped(b"{}") + b"more", b""])
def test_what_says_it_is_compressed_and_is_not_is_refused(world: World, body: bytes) -> None:
    def wrong(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.send(body)

    world.middle.instead["metadata/timestamp.json"] = wrong
    with refused("F003"):
        world.take()


def test_a_drip_ends(world: World) -> None:
    world.middle.instead["metadata/timestamp.json"] = dripping
    client = world.client(seconds=0.5)
    with refused("F003"):
        client.refresh()


def test_the_assignment_of_another_device_is_refused(world: World) -> None:
    world.assign(1, "wt2")
    world.middle.instead[ASSIGNMENT] = world.bytes_of("metadata/devices/wt2.json")
    with refused("F001") as messages:
        world.take()
    assert "that of the device wt2" in messages[0]


def assignment(world: World, path: str, target: TargetFile, number: int = 9) -> bytes:
    """Return an assignment that the stolen online key signed."""
    signed = Targets(version=number, targets={path: target}, unrecognized_fields={"device": "wt1"})
    return signed_bytes(signed, [online(world)], DAY)


def test_the_stolen_online_key_assigns_no_pack_that_is_not_published(world: World) -> None:
    evil = encoded(version(3, 99))
    path = "packs/diagnosis/3.zpack"
    world.middle.instead[ASSIGNMENT] = assignment(world, path, TargetFile.from_data(path, evil, ["sha256"]))
    with refused("F004") as messages:
        world.take()
    assert "assigned and not published" in messages[0]
    path = "packs/diagnosis/2.zpack"
    world.middle.instead[ASSIGNMENT] = assignment(world, path, TargetFile.from_data(path, evil, ["sha256"]))
    with refused("F004") as messages:
        world.take()
    assert "other contents than published" in messages[0]


def test_the_stolen_online_key_publishes_no_pack(world: World) -> None:
    evil = encoded(version(3, 99))
    path = "packs/diagnosis/3.zpack"
    target = TargetFile.from_data(path, evil, ["sha256"])
    role = Targets(version=3, targets={path: target})
    snapshot = Snapshot(version=9, meta={"targets.json": MetaFile(2), "pack-diagnosis.json": MetaFile(3)})
    timestamp = Timestamp(version=9, snapshot_meta=MetaFile(9))
    (blob,) = target.get_prefixed_paths()
    world.middle.instead = {
        "metadata/timestamp.json": signed_bytes(timestamp, [online(world)], DAY),
        "metadata/9.snapshot.json": signed_bytes(snapshot, [online(world)], DAY),
        "metadata/3.pack-diagnosis.json": signed_bytes(role, [online(world)], DAY),
        ASSIGNMENT: assignment(world, path, target),
        f"targets/{blob}": evil,
    }
    with refused("F001"):
        world.take()


def test_keys_are_rotated_and_old_ones_are_worth_nothing(world: World, tmp_path: Path) -> None:
    assert world.take() == "diagnosis 2"
    shutil.copytree(world.keys, tmp_path / "stolen")
    world.repository.rotate(world.keys, "root", "packs", "online")
    world.publish(3)
    world.assign(3)
    assert world.take() == "diagnosis 3"
    stolen = key_in(tmp_path / "stolen", "online")
    forged = Timestamp(version=99, snapshot_meta=MetaFile(99))
    world.middle.instead["metadata/timestamp.json"] = signed_bytes(forged, [stolen], DAY)
    with refused("F001"):
        world.take()
    world.middle.instead = {ASSIGNMENT: signed_bytes(Targets(99, targets={}), [stolen], DAY)}
    with refused("F001"):
        world.take()


def test_a_root_that_the_old_root_did_not_sign_is_refused(world: World, tmp_path: Path) -> None:
    assert world.take() == "diagnosis 2"
    make_keys(tmp_path / "evil-keys")
    evil = Repository(tmp_path / "evil")
    evil.create(tmp_path / "evil-keys")
    evil.rotate(tmp_path / "evil-keys", "online")
    world.middle.instead["metadata/2.root.json"] = (evil.metadata.path / "2.root.json").read_bytes()
    with refused("F001"):
        world.take()


def test_a_device_recovers_from_versions_that_were_counted_up(world: World) -> None:
    assert world.take() == "diagnosis 2"
    far = 10**9
    meta = {"targets.json": MetaFile(2), "pack-diagnosis.json": MetaFile(2)}
    ahead = json.loads(world.bytes_of(ASSIGNMENT))["signed"]["targets"]
    path, target = next(iter(ahead.items()))
    world.middle.instead = {
        "metadata/timestamp.json": signed_bytes(
            Timestamp(version=far, snapshot_meta=MetaFile(far)), [online(world)], DAY
        ),
        f"metadata/{far}.snapshot.json": signed_bytes(Snapshot(version=far, meta=meta), [online(world)], DAY),
        ASSIGNMENT: assignment(world, path, TargetFile.from_dict(target, path), far),
    }
    assert world.take() == "diagnosis 2"
    world.middle.instead.clear()
    with refused("F001"):
        world.take()
    world.repository.rotate(world.keys, "online")
    world.publish(3)
    world.assign(3)
    assert world.take() == "diagnosis 3"


def test_going_back_is_a_version_of_its_own(world: World) -> None:
    with refused("F007"):
        world.publish(1)
    world.publish(3, limit=1)
    world.assign(3)
    assert world.take() == "diagnosis 3"


def test_a_blob_is_resumed_where_the_cable_was_cut(world: World) -> None:
    (name,) = (p.name for p in (world.folder / "repository/targets/packs/diagnosis").glob("*.2.zpack"))
    path = f"targets/packs/diagnosis/{name}"
    data = world.bytes_of(path)

    def cut(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.send(data[:100])
        # The next request, with a range, is answered as it should be.
        del world.middle.instead[path]

    world.middle.instead[path] = cut
    client = world.client()
    client.refresh()
    before = world.middle.sent
    assert str(client.fetch_whole("diagnosis", 2)) == "diagnosis 2"
    assert world.middle.asked.count(path) == 2
    assert world.middle.sent - before < len(data) + 1_500


def test_a_blob_is_resumed_after_a_restart(world: World) -> None:
    (name,) = (p.name for p in (world.folder / "repository/targets/packs/diagnosis").glob("*.2.zpack"))
    path = f"targets/packs/diagnosis/{name}"
    data = world.bytes_of(path)

    def cut(handler: Handler) -> None:
        begin = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        handler.send_response(206 if begin else 200)
        handler.send_header("Content-Length", str(len(data) - begin))
        handler.end_headers()
        handler.send(data[begin : begin + 20])

    world.middle.instead[path] = cut
    with refused("F003"):
        world.take()
    world.middle.instead.clear()
    client = world.client()
    client.refresh()
    received = client.wire.bytes
    client.fetch_whole("diagnosis", 2)
    role = len(world.bytes_of("metadata/2.pack-diagnosis.json"))
    assert client.wire.bytes - received <= role + len(data) - 4 * 20
