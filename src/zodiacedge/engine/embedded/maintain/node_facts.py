"""The facts of one hyper-node under change, and the rule instances that connect them.

Deletion and insertion ask the same few questions of a node: which of these facts does its segment hold, what
follows from them, which instances derive them. How facts are deleted is left to `backward_forward` and
`dred`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.maintain.delta_query import evaluate_delta
from zodiacedge.engine.embedded.maintain.delta_sets import select, union
from zodiacedge.engine.embedded.storage.database import NO_CLASS, TYPED, Relation, by_class
from zodiacedge.engine.embedded.versions.ownership import OUTSIDE
from zodiacedge.language.ast import Atom

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.database import Segment
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.embedded.versions.draft import Delta, Draft

    Given = list[tuple[Ids, int]]


class Instances(NamedTuple):
    """Instances of a rule, a row each: the head, and the facts of its own node that the body needs."""

    head: tuple[Relation, Ids]
    needs: tuple[tuple[Relation, Ids], ...]


class NodeFacts:
    """The segment of a node and the instances of its rules, in the old version and in the next."""

    def __init__(self, draft: Draft, shape: NodeRules, own: Segment, added: Collection[str]) -> None:
        """Take a node, its segment and the keys of its rules that the old version did not have."""
        self.draft = draft
        self.shape = shape
        self.own = own
        self.added = added

    # Instances.

    def heads_at(self, key: str, place: int, given: Given, *, old: bool) -> Delta:
        """Return the heads of instances of a rule that have given rows at a position of its body."""
        columns = self.shape.head_columns(key)
        if columns is not None and len(given) == 1:
            rows = given[0][0][:, columns]
            self.draft.derivations += len(rows)
            return self.heads(key, rows)
        query = self.shape.heads_at(key, place)
        return self.heads(key, evaluate_delta(self.draft, query, given, self.own, old=old))

    def heads(self, key: str, rows: Ids) -> Delta:
        """Return rows of a rule's head as facts."""
        if not len(rows):
            return {}
        relation = self.shape.heads[key]
        return {relation: rows} if relation != TYPED else dict(by_class(relation, rows))

    def consequences(self, delta: Delta, *, old: bool) -> Delta:
        """Return the heads of instances that need a given fact of the node which has no support outside."""
        delta = select(delta, lambda relation, rows: ~self.is_outside(relation, rows))
        heads: Delta = {}
        for key, rule in self.shape.rules.items():
            if old and key in self.added:
                continue
            for place in self.shape.own_places[key]:
                conjunct = rule.body[place]
                given = self._matching(conjunct, delta) if isinstance(conjunct, Atom) else []
                if given:
                    heads = union(heads, self.heads_at(key, place, given, old=old))
        return heads

    def supported(self, delta: Delta) -> Delta:
        """Return the facts of a set that have an instance on the next version."""
        heads: Delta = {}
        for key, rule in self.shape.rules.items():
            given = self._matching(rule.head, delta)
            if given:
                rows = evaluate_delta(self.draft, self.shape.supported(key), given, self.own, old=False)
                heads = union(heads, self.heads(key, rows))
        return heads

    def instances(self, goals: Delta) -> Iterator[Instances]:
        """Yield the instances of facts on the next version, with the facts of the node that they need."""
        self.draft.check_time()
        for key, rule in self.shape.rules.items():
            given = self._matching(rule.head, goals)
            if not given:
                continue
            rows = evaluate_delta(self.draft, self.shape.instances(key), given, self.own, old=False)
            if len(rows):
                yield from _instances_of(rows, [rule.head, *self.shape.own_atoms(key)])

    def _matching(self, atom: Atom, delta: Delta) -> Given:
        """Return the facts of a set that may match an atom."""
        if not delta:
            return []
        relations = self.shape.relations(self.draft.store, atom)
        if relations is None:
            return [(rows, one.member_of) for one, rows in delta.items() if one.member_of != NO_CLASS]
        return [(delta[one], one.member_of) for one in relations if one in delta]

    # The segment.

    def is_outside(self, relation: Relation, rows: Ids) -> Flags:
        """Tell of each row whether an owner other than the node holds it in the next version."""
        outside: Flags = self.draft.flags(relation, rows, self.own) & OUTSIDE != 0
        return outside

    def held(self, delta: Delta) -> Delta:
        """Return the facts of a set that the segment holds in the next version."""
        return select(delta, lambda relation, rows: self.draft.held(relation, rows, self.own))

    def lacking(self, delta: Delta) -> Delta:
        """Return the facts of a set that the segment does not hold in the next version."""
        return select(delta, lambda relation, rows: ~self.draft.held(relation, rows, self.own))

    def delete(self, delta: Delta) -> None:
        """Delete facts that the segment holds."""
        for relation, rows in delta.items():
            stored, own = self._stored(relation, rows)
            self.draft.overlay(self.own, stored).remove(own)

    def insert(self, delta: Delta) -> None:
        """Insert facts that the segment does not hold."""
        for relation, rows in delta.items():
            stored, own = self._stored(relation, rows)
            self.draft.overlay(self.own, stored).add(own)

    def _stored(self, relation: Relation, rows: Ids) -> tuple[Relation, Ids]:
        if self.shape.typed and relation.member_of != NO_CLASS:
            return TYPED, np.insert(rows, 1, relation.member_of, axis=1)
        return relation, rows


def _instances_of(rows: Ids, atoms: Sequence[Atom]) -> Iterator[Instances]:
    """Yield instances from rows that hold the arguments of a head and of each need, grouped by class."""
    groups: list[tuple[tuple[tuple[Relation, Ids], ...], Ids]] = [((), np.arange(len(rows), dtype=np.int32))]
    start = 0
    for atom in atoms:
        width = len(atom.args)
        columns = rows[:, start : start + width]
        start += width
        following: list[tuple[tuple[tuple[Relation, Ids], ...], Ids]] = []
        for facts, places in groups:
            for relation, which, own in _grouped(Relation(atom.relation, width), columns[places]):
                kept = tuple((r, part[which]) for r, part in facts)
                following.append(((*kept, (relation, own)), places[which]))
        groups = following
    for facts, _ in groups:
        yield Instances(facts[0], facts[1:])


def _grouped(relation: Relation, rows: Ids) -> Iterator[tuple[Relation, Ids, Ids]]:
    """Yield the relations of rows, the numbers of their rows, and the rows as their tables hold them."""
    for one, own in by_class(relation, rows):
        if one == relation:
            yield one, np.arange(len(rows), dtype=np.int32), own
        else:
            yield one, np.flatnonzero(rows[:, 1] == one.member_of).astype(np.int32), own
