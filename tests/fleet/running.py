"""A hub that runs in this process, and agents that are led step by step."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from random import randint
from typing import TYPE_CHECKING

import uvicorn

import zodiacedge as ze
from packs.making import made
from zodiacedge.fleet.agent.agent import Agent, AgentOptions
from zodiacedge.fleet.hub.server import Hub, Server
from zodiacedge.fleet.trust.keys import make_keys
from zodiacedge.fleet.trust.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from zodiacedge.errors import ZodiacError
    from zodiacedge.packs.pack import Pack

NEED = """
    need: zodiac:needs("diagnosis") :- reading(T, C), C > 80 .
    reading("wt1", 95) .  reading("wt2", 60) .
"""


def free_port() -> int:
    """Return a port that nobody gets by chance while a hub is away: it is none that the system gives out."""
    while True:
        port = randint(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def diagnosis(version: int, limit: int = 90, more: str = "") -> Pack:
    return made(f"r1: hot(T) :- reading(T, C), C > {limit} .", version, more=more)


class Farm:
    """The folder of a hub, which can be started and stopped, and keys."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keys = folder, folder / "keys"
        make_keys(self.keys)
        self.repository = Repository(folder / "hub" / "repository")
        self.repository.create(self.keys)
        self.port = free_port()
        self.problems: list[ZodiacError] = []
        self.hub: Hub | None = None
        self._was_there = False
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> Hub:
        hub = self.hub = Hub(self.folder / "hub", self.keys, self.problems.append)
        config = uvicorn.Config(hub.app, log_level="critical", timeout_graceful_shutdown=1, lifespan="on")
        server = self._server = Server(hub, config)
        thread = self._thread = threading.Thread(target=server.run, args=([self._listening()],))
        thread.start()
        until(lambda: server.started or not thread.is_alive(), 120)
        assert server.started
        self._was_there = True
        return hub

    def _listening(self) -> socket.socket:
        """Return a socket at the port of the hub; until the first start that may be another one.

        Between the choice of a port and its use, tests of other processes may take it.
        """
        end = time.monotonic() + 60
        while True:
            try:
                return socket.create_server(("127.0.0.1", self.port), backlog=1024)
            except OSError:
                assert time.monotonic() < end
                if not self._was_there:
                    self.port = free_port()
                time.sleep(0.05)

    def stop(self) -> None:
        if self._server and self._thread and self.hub:
            self._server.should_exit = True
            self._thread.join()
            self.hub.close()
            self._server = self._thread = self.hub = None

    def publish(self, pack: Pack) -> None:
        self.repository.publish(pack, self.keys)
        if self.hub:
            self.hub._watch.look()

    def say(self, text: str, name: str = "operator") -> None:
        """Write rules and facts of the operator."""
        (self.folder / "hub" / "rules" / f"{name}.rules").write_text(text, encoding="utf-8")
        if self.hub:
            self.hub._watch.look()

    def facts(self, query: str) -> set[str]:
        assert self.hub
        return {str(fact) for fact in self.hub.state.kb.matching(query)}


class Device:
    """An agent with its store, which can be restarted."""

    def __init__(
        self,
        farm: Farm,
        name: str = "wt1",
        limits: ze.Limits | None = None,
        base: str = "",
        allow: tuple[str, ...] = (),
    ) -> None:
        self.farm, self.name, self.limits, self.base, self.allow = farm, name, limits, base, allow
        self.folder = farm.folder / f"{name}.agent"
        self.told: list[str] = []
        self.kb = self._open()
        with self.kb.change() as change:
            change.add_rules(NEED)
        assert farm.hub
        self.code = farm.hub.state.codes.make(name, ["north"], farm.repository.root())
        self.agent = self.started()

    def _open(self) -> ze.StoredKnowledgeBase:
        return ze.open(self.farm.folder / f"{self.name}.zodiac", create=True, limits=self.limits)

    def started(self, probation: float = 1000.0) -> Agent:
        base = self.base or self.farm.base
        options = AgentOptions(base, self.name, self.code, probation, 0.0, 1.0, 0.05, self.allow)
        self.agent = Agent(self.kb, self.folder, options, self.told.append)
        return self.agent

    def restart(self, probation: float = 1000.0) -> None:
        self.close()
        self.kb = self._open()
        self.started(probation)

    def close(self) -> None:
        self.agent.close()
        self.kb.close()

    def until(self, done: Callable[[], object], seconds: float = 60.0) -> None:
        """Take steps until something holds."""

        def step_and_look() -> object:
            self.agent.step()
            return done()

        until(step_and_look, seconds, self)

    def settle(self, wanted: str, seconds: float = 60.0) -> None:
        """Take steps until something was told."""
        self.until(lambda: any(text.startswith(wanted) for text in self.told), seconds)

    def packs(self) -> list[str]:
        return [str(manifest) for manifest in self.kb.packs()]

    def __repr__(self) -> str:
        return f"{self.name}: {self.told}"


def until(done: Callable[[], object], seconds: float = 60.0, about: object = "") -> None:
    """Wait until something holds; it is asked again and again."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"waited for {seconds} s: {about}"
        time.sleep(0.02)


@contextmanager
def running(folder: Path) -> Iterator[Farm]:
    farm = Farm(folder)
    farm.publish(diagnosis(1))
    farm.start()
    farm.say('allowed("wt1", "diagnosis") .  allowed("wt2", "diagnosis") .  allowed("wt3", "diagnosis") .')
    try:
        yield farm
    finally:
        farm.stop()
