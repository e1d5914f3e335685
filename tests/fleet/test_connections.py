"""Connections between agents and servers: kept, closed at the wrong moment, many, idle, broken off."""

from __future__ import annotations

import re
import resource
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
import urllib3

import zodiacedge as ze
from fleet.running import diagnosis, free_port, until
from fleet.test_processes import Process, ended
from zodiacedge.fleet.agent import listener
from zodiacedge.fleet.agent.link import HubLink
from zodiacedge.fleet.agent.relay import Relay
from zodiacedge.fleet.agent.sources import HttpSource
from zodiacedge.fleet.identity import DeviceKey
from zodiacedge.fleet.trust.keys import make_keys
from zodiacedge.fleet.trust.repository import Repository
from zodiacedge.fleet.trust.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.running import Device, Farm

NEWS = b'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"version": 3}'
MISSING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno\n"


class Closing:
    """A server that answers so many requests of a connection, and closes it when the next one arrives."""

    def __init__(self, answer: bytes, requests: int) -> None:
        self.connections = 0
        self._answer, self._requests = answer, requests
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self._listens.getsockname()[1]}/"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                one, _ = self._listens.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with one:
            for number in range(self._requests + 1):
                if not one.recv(1 << 16) or number == self._requests:
                    break
                one.sendall(self._answer)

    def close(self) -> None:
        self._listens.shutdown(socket.SHUT_RDWR)
        self._listens.close()


@contextmanager
def closing(answer: bytes, requests: int) -> Iterator[Closing]:
    server = Closing(answer, requests)
    try:
        yield server
    finally:
        server.close()


def test_a_connection_that_the_hub_closes_as_it_is_used_again_costs_no_request(tmp_path: Path) -> None:
    with closing(NEWS, 1) as server:
        link = HubLink(server.base, DeviceKey(tmp_path / "device.key"))
        assert [link.news("wt1", 0) for _ in range(3)] == [3, 3, 3]
        assert server.connections == 3
        link.close()
        wire = Wire(tmp_path / "partial")
        assert [b"".join(wire.stream(f"{server.base}metadata/timestamp.json")) for _ in range(3)] == [
            b'{"version": 3}'
        ] * 3
        wire.close()


def test_what_is_not_there_leaves_the_connection_open(tmp_path: Path) -> None:
    with closing(MISSING, 10) as server:
        wire = Wire(tmp_path / "partial")
        for _ in range(3):
            with pytest.raises(Exception, match="HTTP status 404"):
                list(wire.stream(f"{server.base}metadata/2.root.json"))
        assert server.connections == 1
        wire.close()


@pytest.mark.slow
def test_news_that_are_heard_while_they_are_taken_are_not_taken_again(
    farm: Farm, make_device: Callable[..., Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    client, link, refreshed = device.agent._client, device.agent._link, list[float]()
    refresh, news = client.refresh, link.news

    def slowly() -> None:
        refreshed.append(time.monotonic())
        time.sleep(2)
        refresh()

    monkeypatch.setattr(client, "refresh", slowly)
    # As a hub answers when somebody has waited for half a minute.
    monkeypatch.setattr(link, "news", lambda name, _after: news(name, -1))
    farm.publish(diagnosis(2))
    device.settle("on probation diagnosis 2")
    time.sleep(1.5)
    for _ in range(3):
        device.agent.step()
    assert len(refreshed) == 1


@pytest.mark.slow
def test_more_devices_may_wait_than_files_may_be_open_at_first(tmp_path: Path) -> None:
    """A shell lets a process have 1,024 files open; a hub takes as many as it may."""
    make_keys(tmp_path / "keys")
    Repository(tmp_path / "hub" / "repository").create(tmp_path / "keys")
    port, before = free_port(), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
    try:
        hub = Process(tmp_path, "hub", "hub", "hub", "--keys", "keys", "--port", port)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with ended([hub]), ExitStack() as wires:
        hub.saw("hub hub on")
        for number in range(200):
            wire = wires.enter_context(socket.create_connection(("127.0.0.1", port)))
            wire.sendall(f"GET /news/wt{number}?after=0 HTTP/1.1\r\nHost: hub\r\n\r\n".encode())
        with urllib3.PoolManager(retries=False) as pool:
            metrics = f"http://127.0.0.1:{port}/metrics"
            until(lambda: b"zodiac_hub_waiting 200" in pool.request("GET", metrics, timeout=20).data)


@pytest.fixture(params=["relay", "facts"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[listener.Listener]:
    with ze.open() as kb:
        made = (
            Relay(kb, tmp_path / "relay", "http://127.0.0.1:9/", "127.0.0.1", 0)
            if request.param == "relay"
            else HttpSource(kb, 0, print)
        )
        yield made
        made.close()


def raw(server: listener.Listener, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_port)) as wire:
        wire.settimeout(20)
        wire.sendall(request)
        return wire.recv(1 << 16)


@pytest.mark.parametrize(
    "length", [b"\xb2", b"-1", b"9" * 4000, b"0" * 5000, b"00000000005242880", b"1e3", b""]
)
def test_a_length_that_is_none_is_refused(
    server: listener.Listener, length: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in (b"/facts", b"/status"):
        answer = raw(server, b"POST " + path + b" HTTP/1.0\r\nContent-Length: " + length + b"\r\n\r\n")
        assert re.match(rb"HTTP/1.[01] 404", answer)
    assert "Traceback" not in capfd.readouterr().err


def test_a_connection_without_a_thread_takes_no_room(
    server: listener.Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        patch.setattr(listener.Listener, "handle_error", lambda *_: None)
        for _ in range(listener._MOST_CONNECTIONS + 4):
            assert raw(server, b"GET /nothing HTTP/1.0\r\n\r\n") == b""
    assert raw(server, b"GET /nothing HTTP/1.0\r\n\r\n")


def test_who_hangs_up_is_not_reported(server: listener.Listener, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.server_port)) as wire:
            wire.sendall(b"POST /facts HTTP/1.0\r\nContent-Length: 5000\r\n\r\nhot")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    assert raw(server, b"GET /nothing HTTP/1.0\r\n\r\n")
    time.sleep(0.5)
    assert capfd.readouterr().err == ""


def test_who_says_nothing_is_left_and_only_so_many_are_heard(
    server: listener.Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener.Handler, "timeout", 4.0)
    others = threading.active_count()
    with ExitStack() as wires:
        for _ in range(listener._MOST_CONNECTIONS + 50):
            wires.enter_context(socket.create_connection(("127.0.0.1", server.server_port)))
        until(lambda: threading.active_count() >= others + listener._MOST_CONNECTIONS)
        assert threading.active_count() < others + listener._MOST_CONNECTIONS + 40

        def is_heard() -> bool:
            try:
                return raw(server, b"GET /nothing HTTP/1.0\r\n\r\n") != b""
            except OSError:
                return False

        until(is_heard)


def test_neighbours_are_served_by_either_family(tmp_path: Path) -> None:
    with ze.open() as kb:
        relay = Relay(kb, tmp_path / "relay", "http://127.0.0.1:9/", "::1", 0)
        with urllib3.PoolManager() as pool:
            assert pool.request("GET", f"{relay.own_base}published?after=").json()["facts"] == []
        assert relay.own_base == f"http://[::1]:{relay.server_port}/"
        relay.close()
