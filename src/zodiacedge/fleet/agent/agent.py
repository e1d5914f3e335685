"""The agent, step by step: readings, needs, what the hub assigns, probation, status.

Without a hub it goes on with what it has. What it may believe is a matter of `fleet.trust`, how a pack comes
into force one of `activation`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial
from random import uniform
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, FleetProblem, ZodiacError
from zodiacedge.fleet.agent.activation import Activation
from zodiacedge.fleet.agent.link import HubLink
from zodiacedge.fleet.agent.memory import AgentMemory
from zodiacedge.fleet.agent.neighbours import NeighbourFollower
from zodiacedge.fleet.agent.policy import OwnPolicy
from zodiacedge.fleet.identity import DeviceKey
from zodiacedge.fleet.problems import unreachable
from zodiacedge.fleet.trust.client import Client
from zodiacedge.fleet.trust.metadata import device_name
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.packs.fields import document_of
from zodiacedge.packs.manifest import is_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from zodiacedge.kb.knowledge_base import KnowledgeBase

NEEDS = DEFAULT_PREFIXES["zodiac"] + "needs"
# A status is sent again after so many seconds, though nothing changed.
_HEARTBEAT = 300.0
# The code of a store that has to be opened again.
_UNUSABLE = "D012"
# After a request that failed, the next one waits: at first so many seconds, then longer.
_LEAST_PAUSE, _MOST_PAUSE = 0.5, 60.0
# Who waits for news asks more often: the answer ends the pause of the others.
_MOST_NEWS_PAUSE = 10.0


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of an agent."""

    hub: str
    """The address of the hub."""
    name: str = ""
    code: str = ""
    """Name and code to enrol with, for the first start."""
    probation: float = 60.0
    """The seconds that a pack is on probation."""
    hold_off: float = 300.0
    """The seconds for which a pack stays that is needed no more."""
    silence: float = 300.0
    """The seconds that a neighbour may be silent before its facts go."""
    interval: float = 1.0
    """The seconds between two steps."""
    allow: tuple[str, ...] = ()
    """The packs that may come from neighbours without an assignment, while no hub is heard."""


class Agent:
    """The agent of a store."""

    def __init__(
        self, kb: KnowledgeBase, folder: Path, options: AgentOptions, notify: Callable[[str], object]
    ) -> None:
        """Start with what the folder of the agent remembers; the first start enrols the device."""
        self.kb, self.options, self._notify = kb, options, notify
        self.folder = folder
        self.memory = AgentMemory.load(folder / "memory.json")
        key = DeviceKey(folder / "device.key")
        self.mark = key.mark
        self._link = HubLink(options.hub, key)
        self._enrol(folder)
        root = (folder / "root.json").read_bytes()
        self._client = Client(folder / "trust", root, [self._link.base])
        self.activation = Activation(kb, self.memory, folder, options.probation, notify)
        self._policy = OwnPolicy(options.allow, self.memory, self.activation, self._client)
        self._assigned: dict[str, int] | None = None
        self._serves = False
        self._handed: set[str] = set()
        """What the relay of this device was asked for, and keeps for neighbours."""
        self._sent: object = None
        self._sent_at = 0.0
        self._pause = _LEAST_PAUSE
        self._failed: list[ZodiacError | OSError] = []
        """The problems of the last try."""
        self._unheard: FleetProblem | None = None
        """Why the hub cannot be listened to; None if it can."""
        self._reported: set[str] = set()
        self._next_try = 0.0
        self._news = threading.Event()
        self._news.set()
        self._taking = threading.Lock()
        """Held while news are taken: what is heard meanwhile is compared with what was taken."""
        self._woken = threading.Event()
        """Ends the pause between two steps."""
        self._version = 0
        self._ended = threading.Event()
        self.neighbours = NeighbourFollower(kb, folder / "neighbours.json", options.silence, notify)
        self._listener = threading.Thread(target=self._listen, name="zodiac-agent-news", daemon=True)
        self._listener.start()

    def close(self) -> None:
        """End; a request that waits for news is left behind."""
        self._ended.set()
        self._woken.set()
        self.neighbours.close()
        self._client.close()

    def run(self, *sources: Callable[[], object]) -> None:
        """Take steps until interrupted; in each of them, first take what sources have."""
        while not self._ended.is_set():
            self.step(*sources)
            self.wait(self.options.interval)

    @property
    def received(self) -> int:
        """The bytes of metadata and packs that were received."""
        return self._client.wire.bytes

    @property
    def reported(self) -> bool:
        """Whether the hub has taken a status that tells what is so now, and nothing has failed since."""
        return self._sent == self._status() and not self._failed

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to do, for some seconds at most; return whether there is."""
        woken = self._woken.wait(seconds)
        self._woken.clear()
        return woken

    def step(self, *sources: Callable[[], object]) -> None:
        """Take one step; nothing that a hub does or says makes it fail, and no disk that is full."""
        own = (self.kb.tick_when_due, self.activation.watch, self.neighbours.look, self._look_at_needs)
        problems = _problems_of((*sources, *own))
        if time.monotonic() >= self._next_try:
            # A hub that takes no status may still say what to run, and what is staged needs no hub.
            parts = (
                self._send,
                self._take_assignment,
                self._keep_packs,
                self._hand_on,
                self._bring_by_policy,
            )
            self._failed = _problems_of(parts)
            if self._failed:
                self._next_try = time.monotonic() + self._pause * uniform(0.5, 1)  # noqa: S311 - no secret
            self._pause = min(self._pause * 2, _MOST_PAUSE) if self._failed else _LEAST_PAUSE
        unheard = self._unheard
        self._tell([*problems, *self._failed, *([unheard] if unheard else [])])

    def _enrol(self, folder: Path) -> None:
        options = self.options
        if self.memory.name and (folder / "root.json").exists():
            return
        if not (options.name and options.code):
            note = "zodiac enrol HUB NAME prints a code; give it with --name and --code"
            raise FleetProblem(Diagnostic("F008", "this device is not enrolled at a hub", note))
        try:
            name = device_name(options.name)
        except ValueError as error:
            raise FleetProblem(Diagnostic("F008", str(error), "choose another name")) from error
        self._link.enrol(name, options.code, folder / "root.json")
        self.memory.name, self.memory.sequence = name, 0
        self.memory.save()
        self._notify(f"enrolled as {name}")

    def _look_at_needs(self) -> None:
        """Note the packs that the rules of the device need, or needed until a short time ago."""
        needed, now = self.memory.needed, time.time()
        before = dict(needed)
        named = {str(name) for (name,) in self.kb.query(f"?- <{NEEDS}>(P) .")}
        asked = {name for name in named if is_name(name)}
        for name in asked:
            # Noted now and then only: a file is written for it.
            if name not in needed or abs(now - needed[name]) > self.options.hold_off / 10:
                needed[name] = now
        for name in needed.keys() - asked:
            # A clock that was set back must not make a hold-off endless.
            needed[name] = min(needed[name], now)
            if now - needed[name] > self.options.hold_off:
                del needed[name]
        if needed != before:
            self.memory.save()
        for name in sorted(named - asked):
            # A hub would refuse all of a status that names it.
            note = "a pack is named by letters, digits, - and _; look at the rules of zodiac:needs"
            raise FleetProblem(Diagnostic("F009", f"{name!r} is needed, and is no name of a pack", note))

    def _status(self) -> dict[str, object]:
        packs = {
            name: document_of(
                {"version": state.version, "state": state.state, "reasons": list(state.reasons)}
            )
            for name, state in self.activation.states().items()
        }
        running = {
            name: {"version": pack.manifest.version, "digest": pack.manifest.digest}
            for name, pack in self.kb.installed.installed.items()
        }
        needs, stale = sorted(self.memory.needed), int(self.memory.stale)
        return document_of({"packs": packs, "running": running, "needs": needs, "stale": stale or ""})

    def _send(self) -> None:
        """Send a status that differs from the last, or that one again after a while."""
        status = self._status()
        if status == self._sent and time.monotonic() < self._sent_at + _HEARTBEAT:
            return
        # The number is on disk before it is used, so that it is never used twice.
        self.memory.sequence += 1
        self.memory.save()
        self._link.status({**status, "device": self.memory.name, "sequence": self.memory.sequence})
        self._sent, self._sent_at = status, time.monotonic()

    def _take_assignment(self) -> None:
        """Take what is assigned, if there is news; note since when nothing new can be believed."""
        if not self._news.is_set():
            return
        with self._taking:
            self._news.clear()
            try:
                self._client.refresh()
                assigned = self._client.assigned(self.memory.name)
            except (FleetProblem, OSError):
                self._news.set()
                self._note_stale(time.time() if not self.memory.stale else self.memory.stale)
                raise
            self._assigned, self._version = dict(assigned.packs), assigned.version
        self._note_stale(0.0)

    def _keep_packs(self) -> None:
        """Bring what is assigned, and drop what is not; without an assignment keep what is there."""
        own = self._policy.keep(None if self._assigned is None else self._assigned.keys())
        if self._assigned is None:
            return
        for name in sorted(self.memory.managed - self._assigned.keys() - own):
            self.activation.drop(name)
        for name, version in self._assigned.items():
            there = self.kb.installed.installed.get(name)
            base = (there.manifest.version, there.manifest.digest) if there else None
            fetch = partial(self._client.fetch, name, version, base)
            self.activation.bring(name, version, fetch, partial(self._client.fetch_whole, name, version))

    def _hand_on(self) -> None:
        """Ask the relay for what a neighbour needs to run the same packs, so that it is kept there."""
        if not self._serves or self._assigned is None:
            return
        for path in self._client.needed(self._assigned):
            if path not in self._handed:
                self._client.ask(path)
                self._handed.add(path)

    def _bring_by_policy(self) -> None:
        """Bring what the owner allows from neighbours, if the hub cannot be heard or believed."""
        assigned = self._assigned.keys() if self._assigned else set()
        if (self._unheard or self.memory.stale) and self._policy.lacking(assigned):
            self._policy.bring(assigned, self.neighbours.addresses())

    def serve(self, base: str) -> None:
        """Ask for metadata and packs through the relay of this device, which keeps them for neighbours."""
        self._client.bases = [base]
        self._serves = True

    def _note_stale(self, since: float) -> None:
        if self.memory.stale != since:
            self.memory.stale = since
            self.memory.save()

    def _tell(self, problems: Iterable[ZodiacError | OSError]) -> None:
        """Tell problems, each once while it lasts; that a server is away is one, whatever it was asked."""
        texts: dict[str, str] = {}
        for problem in problems:
            found = problem.diagnostics[0] if isinstance(problem, ZodiacError) else None
            text = f"{found.code}: {found.message}" if found else str(problem)
            texts.setdefault(text.partition(" does not answer: ")[0], text)
        for about, text in texts.items():
            if about not in self._reported:
                self._notify(text)
        self._reported = set(texts)

    def _listen(self) -> None:
        """Wait for news of the hub, again and again."""
        pause, failed, heard = _LEAST_PAUSE, False, 0
        while not self._ended.is_set():
            try:
                # What was heard is taken by another thread, and asked for once.
                version = self._link.news(self.memory.name, max(heard, self._version))
            except Exception as problem:  # noqa: BLE001 - without this thread no news would ever come
                failed = True
                self._unheard = (
                    problem
                    if isinstance(problem, FleetProblem)
                    else unreachable(self._link.base, f"its news are no document of a hub: {problem!r}")
                )
                # A thousand devices that lost their hub do not come back at one time.
                self._ended.wait(pause * uniform(0.5, 1))  # noqa: S311 - a pause is no secret
                pause = min(pause * 2, _MOST_NEWS_PAUSE)
                continue
            pause, self._unheard = _LEAST_PAUSE, None
            if failed:
                failed, self._next_try = False, 0.0
                self._woken.set()
            # A version that was heard and not taken, because a copy of the metadata was older, is asked for
            # again with each answer.
            with self._taking:
                if version != self._version:
                    heard = version
                    self._news.set()
                    self._woken.set()
            # A hub that answers at once, whatever it is asked, is not asked without end.
            self._ended.wait(_LEAST_PAUSE)


def _problems_of(parts: Iterable[Callable[[], object]]) -> list[ZodiacError | OSError]:
    """Do one part after the other, whatever becomes of those before; return what failed.

    Raises StoreProblem if the store has to be opened again, which an agent that is started again does.
    """
    problems: list[ZodiacError | OSError] = []
    for part in parts:
        try:
            part()
        except ZodiacError as problem:
            if problem.diagnostics[0].code == _UNUSABLE:
                raise
            problems.append(problem)
        except OSError as problem:
            problems.append(problem)
    return problems
