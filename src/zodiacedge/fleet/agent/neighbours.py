"""Facts of neighbours: explicit facts, replaced as a neighbour changes them, and gone when it is silent.

`zodiac:neighbour("wt2", "http://10.0.0.2:8422", "hot") .` takes the facts of a predicate from a neighbour.
Nothing else is believed of it. A fact that the device states itself stays the device's own.
"""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import urllib3

from zodiacedge.errors import FleetProblem
from zodiacedge.fleet.agent.published import OWN
from zodiacedge.fleet.trust.metadata import write_file
from zodiacedge.fleet.trust.wire import asked, checked_base
from zodiacedge.language.parser import parse_fact
from zodiacedge.packs.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.language.ast import Fact

NEIGHBOUR = f"{OWN}neighbour"
_MOST_BYTES, _MOST_FACTS = 8 << 20, 50_000
_WAIT_SECONDS = 40.0
_PAUSE = 1.0


class Neighbour(NamedTuple):
    """A neighbour, and the predicates that are taken from it."""

    name: str
    url: str
    predicates: frozenset[str]


class NeighbourFollower:
    """Follows the neighbours that the facts of the device name, each in a thread."""

    def __init__(
        self, kb: KnowledgeBase, file: Path, silence: float, notify: Callable[[str], object]
    ) -> None:
        """Note in a file which facts are whose; a neighbour may be silent for some seconds."""
        self._kb, self._file, self._silence, self._notify = kb, file, silence, notify
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._whose: dict[str, list[str]] = json.loads(file.read_bytes()) if file.exists() else {}
        self._heard: dict[str, float] = {}
        self._followed: dict[str, Neighbour] = {}
        self._said: set[str] = set()

    def close(self) -> None:
        """End; requests that wait are left behind."""
        self._ended.set()

    def addresses(self) -> list[str]:
        """Return the addresses of the neighbours that are named now."""
        return [neighbour.url for _, neighbour in sorted(self._named().items())]

    def look(self) -> None:
        """Follow the neighbours that are named now, and forget those that are not, or are silent."""
        named = self._named()
        now = time.monotonic()
        for name in {*self._whose} - named.keys():
            self._replace(name, set())
        for name, neighbour in named.items():
            before = self._followed.get(name)
            self._followed[name] = neighbour
            if before is None:
                self._heard[name] = now
                threading.Thread(target=self._follow, args=(name,), daemon=True).start()
            elif now - self._heard[name] > self._silence and self._whose.get(name):
                self._notify(f"the neighbour {name} is silent: its facts are gone")
                self._replace(name, set())
        for name in {*self._followed} - named.keys():
            del self._followed[name]

    def _named(self) -> dict[str, Neighbour]:
        found: dict[str, Neighbour] = {}
        for name, url, predicate in self._kb.query(f"?- <{NEIGHBOUR}>(N, U, P) ."):
            try:
                base = checked_base(str(url))
            except FleetProblem as problem:
                self._say(f"the neighbour {name}: {problem.diagnostics[0].message}")
                continue
            before = found.get(str(name))
            predicates = frozenset({str(predicate)}) | (before.predicates if before else frozenset())
            found[str(name)] = Neighbour(str(name), base, predicates)
        return found

    def _say(self, text: str) -> None:
        """Notify once."""
        if text not in self._said:
            self._said.add(text)
            self._notify(text)

    def _follow(self, name: str) -> None:
        mark = ""
        with urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=3, read=_WAIT_SECONDS), retries=False
        ) as pool:
            while not self._ended.is_set() and (neighbour := self._followed.get(name)):
                try:
                    mark, facts = _ask(pool, neighbour, mark)
                    with self._lock:
                        if not self._ended.is_set() and self._followed.get(name) == neighbour:
                            self._heard[name] = time.monotonic()
                    self._replace(name, facts)
                except Exception:  # noqa: BLE001 - whatever a neighbour sends, it is asked again
                    mark = ""
                    self._ended.wait(_PAUSE)

    def _replace(self, name: str, facts: set[Fact]) -> None:
        """Make the facts of a neighbour these; one that somebody else states is not touched."""
        with self._lock:
            if self._ended.is_set():
                return
            before = {parse_fact(text) for text in self._whose.get(name, [])}
            others = {parse_fact(text) for n, texts in self._whose.items() if n != name for text in texts}
            explicit = self._stated(facts - before)
            after = (facts & before) | (facts - before - explicit)
            if after == before:
                return
            # On disk before the change: after a kill, facts may be noted that are not there, and no others.
            self._note(name, before | after)
            with self._kb.change(f"facts of the neighbour {name}") as change:
                change.add_facts(sorted(after - before, key=str))
                change.remove_facts(sorted(before - after - others, key=str))
            self._note(name, after)

    def _stated(self, facts: set[Fact]) -> set[Fact]:
        """Return those of some facts that are explicit already."""
        with self._kb.reading():
            return set(self._kb.state.lookups(self._kb.settings).explicit_among(facts))

    def _note(self, name: str, facts: set[Fact]) -> None:
        self._whose[name] = sorted(map(str, facts))
        if not facts:
            del self._whose[name]
        write_file(self._file, json.dumps(self._whose).encode())


def _ask(pool: urllib3.PoolManager, neighbour: Neighbour, mark: str) -> tuple[str, set[Fact]]:
    """Wait for facts that differ from those of a mark; raise what is wrong with the answer."""
    response = asked(pool, "GET", f"{neighbour.url}published?after={mark}")
    try:
        data = response.read(_MOST_BYTES + 1)
    finally:
        response.close()
    if response.status != 200 or len(data) > _MOST_BYTES:
        raise ValueError("it publishes nothing")
    fields = Fields(json.loads(data))
    texts = fields.texts("facts")
    if len(texts) > _MOST_FACTS:
        raise ValueError("these are too many facts")
    facts = {parse_fact(text) for text in texts}
    # Whatever a neighbour sends, only what is asked of it is taken, and nothing that steers an agent.
    wanted = {name for name in neighbour.predicates if not name.startswith(OWN)}
    return fields.text("mark"), {fact for fact in facts if fact.predicate.name in wanted}
