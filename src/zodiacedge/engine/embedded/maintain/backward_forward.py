"""Backward/Forward: deletes the facts of a recursive node that have no well-founded proof any more.

From the candidates the search goes backward along all their instances, to the facts of the node that these
need, and on from there; forward, a fact with an instance whose needs are all certain is derived, and makes
others certain in turn. Certain are the facts that other owners hold and those that were derived in this
search, and no others: a fact of the node that is no candidate may still depend on one. The search ends as
soon as every candidate is derived, or when nothing is left to explore. Every step is done for whole sets of
facts.

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
    """Delete the candidates that have no proof, and the facts derived from them that have none either."""
    search = BackwardForward(node)
    while candidates:
        node.draft.check_time()
        unproved = search.unproved(candidates)
        node.delete(unproved)
        candidates = node.held(node.consequences(unproved, old=True))


@dataclass(slots=True)
class _Facts:
    # The facts of one relation that the search has met, numbered in order, and what is known of each.
    table: Table
    certain: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    derived: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    explored: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))

    def meet(self, rows: Ids, is_certain: Callable[[Ids], Flags]) -> Ids:
        """Return the numbers of facts; new facts are numbered."""
        known = len(self.certain)
        self.table.insert(rows)
        fresh = self.table.rows[known:]
        if len(fresh):
            nothing = np.zeros(len(fresh), np.bool_)
            self.certain = np.concatenate((self.certain, is_certain(fresh)))
            self.derived = np.concatenate((self.derived, nothing))
            self.explored = np.concatenate((self.explored, nothing))
        return self.table.positions(rows)


@dataclass(slots=True)
class _Numbered:
    # Instances with their facts as numbers; those whose head is derived are left out after each round.
    head: tuple[_Facts, Ids]
    needs: tuple[tuple[_Facts, Ids], ...]


class BackwardForward:
    """The search for proofs in one node; a fact that it derived stays derived."""

    def __init__(self, node: NodeFacts) -> None:
        """Take the node, which gives the instances of facts and tells which other owners hold."""
        self._node = node
        self._facts: dict[Relation, _Facts] = {}
        self._open: list[_Numbered] = []

    def unproved(self, goals: Delta) -> Delta:
        """Return the facts of a set that have no proof."""
        asked = {relation: self._meet(relation, rows) for relation, rows in goals.items()}
        frontier = {relation: places for relation, (_, places) in asked.items()}
        while frontier:
            self._explore(frontier)
            if all(facts.derived[places].all() for facts, places in asked.values()):
                break
            frontier = self._needs()
        rest = {
            relation: goals[relation][~facts.derived[places]] for relation, (facts, places) in asked.items()
        }
        return {relation: rows for relation, rows in rest.items() if len(rows)}

    def _meet(self, relation: Relation, rows: Ids) -> tuple[_Facts, Ids]:
        facts = self._facts.get(relation)
        if facts is None:
            facts = self._facts[relation] = _Facts(Table(relation.arity))
        return facts, facts.meet(rows, lambda fresh: self._node.is_outside(relation, fresh))

    def _explore(self, frontier: dict[Relation, Ids]) -> None:
        """Add the instances of facts that were not explored yet, and derive what follows."""
        goals: Delta = {}
        for relation, places in frontier.items():
            facts = self._facts[relation]
            new = places[~facts.explored[places]]
            facts.explored[new] = True
            if len(new):
                goals[relation] = facts.table.rows[new]
        for instances in self._node.instances(goals):
            needs = tuple(self._meet(relation, rows) for relation, rows in instances.needs)
            self._open.append(_Numbered(self._meet(*instances.head), needs))
        self._saturate()

    def _needs(self) -> dict[Relation, Ids]:
        """Return the facts that underived ones need, if they are neither certain nor explored."""
        needs: dict[Relation, Ids] = {}
        for relation, facts in self._facts.items():
            wanted = np.zeros(len(facts.certain), np.bool_)
            for instances in self._open:
                for needed, places in instances.needs:
                    if needed is facts:
                        wanted[places] = True
            places = np.flatnonzero(wanted & ~facts.certain & ~facts.explored).astype(np.int32)
            if len(places):
                needs[relation] = places
        return needs

    def _saturate(self) -> None:
        """Derive the heads whose needs are all certain, to the fixpoint."""
        more = True
        while more:
            more = False
            for instances in self._open:
                facts, heads = instances.head
                fires = ~facts.derived[heads]
                for needed, places in instances.needs:
                    fires &= needed.certain[places]
                if fires.any():
                    facts.derived[heads[fires]] = True
                    facts.certain[heads[fires]] = True
                    more = True
        self._open = [kept for kept in map(_waiting, self._open) if len(kept.head[1])]


def _waiting(instances: _Numbered) -> _Numbered:
    facts, heads = instances.head
    waits = ~facts.derived[heads]
    needs = tuple((needed, places[waits]) for needed, places in instances.needs)
    return _Numbered((facts, heads[waits]), needs)
