"""Windows around the clock: the hidden relation of the moments in each, kept up to date as the clock moves.

`language.windows` makes an atom of that relation, (moment, window), of each condition on `now`. A tick takes
the moments off an ordered index that enter or leave a window: they are the rows inserted and deleted, and the
rules read them like any others. So a tick costs what is due, whatever a window holds.

All moments of the dictionary count, whichever facts have them. A rule may compute a moment that was not there
and is in a window: then the change is evaluated again, with that moment.

A moment whose term is freed leaves the windows: no fact has it, so no rule has matched it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.storage.database import WINDOWS
from zodiacedge.engine.embedded.storage.relation import Relation
from zodiacedge.language.ast import Atom, Variable, conjuncts
from zodiacedge.language.vocabulary import NOW_RELATION, WINDOW_RELATION
from zodiacedge.language.windows import Window
from zodiacedge.terms import Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.embedded.ingest.batch import EmbeddedFactDelta
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Rule

NOW = Relation(NOW_RELATION, 2)
_ANY_WINDOW = Atom(WINDOW_RELATION, (Variable("moment"), Variable("window")))
_Span = tuple[int, int]  # after, up to: microseconds
_EMPTY: _Span = (0, 0)
_NONE: Ids = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a version: the clock, in microseconds, and the windows that rules read, by term id.

    `seen` is the number of moments that have arrived and that the relation takes account of.
    """

    clock: int | None = None
    windows: Mapping[int, Window] = field(default_factory=dict)
    seen: int = 0
    given: bool = False
    """Whether the relation is given as facts, and not kept here: another engine keeps it."""

    def span(self, number: int) -> _Span:
        """Return the span of a window."""
        window = self.windows.get(number)
        return _EMPTY if window is None or self.clock is None else window.span(self.clock)

    def next_due(self, store: Database) -> int | None:
        """Return the first time of the clock, in microseconds, at which a window changes.

        A time of the clock is in windows too, but nothing follows from it unless another fact has it.
        Otherwise each tick would be the cause of the next.
        """
        due: list[int] = []
        first_after = _Due(store).first_after
        for number, window in self.windows.items() if self.clock is not None else ():
            low, high = self.span(number)
            leaving = None if window.low is None else first_after(low)
            entering = None if window.high is None else first_after(high)
            if leaving is not None and window.low is not None:
                due.append(leaving - window.low + window.low_is_in)
            if entering is not None and window.high is not None:
                due.append(entering - window.high + (not window.high_is_in))
        return min(due, default=None)

    def hold(self, store: Database, first: int) -> bool:
        """Whether a moment that arrived after the first so many is in one of the windows."""
        if self.clock is None or not self.windows:
            return False
        _, micros = store.terms.moments.since(first)
        spans = {self.span(number) for number in self.windows}
        return any(bool(((low < micros) & (micros <= high)).any()) for low, high in spans)

    def commit(self, store: Database) -> None:
        """Take up the moments that this version takes account of."""
        if self.windows:
            store.terms.moments.settle(self.seen)
        else:
            store.terms.moments.stop()

    def leave(self, store: Database, ids: Ids) -> None:
        """Take moments whose terms will be freed out of the relation."""
        micros = store.dictionary.payloads[ids]
        for number in self.windows:
            low, high = self.span(number)
            inside = ids[(low < micros) & (micros <= high)]
            if len(inside):
                store.windows.tables[WINDOWS].delete(_rows(inside, number))


class _Due:
    # Moments in their order, without times of the clock that no other fact has.

    def __init__(self, store: Database) -> None:
        self._store = store
        self._idle: set[int] | None = None

    def first_after(self, after: int) -> int | None:
        moments = self._store.terms.moments
        moment = moments.first_after(after)
        while moment is not None and self._are_idle(moments.known_between(moment - 1, moment).tolist()):
            moment = moments.first_after(moment)
        return moment

    def _are_idle(self, ids: list[int]) -> bool:
        clocks = self._store.terms.moments.clocks
        if not clocks.issuperset(ids):
            return False
        if self._idle is None:
            self._idle = clocks - self._store.held_among(clocks, NOW)
        return self._idle.issuperset(ids)


@dataclass(frozen=True, slots=True)
class WindowMove:
    """How a change moves the windows: the rows inserted into their relation, and those deleted from it."""

    old: Windows
    new: Windows
    inserted: Ids
    deleted: Ids
    moments: Mapping[int, tuple[Ids, Ids]]
    """By window: the moments that enter it, and those that leave it."""

    def of(self, number: int) -> tuple[Ids, Ids]:
        """Return the moments that enter a window, and those that leave it."""
        return self.moments.get(number, (_NONE, _NONE))


def next_windows(
    old: Windows,
    store: Database,
    rules: Mapping[str, Rule],
    graph: HyperGraph | None,
    delta: EmbeddedFactDelta,
) -> Windows:
    """Return the windows after a change; `graph` is None if it is that of the version before."""
    if old.given:
        return old
    windows = old.windows if graph is None else windows_of(store, rules, graph)
    clock = old.clock
    for side, sign in ((delta.deleted, False), (delta.inserted, True)):
        if NOW in side:
            clock = _clock(store, side[NOW]) if sign else None
            store.terms.moments.clocks.update(side[NOW][:, 1].tolist())
    if not windows:
        return Windows(clock)
    if not old.windows:
        store.terms.moments.follow()
    return Windows(clock, windows, store.terms.moments.arrived)


def windows_of(store: Database, rules: Mapping[str, Rule], graph: HyperGraph) -> dict[int, Window]:
    """Return the windows that rules read."""
    numbers = graph.readers(_ANY_WINDOW).all
    bodies = (rules[key].body for number in numbers for key in graph.nodes[number].rules)
    atoms = (c for body in bodies for c in conjuncts(body) if isinstance(c, Atom))
    terms = {atom.args[1] for atom in atoms if atom.relation == WINDOW_RELATION}
    return {store.terms.constant(term): Window.of(term) for term in terms if isinstance(term, Literal)}


def move_windows(old: Windows, new: Windows, store: Database) -> WindowMove:
    """Return how windows move between two versions."""
    moments = store.terms.moments
    moved: dict[int, tuple[Ids, Ids]] = {}
    inserted: list[Ids] = []
    deleted: list[Ids] = []
    known: dict[_Span, Ids] = {}

    def between(spans: Iterable[_Span]) -> Ids:
        pieces = []
        for span in spans:
            if span not in known:
                known[span] = moments.between(*span)
            pieces.append(known[span])
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else _NONE

    windows = {**old.windows, **new.windows}
    fresh, micros = moments.since(old.seen) if windows else (_NONE, _NONE)
    for number in windows:
        before, after = old.span(number), new.span(number)
        entering, leaving = between(_without(after, before)), between(_without(before, after))
        # Facts of the old version have some: rules computed them, and they were in no window then.
        come = fresh[(after[0] < micros) & (micros <= after[1])]
        if len(come):
            entering = np.concatenate((entering, come))
        moved[number] = entering, leaving
        inserted += [_rows(ids, number) for ids in (entering,) if len(ids)]
        deleted += [_rows(ids, number) for ids in (leaving,) if len(ids)]
    return WindowMove(old, new, _together(inserted), _together(deleted), moved)


def filled(store: Database, rules: Mapping[str, Rule], graph: HyperGraph) -> Windows:
    """Fill the relation of windows of a version that was restored, and return its windows."""
    stated = store.explicit.tables.get(NOW)
    clock = _clock(store, stated.rows) if stated is not None and len(stated) else None
    store.terms.moments.clocks.update(stated.rows[:, 1].tolist() if stated is not None else ())
    windows = windows_of(store, rules, graph)
    if not windows:
        return Windows(clock)
    store.terms.moments.follow()
    new = Windows(clock, windows, store.terms.moments.arrived)
    store.windows.tables[WINDOWS].insert(move_windows(Windows(), new, store).inserted)
    return new


def _clock(store: Database, rows: Ids) -> int | None:
    """Return the latest moment of rows of the clock."""
    moments = rows[:, 1][store.dictionary.kinds[rows[:, 1]] == L.K_MOMENT]
    return int(store.dictionary.payloads[moments].max()) if len(moments) else None


def _without(span: _Span, other: _Span) -> Iterable[_Span]:
    """Return the parts of a span that are not in another."""
    if other[0] >= other[1]:
        parts = [span]
    else:
        parts = [(span[0], min(span[1], other[0])), (max(span[0], other[1]), span[1])]
    return [part for part in parts if part[0] < part[1]]


def _rows(ids: Ids, number: int) -> Ids:
    rows = np.empty((len(ids), 2), np.int32)
    rows[:, 0], rows[:, 1] = ids, number
    return rows


def _together(pieces: list[Ids]) -> Ids:
    return np.concatenate(pieces) if pieces else np.zeros((0, 2), np.int32)
