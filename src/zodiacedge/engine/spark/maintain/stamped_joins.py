"""Joins of rule bodies with rows that are looked up on the way, and the stamps of the rows that are joined.

Bindings are columns of terms, so that a join is a few operations on arrays however many there are. A search
for one instance per fact tries a few rows of each join first, and more for the facts that are left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.maintain.stamped_rows import NEVER, View
from zodiacedge.engine.spark.storage.files import Relation
from zodiacedge.language.ast import Atom, Negation, Variable
from zodiacedge.plan.order import expected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.spark.maintain.stamped_rows import Budget, Rows
    from zodiacedge.language.ast import Argument, Conjunct
    from zodiacedge.terms import Term

    Places = NDArray[np.intp]

# About so many bindings are joined at once.
_AT_ONCE = 1 << 19
# A search for one instance tries so many rows first, and then each time so many times more.
_FIRST_TRIED = 8
_MORE_TRIED = 4


@dataclass(frozen=True, slots=True)
class Bindings:
    """Bindings of a body's variables."""

    terms: Mapping[Variable, Ids]
    source: Ids
    """The number of the row that each began with."""
    stamp: Ids
    """The largest stamp of the rows that were joined."""

    def __len__(self) -> int:
        """Return the number of bindings."""
        return len(self.source)

    def only(self, bound: Collection[Variable]) -> Bindings:
        """Return the bindings of some variables."""
        return replace(self, terms={v: ids for v, ids in self.terms.items() if v in bound})

    def chosen(self, chosen: Places | Flags) -> Bindings:
        """Return some of them."""
        terms = {variable: ids[chosen] for variable, ids in self.terms.items()}
        return Bindings(terms, self.source[chosen], self.stamp[chosen])


@dataclass(frozen=True)
class Search:
    """What a search for instances takes."""

    view: View
    below: Ids | None = None
    """By source: all rows must have smaller stamps than this."""
    found: Flags | None = None
    """By source: whether an instance was found, which the caller sets; no more are wanted."""

    def limit(self, source: Ids) -> Ids | np.int32:
        """Return what stamps must be smaller than."""
        return NEVER if self.below is None else self.below[source]


class Joins:
    """Joins of the bodies of one node's rules."""

    def __init__(self, rows: Mapping[Relation, Rows], ids: Mapping[Term, int], budget: Budget) -> None:
        """Take the rows of all relations, and the ids of the terms of rules."""
        self._rows = rows
        self._ids = ids
        self._budget = budget

    def starts(self, args: Sequence[Argument], rows: Ids, stamps: Ids | None = None) -> Bindings:
        """Return the bindings of arguments that unify with rows."""
        chosen = np.ones(len(rows), np.bool_)
        terms: dict[Variable, Ids] = {}
        for n, arg in enumerate(args):
            known = terms.get(arg) if isinstance(arg, Variable) else self._ids[arg]
            if known is not None:
                chosen &= rows[:, n] == known
            elif isinstance(arg, Variable):
                terms[arg] = rows[:, n]
        stamp = np.zeros(len(rows), np.int32) if stamps is None else stamps
        return Bindings(terms, np.arange(len(rows), dtype=np.int32), stamp).chosen(chosen)

    def heads(self, head: Atom, bindings: Bindings) -> Ids:
        """Return the head of each binding."""
        columns = (
            bindings.terms[arg]
            if isinstance(arg, Variable)
            else np.full(len(bindings), self._ids[arg], np.int32)
            for arg in head.args
        )
        return np.stack(list(columns), axis=1)

    def instances(
        self, body: Sequence[Conjunct], skip: int | None, starts: Bindings, search: Search
    ) -> Iterator[Bindings]:
        """Yield the bindings of all instances of a body, but for the conjunct at one position."""
        left = [c for n, c in enumerate(body) if n != skip and isinstance(c, Atom)]
        negated = [c.atom for n, c in enumerate(body) if n != skip and isinstance(c, Negation)]
        for bindings in self._joined(left, starts, search):
            kept = bindings
            for atom in negated:
                kept = kept.chosen(~self._matched(atom, kept, search.view))
            if len(kept):
                yield kept

    def _joined(self, left: Sequence[Atom], bindings: Bindings, search: Search) -> Iterator[Bindings]:
        if search.found is not None:
            bindings = bindings.chosen(~search.found[bindings.source])
        if not len(bindings):
            return
        if not left:
            yield bindings
            return
        atom = min(left, key=lambda atom: self._expected(atom, bindings))
        rest = [other for other in left if other is not atom]
        for joined in self._expanded(atom, bindings, search):
            yield from self._joined(rest, joined, search)

    def _expected(self, atom: Atom, bindings: Bindings) -> float:
        rows = self._rows[Relation.of(atom)]
        return expected(rows.size, atom, tuple(self._known(atom, bindings)))

    def _known(self, atom: Atom, bindings: Bindings) -> dict[int, Ids]:
        """Return the terms of the columns of an atom that bindings know."""
        known = {}
        for n, arg in enumerate(atom.args):
            if not isinstance(arg, Variable):
                known[n] = np.full(len(bindings), self._ids[arg], np.int32)
            elif arg in bindings.terms:
                known[n] = bindings.terms[arg]
        return known

    def _expanded(self, atom: Atom, bindings: Bindings, search: Search) -> Iterator[Bindings]:
        """Yield bindings joined with the rows of an atom."""
        rows, known = self._rows[Relation.of(atom)], self._known(atom, bindings)
        if len(known) == len(atom.args):
            positions = rows.positions(np.stack([known[n] for n in range(len(known))], axis=1))
            yield self._with(rows, atom, bindings, positions, search)
            return
        for order, first, counts in self._ranges(rows, known, len(bindings)):
            taken, size = 0, _AT_ONCE if search.found is None else _FIRST_TRIED
            waiting = np.flatnonzero(counts)
            while len(waiting):
                if search.found is not None:
                    waiting = waiting[~search.found[bindings.source[waiting]]]
                size = max(1, min(size, _AT_ONCE // max(len(waiting), 1)))
                tried = np.minimum(counts[waiting] - taken, size)
                number, at = _spread(waiting, first[waiting] + taken, tried)
                positions = order[at]
                self._budget.take(0)
                same = np.ones(len(positions), np.bool_)
                for n, terms in known.items():
                    same &= rows.table.rows[positions, n] == terms[number]
                yield self._with(rows, atom, bindings.chosen(number[same]), positions[same], search)
                taken += size
                waiting = waiting[counts[waiting] > taken]
                size *= _MORE_TRIED

    def _ranges(
        self, rows: Rows, known: Mapping[int, Ids], count: int
    ) -> Iterator[tuple[Ids, Places, Places]]:
        """Yield sorted positions of rows, and where those of each binding begin and how many they are."""
        if not known:
            every = rows.all_positions()
            yield every, np.zeros(count, np.intp), np.full(count, len(every), np.intp)
            return
        column = rows.cheapest(known)
        rows.fetch(column, known[column])
        for order, terms in rows.pieces(column):
            first = np.searchsorted(terms, known[column], side="left")
            yield order, first, np.searchsorted(terms, known[column], side="right") - first

    def _with(self, rows: Rows, atom: Atom, bindings: Bindings, positions: Ids, search: Search) -> Bindings:
        """Return bindings joined with one row each, if it is there and not too late."""
        stamps = rows.stamps(search.view, positions)
        chosen = stamps < search.limit(bindings.source)
        joined = bindings.chosen(chosen)
        found = rows.table.rows[positions[chosen]]
        terms = dict(joined.terms)
        same = np.ones(len(found), np.bool_)
        for n, arg in enumerate(atom.args):
            if isinstance(arg, Variable):
                if arg in terms and arg not in bindings.terms:
                    # A variable that occurs twice in this atom.
                    same &= terms[arg] == found[:, n]
                terms.setdefault(arg, found[:, n])
        stamp = np.maximum(joined.stamp, stamps[chosen])
        return Bindings(terms, joined.source, stamp).chosen(same)

    def _matched(self, atom: Atom, bindings: Bindings, view: View) -> Flags:
        """Return for each binding whether a negated atom has a match."""
        # What was denied only before, or is only now, does not rule an instance out.
        found = np.zeros(len(bindings), np.bool_)
        search = Search(View.BOTH if view is View.EITHER else view, found=found)
        starts = replace(bindings, source=np.arange(len(bindings), dtype=np.int32))
        for matches in self._expanded(atom, starts, search):
            found[matches.source] = True
        return found


def _spread(numbers: Places, first: Places, counts: Places) -> tuple[Places, Places]:
    """Return each number as often as its count, with as many places from its first one on."""
    ends = np.cumsum(counts)
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(numbers, counts), np.repeat(first, counts) + places
