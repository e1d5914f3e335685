"""Neighbours: packs come through a device that hands them on, without the hub too, and nothing of its own."""

from __future__ import annotations

import gzip
import json
import socket
from typing import TYPE_CHECKING

import pytest
import urllib3

import zodiacedge as ze
from fleet.middle import between
from fleet.running import diagnosis
from packs.making import refused
from zodiacedge.fleet.agent.relay import Relay
from zodiacedge.util.gzipped import gzipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.middle import Handler
    from fleet.running import Device, Farm

pytestmark = pytest.mark.slow


@pytest.fixture
def relay(farm: Farm, make_device: Callable[..., Device]) -> Iterator[Relay]:
    """The relay of a device with a hot sensor of its own."""
    device = make_device("wt2")
    device.settle("on probation diagnosis 1")
    relay = Relay(device.kb, device.agent.folder / "relay", farm.base, "127.0.0.1", 0)
    yield relay
    relay.close()


def base(relay: Relay) -> str:
    return f"http://127.0.0.1:{relay.server_port}/"


def test_a_device_is_reached_through_its_neighbour_only(
    farm: Farm, make_device: Callable[..., Device], relay: Relay
) -> None:
    device = make_device("wt1", base=base(relay))
    device.settle("on probation diagnosis 1")
    farm.publish(diagnosis(2))
    device.settle("on probation diagnosis 2")
    device.until(lambda: farm.facts('?- status("wt1", "diagnosis", 2, S) .'))
    # The hub is gone: what the neighbour handed on before is what it still can hand on.
    farm.stop()
    device.restart()
    client = device.agent._client
    client.refresh()
    assert client.assigned("wt1").packs == {"diagnosis": 2}


def test_a_neighbour_that_lies_is_not_believed(
    farm: Farm, make_device: Callable[..., Device], relay: Relay
) -> None:
    device = make_device("wt1", base=base(relay))
    device.settle("on probation diagnosis 1")
    farm.publish(diagnosis(2))
    farm.stop()
    for path in (relay.folder / "metadata").rglob("timestamp.json"):
        path.write_bytes(path.read_bytes().replace(b'"version":', b'"version":9'))
    device.agent._news.set()
    device.settle("F001")
    assert device.packs() == ["diagnosis 1"]


def test_nothing_of_the_device_leaves_through_the_relay(farm: Farm, relay: Relay) -> None:
    """Whatever is asked, no answer holds a fact of the device or a file outside what is handed on."""
    paths = ["/", "/facts", "/metadata/", "/metadata/../memory.json", "/metadata/%2e%2e/memory.json"]
    paths += ["/published", "/published?after=", "/published?after=zz", "/published/../facts"]
    paths += ["/targets/../../device.key", "/metadata/.lock", "/store", "/metrics", "/news/wt2", "/status"]
    seen = b""
    with urllib3.PoolManager(retries=False) as pool:
        for path in paths:
            seen += pool.request("GET", base(relay)[:-1] + path).data
            seen += pool.request("POST", base(relay)[:-1] + path, body=b"?- reading(T, C) .").data
    # As bytes on the wire, which no client tidies up.
    for path in paths:
        with socket.create_connection(("127.0.0.1", relay.server_port)) as wire:
            wire.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            while data := wire.recv(1 << 16):
                seen += data
    for secret in (b"reading", b"hot", b"sequence", farm.keys.name.encode()):
        assert secret not in seen


def neighbours(device: Device, relay: Relay, *predicates: str) -> None:
    """Let a device take predicates from the device of a relay."""
    with device.kb.change() as change:
        change.add_facts(" ".join(f'zodiac:neighbour("wt2", "{base(relay)}", "{p}") .' for p in predicates))


def state(kb: ze.KnowledgeBase, text: str, *, remove: bool = False) -> None:
    with kb.change() as change:
        (change.remove_facts if remove else change.add_facts)(text)


def test_published_facts_are_followed_and_nothing_else_is_seen(
    make_device: Callable[..., Device], relay: Relay
) -> None:
    device = make_device("wt1")
    neighbours(device, relay, "air", "hot", "urn:zodiac:publish")
    other = relay.kb
    state(other, "air(2, 17) .  air(3, 18) .  secret(1) .")
    state(other, 'zodiac:publish("air") .  zodiac:publish("urn:zodiac:publish") .')
    device.until(lambda: len(device.kb.matching("?- air(X, Y) .")) == 2)
    assert not device.kb.matching("?- secret(X) .")
    assert not device.kb.matching("?- zodiac:publish(X) .")
    assert "facts of the neighbour wt2" in [entry.message for entry in device.kb.log()]
    # They are replaced as the neighbour changes them; what the device states itself stays.
    state(device.kb, "air(4, 19) .")
    state(other, "air(3, 18) .", remove=True)
    state(other, "air(4, 19) .")
    device.until(lambda: len(device.kb.matching("?- air(3, X) .")) == 0)
    state(other, "air(4, 19) .  air(2, 17) .", remove=True)
    device.until(lambda: {str(f) for f in device.kb.matching("?- air(X, Y) .")} == {"air(4, 19)"})


def test_facts_of_a_neighbour_that_is_silent_go(make_device: Callable[..., Device], tmp_path: Path) -> None:
    with between(tmp_path) as middle:
        middle.instead["published?after="] = json.dumps({"mark": "0", "facts": ["air(2, 17)"]}).encode()
        device = make_device("wt1")
        state(device.kb, f'zodiac:neighbour("wt2", "{middle.base}", "air") .')
        device.until(lambda: device.kb.matching("?- air(X, Y) ."))
        # From now on there are errors only.
        middle.instead.clear()
        device.settle("the neighbour wt2 is silent")
        assert not device.kb.matching("?- air(X, Y) .")
        device.agent.neighbours.close()


def test_facts_of_a_neighbour_that_is_named_no_more_go(
    make_device: Callable[..., Device], relay: Relay
) -> None:
    device = make_device("wt1")
    neighbours(device, relay, "air")
    state(relay.kb, 'air(2, 17) .  zodiac:publish("air") .')
    device.until(lambda: device.kb.matching("?- air(X, Y) ."))
    # Also by an agent that was started again since.
    device.restart()
    state(device.kb, f'zodiac:neighbour("wt2", "{base(relay)}", "air") .', remove=True)
    device.until(lambda: not device.kb.matching("?- air(X, Y) ."))


def test_what_a_neighbour_sends_and_nobody_asked_for_is_dropped(
    make_device: Callable[..., Device], tmp_path: Path
) -> None:
    evil = ['<urn:zodiac:publish>("reading")', 'reading("wt1", 999)', "air(1, 2)"]
    with between(tmp_path) as middle:
        middle.instead["published?after="] = json.dumps({"mark": "0", "facts": evil}).encode()
        device = make_device("wt1")
        state(device.kb, f'zodiac:neighbour("wt2", "{middle.base}", "air") .')
        device.until(lambda: device.kb.matching("?- air(X, Y) ."))
        assert not device.kb.matching("?- zodiac:publish(X) .")
        assert not device.kb.matching("?- reading(X, 999) .")
        device.agent.neighbours.close()


def test_a_neighbour_that_sends_nonsense_is_asked_again(
    make_device: Callable[..., Device], tmp_path: Path
) -> None:
    with between(tmp_path) as middle:
        middle.instead["published?after="] = b"[" * 200_000
        device = make_device("wt1")
        state(device.kb, f'zodiac:neighbour("wt2", "{middle.base}", "air") .')
        device.until(lambda: len(middle.asked) > 1)
        middle.instead["published?after="] = json.dumps({"mark": "0", "facts": ["air(2, 17)"]}).encode()
        device.until(lambda: device.kb.matching("?- air(X, Y) ."))
        device.agent.neighbours.close()


def test_blobs_are_asked_for_once_and_have_ranges(farm: Farm, relay: Relay) -> None:
    (blob,) = (farm.repository.path / "targets").rglob("*.zpack")
    path = blob.relative_to(farm.repository.path).as_posix()
    with urllib3.PoolManager(retries=False) as pool:
        assert pool.request("GET", base(relay) + path).data == blob.read_bytes()
        farm.stop()
        part = pool.request("GET", base(relay) + path, headers={"Range": "bytes=7-"})
        assert (part.status, part.data) == (206, blob.read_bytes()[7:])
        assert pool.request("GET", f"{base(relay)}metadata/9.root.json").status == 404


def test_a_blob_that_is_another_one_is_neither_handed_on_nor_kept(
    farm: Farm, make_device: Callable[..., Device], tmp_path: Path
) -> None:
    (blob,) = (farm.repository.path / "targets").rglob("*.zpack")
    path = blob.relative_to(farm.repository.path).as_posix()
    with between(farm.repository.path) as middle, urllib3.PoolManager(retries=False) as pool:
        relay = Relay(make_device().kb, tmp_path / "relay", middle.base, "127.0.0.1", 0)
        middle.instead[path] = b"something else"
        assert pool.request("GET", base(relay) + path).status == 404
        middle.instead.clear()
        assert pool.request("GET", base(relay) + path).data == blob.read_bytes()
        relay.close()


def test_a_device_that_begins_to_serve_hands_on_what_it_runs_already(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    """It has its pack, of which one version came as a delta, before anybody could ask it for anything."""
    serves = make_device("wt2")
    serves.settle("on probation diagnosis 1")
    farm.publish(diagnosis(2))
    serves.settle("on probation diagnosis 2")
    alone = make_device("wt1", allow=("diagnosis",))
    with alone.kb.change() as change:
        change.remove_facts([("reading", "wt1", 95)])
    alone.until(lambda: alone.agent._assigned == {})
    serves.restart()
    relay = Relay(serves.kb, serves.folder / "relay", farm.base, "127.0.0.1", 0)
    serves.agent.serve(relay.own_base)
    serves.until(lambda: serves.agent._handed)
    farm.stop()
    with alone.kb.change() as change:
        change.add_facts([("reading", "wt1", 95)])
        change.add_facts(f'zodiac:neighbour("wt2", "{base(relay)}", "air") .')
    alone.settle("on probation diagnosis 2")
    relay.close()


def test_what_is_announced_is_where_neighbours_are_served(tmp_path: Path) -> None:
    with ze.open() as kb:
        for host, network, announced in (
            ("0.0.0.0", "10.0.0.2", "10.0.0.2"),  # noqa: S104 - on purpose
            ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
            ("127.0.0.2", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1", "10.0.0.2", None),
        ):
            relay = Relay(kb, tmp_path / "relay", "http://127.0.0.1:9/", host, 0)
            if announced is None:
                with refused("F010"):
                    relay.announced_host(network)
            else:
                assert relay.announced_host(network) == announced
            relay.close()


def test_metadata_comes_compressed_through_a_neighbour(farm: Farm, relay: Relay) -> None:
    whole = (farm.repository.path / "metadata/timestamp.json").read_bytes()
    url = f"{base(relay)}metadata/timestamp.json"
    with urllib3.PoolManager(retries=False) as pool:
        for _ in range(2):
            packed = pool.request("GET", url, headers={"Accept-Encoding": "gzip"}, decode_content=False)
            assert gzip.decompress(packed.data) == whole
            assert pool.request("GET", url).data == whole
            # Also from what it has kept.
            farm.stop()


@pytest.mark.parametrize("body", [gzipped(b" " * (65 << 20)), b"no gzip"])
def test_a_neighbour_hands_on_nothing_that_cannot_be_expanded(
    make_device: Callable[..., Device], tmp_path: Path, body: bytes
) -> None:
    def expanding(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.send(body)

    with between(tmp_path) as middle:
        middle.instead["metadata/timestamp.json"] = expanding
        relay = Relay(make_device().kb, tmp_path / "relay", middle.base, "127.0.0.1", 0)
        with urllib3.PoolManager(retries=False) as pool:
            assert pool.request("GET", f"{base(relay)}metadata/timestamp.json").status == 404
        relay.close()
    assert not (tmp_path / "relay").exists()


def test_a_neighbour_without_an_address_is_told_once(make_device: Callable[..., Device]) -> None:
    device = make_device("wt1")
    state(device.kb, 'zodiac:neighbour("wt2", "10.0.0.2:8422", "air") .')
    for _ in range(3):
        device.agent.step()
    said = [text for text in device.told if "10.0.0.2:8422 is no address" in text]
    assert said == ["the neighbour wt2: 10.0.0.2:8422 is no address of a hub or a neighbour"]
