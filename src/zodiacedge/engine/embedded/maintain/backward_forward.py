"""Backward/Forward: which facts of a recursive node still have a proof that does not run in a circle.

From the facts in question the search goes backward along all their instances, to the facts of the node that
these need, and on from there; a fact that has an instance whose needs are all certain is derived, and makes
others certain in turn. Certain are the facts that come from outside the node and those that were derived in
this search, and no others: a fact of the node that nobody doubts may still lean on one that is in question.
The search ends as soon as every fact in question is derived, or when there is nothing left to explore.
Everything is done for whole sets of facts at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.storage.database import by_class
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from zodiacedge.engine.embedded.storage.database import Relation
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.embedded.versions.draft import Delta


class Instances(NamedTuple):
    """Instances of a rule, a row each: the head, and the facts of its own node that the body needs."""

    head: tuple[Relation, Ids]
    needs: tuple[tuple[Relation, Ids], ...]


@dataclass(slots=True)
class _Facts:
    # The facts of one relation that the search has met, numbered as they came, and what is known of each.
    table: Table
    certain: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    derived: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    explored: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))

    def meet(self, rows: Ids, is_certain: Callable[[Ids], Flags]) -> Ids:
        """Return the numbers of facts; those that are new get one."""
        known = len(self.certain)
        self.table.insert(rows)
        fresh = self.table.rows[known:]
        if len(fresh):
            nothing = np.zeros(len(fresh), np.bool_)
            self.certain = np.concatenate((self.certain, is_certain(fresh)))
            self.derived = np.concatenate((self.derived, nothing))
            self.explored = np.concatenate((self.explored, nothing))
        return self.table.places(rows)


@dataclass(slots=True)
class _Numbered:
    # Instances with their facts as numbers; those whose head is derived are left out as time goes by.
    head: tuple[_Facts, Ids]
    needs: tuple[tuple[_Facts, Ids], ...]


class BackwardForward:
    """One search. What it derived stays derived while the node is worked on."""

    def __init__(
        self, instances: Callable[[Delta], Iterator[Instances]], is_certain: Callable[[Relation, Ids], Flags]
    ) -> None:
        """Take what gives the instances of facts, and what tells which facts come from outside."""
        self._instances = instances
        self._is_certain = is_certain
        self._facts: dict[Relation, _Facts] = {}
        self._open: list[_Numbered] = []
        self.explored = 0

    def unproved(self, goals: Delta) -> Delta:
        """Return those of some facts that have no proof."""
        asked = {relation: self._meet(relation, rows) for relation, rows in goals.items()}
        frontier = {relation: places for relation, (_, places) in asked.items()}
        while frontier:
            self._explore(frontier)
            if all(facts.derived[places].all() for facts, places in asked.values()):
                break
            frontier = self._needs()
        found = {
            relation: goals[relation][~facts.derived[places]] for relation, (facts, places) in asked.items()
        }
        return {relation: rows for relation, rows in found.items() if len(rows)}

    def _meet(self, relation: Relation, rows: Ids) -> tuple[_Facts, Ids]:
        facts = self._facts.get(relation)
        if facts is None:
            facts = self._facts[relation] = _Facts(Table(relation.arity))
        return facts, facts.meet(rows, lambda fresh: self._is_certain(relation, fresh))

    def _explore(self, frontier: dict[Relation, Ids]) -> None:
        """Take in the instances of facts that were not explored yet, and derive what follows."""
        goals: Delta = {}
        for relation, places in frontier.items():
            facts = self._facts[relation]
            new = places[~facts.explored[places]]
            facts.explored[new] = True
            if len(new):
                goals[relation] = facts.table.rows[new]
                self.explored += len(new)
        for one in self._instances(goals):
            needs = tuple(self._meet(relation, rows) for relation, rows in one.needs)
            self._open.append(_Numbered(self._meet(*one.head), needs))
        self._saturate()

    def _needs(self) -> dict[Relation, Ids]:
        """Return the facts that underived ones lean on, if they are neither certain nor explored."""
        found: dict[Relation, Ids] = {}
        for relation, facts in self._facts.items():
            wanted = np.zeros(len(facts.certain), np.bool_)
            for one in self._open:
                for needed, places in one.needs:
                    if needed is facts:
                        wanted[places] = True
            places = np.flatnonzero(wanted & ~facts.certain & ~facts.explored).astype(np.int32)
            if len(places):
                found[relation] = places
        return found

    def _saturate(self) -> None:
        """Derive what can be derived from what is certain."""
        more = True
        while more:
            more = False
            for one in self._open:
                facts, heads = one.head
                fires = ~facts.derived[heads]
                for needed, places in one.needs:
                    fires &= needed.certain[places]
                if fires.any():
                    facts.derived[heads[fires]] = True
                    facts.certain[heads[fires]] = True
                    more = True
        self._open = [kept for kept in map(_waiting, self._open) if len(kept.head[1])]


def _waiting(one: _Numbered) -> _Numbered:
    facts, heads = one.head
    waits = ~facts.derived[heads]
    return _Numbered((facts, heads[waits]), tuple((needed, places[waits]) for needed, places in one.needs))


def instances_of(
    rows: Ids, head: tuple[Relation, int], needs: Sequence[tuple[Relation, int]]
) -> Iterator[Instances]:
    """Yield instances from rows that hold a head and the needs behind it, dealt out by class.

    Args:
        rows: The arguments of the head, then those of each need.
        head: The head's relation and number of arguments.
        needs: The same of each need.
    """
    groups: list[tuple[tuple[tuple[Relation, Ids], ...], Ids]] = [((), np.arange(len(rows), dtype=np.int32))]
    start = 0
    for relation, width in (head, *needs):
        columns = rows[:, start : start + width]
        start += width
        following: list[tuple[tuple[tuple[Relation, Ids], ...], Ids]] = []
        for parts, places in groups:
            for one, which, own in _dealt(relation, columns[places]):
                kept = tuple((r, part[which]) for r, part in parts)
                following.append(((*kept, (one, own)), places[which]))
        groups = following
    for parts, _ in groups:
        yield Instances(parts[0], parts[1:])


def _dealt(relation: Relation, rows: Ids) -> Iterator[tuple[Relation, Ids, Ids]]:
    """Yield the relations of rows, which rows they are, and the rows as their tables hold them."""
    for one, own in by_class(relation, rows):
        if one == relation:
            yield one, np.arange(len(rows), dtype=np.int32), own
        else:
            yield one, np.flatnonzero(rows[:, 1] == one.member_of).astype(np.int32), own
