"""Backward/Forward: deletes the facts of a recursive node that have no well-founded proof any more.

From the candidates the search goes backward along all their instances to the facts of the node that these
need, and further; forward, a fact with an instance whose needs are all certain is derived, and thereby
certain. Only facts of other owners and facts derived in this search are certain: a fact of the node that is
no candidate may still depend on a candidate. The search ends when every candidate is derived, or when no fact
is left to explore. Every step handles whole sets of facts.

B. Motik, Y. Nenov, R. Piro, I. Horrocks: Incremental Update of Datalog Materialisation: the Backward/Forward
Algorithm. AAAI 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.embedded.maintain.node_facts import NodeFacts
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.embedded.versions.draft import Delta


def delete_unproved(node: NodeFacts, candidates: Delta) -> None:
    """Delete the candidates without a proof, and the facts derived from them without a proof."""
    search = BackwardForward(node)
    while candidates:
        node.draft.check_time()
        unproved = search.unproved(candidates)
        node.delete(unproved)
        candidates = node.held(node.consequences(unproved, old=True))


@dataclass(slots=True)
class _Facts:
    # The facts of one relation that the search has reached, numbered in order, with flags.
    table: Table
    certain: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    derived: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    explored: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))

    def numbers(self, rows: Ids, is_certain: Callable[[Ids], Flags]) -> Ids:
        """Return the numbers of facts; new facts get a number and flags."""
        known = len(self.certain)
        self.table.insert(rows)
        fresh = self.table.rows[known:]
        if len(fresh):
            unset = np.zeros(len(fresh), np.bool_)
            self.certain = np.concatenate((self.certain, is_certain(fresh)))
            self.derived = np.concatenate((self.derived, unset))
            self.explored = np.concatenate((self.explored, unset))
        return self.table.positions(rows)


@dataclass(slots=True)
class _Numbered:
    # Instances with their facts as numbers; instances whose head is derived are dropped after each round.
    head: tuple[_Facts, Ids]
    needs: tuple[tuple[_Facts, Ids], ...]


class BackwardForward:
    """The search for proofs in one node; derived facts stay derived in later searches."""

    def __init__(self, node: NodeFacts) -> None:
        """Take the node."""
        self._node = node
        self._facts: dict[Relation, _Facts] = {}
        self._open: list[_Numbered] = []

    def unproved(self, goals: Delta) -> Delta:
        """Return the facts of a set that have no proof."""
        numbered = {relation: self._numbered(relation, rows) for relation, rows in goals.items()}
        frontier = {relation: positions for relation, (_, positions) in numbered.items()}
        while frontier:
            self._explore(frontier)
            if all(facts.derived[positions].all() for facts, positions in numbered.values()):
                break
            frontier = self._needs()
        rest = {
            relation: goals[relation][~facts.derived[positions]]
            for relation, (facts, positions) in numbered.items()
        }
        return {relation: rows for relation, rows in rest.items() if len(rows)}

    def _numbered(self, relation: Relation, rows: Ids) -> tuple[_Facts, Ids]:
        facts = self._facts.get(relation)
        if facts is None:
            facts = self._facts[relation] = _Facts(Table(relation.arity))
        return facts, facts.numbers(rows, lambda fresh: self._node.is_outside(relation, fresh))

    def _explore(self, frontier: dict[Relation, Ids]) -> None:
        """Add the instances of facts that were not explored yet, and derive their consequences."""
        goals: Delta = {}
        for relation, positions in frontier.items():
            facts = self._facts[relation]
            new = positions[~facts.explored[positions]]
            facts.explored[new] = True
            if len(new):
                goals[relation] = facts.table.rows[new]
        for instances in self._node.instances(goals):
            needs = tuple(self._numbered(relation, rows) for relation, rows in instances.needs)
            self._open.append(_Numbered(self._numbered(*instances.head), needs))
        self._saturate()

    def _needs(self) -> dict[Relation, Ids]:
        """Return the facts that instances need and that are neither certain nor explored."""
        needs: dict[Relation, Ids] = {}
        for relation, facts in self._facts.items():
            wanted = np.zeros(len(facts.certain), np.bool_)
            for instances in self._open:
                for needed, positions in instances.needs:
                    if needed is facts:
                        wanted[positions] = True
            positions = np.flatnonzero(wanted & ~facts.certain & ~facts.explored).astype(np.int32)
            if len(positions):
                needs[relation] = positions
        return needs

    def _saturate(self) -> None:
        """Derive the heads whose needs are all certain, to the fixpoint."""
        more = True
        while more:
            more = False
            for instances in self._open:
                facts, heads = instances.head
                fires = ~facts.derived[heads]
                for needed, positions in instances.needs:
                    fires &= needed.certain[positions]
                if fires.any():
                    facts.derived[heads[fires]] = True
                    facts.certain[heads[fires]] = True
                    more = True
        self._open = [kept for kept in map(_waiting, self._open) if len(kept.head[1])]


def _waiting(instances: _Numbered) -> _Numbered:
    facts, heads = instances.head
    waits = ~facts.derived[heads]
    needs = tuple((needed, positions[waits]) for needed, positions in instances.needs)
    return _Numbered((facts, heads[waits]), needs)
