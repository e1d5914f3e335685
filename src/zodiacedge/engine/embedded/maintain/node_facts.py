"""The facts of one hyper-node under change, and the rule instances that connect them.

Deletion and insertion need the same operations on a node: the facts of a set that its segment holds, their
consequences, and the instances that derive them. The choice of the facts to delete is left to
`backward_forward` and `dred`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.maintain.delta_query import evaluate_delta
from zodiacedge.engine.embedded.maintain.delta_sets import select, union
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, as_pairs, by_class
from zodiacedge.engine.embedded.versions.ownership import OUTSIDE
from zodiacedge.language.ast import Atom

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.embedded.versions.draft import Delta, Draft

    DeltaRows = list[tuple[Ids, int]]


class Instances(NamedTuple):
    """Instances of a rule, a row each: the head, and the facts of its own node that the body needs."""

    head: tuple[Relation, Ids]
    needs: tuple[tuple[Relation, Ids], ...]


class NodeFacts:
    """The segment of a node and the instances of its rules, in the old version and in the next."""

    def __init__(self, draft: Draft, node_rules: NodeRules, own: Segment, added: Collection[str]) -> None:
        """Take a node, its segment and the keys of its rules that the old version did not have."""
        self.draft = draft
        self.node_rules = node_rules
        self.own = own
        self.added = added

    # Instances.

    def heads_at(self, key: str, position: int, delta_rows: DeltaRows, *, old: bool) -> Delta:
        """Return the heads of instances of a rule with the delta rows at a position of its body."""
        columns = self.node_rules.head_columns(key)
        if columns is not None and len(delta_rows) == 1:
            rows = delta_rows[0][0][:, columns]
            self.draft.derivations += len(rows)
            return self.heads(key, rows)
        query = self.node_rules.heads_at(key, position)
        return self.heads(key, evaluate_delta(self.draft, query, delta_rows, self.own, old=old))

    def heads(self, key: str, rows: Ids) -> Delta:
        """Return rows of a rule's head as facts."""
        if not len(rows):
            return {}
        relation = self.node_rules.heads[key]
        return dict(by_class(relation, rows))

    def consequences(self, delta: Delta, *, old: bool) -> Delta:
        """Return the heads of instances that need a fact of the delta without an owner outside the node."""
        delta = select(delta, lambda relation, rows: ~self.is_outside(relation, rows))
        heads: Delta = {}
        for key, rule in self.node_rules.rules.items():
            if old and key in self.added:
                continue
            for position in self.node_rules.own_positions[key]:
                conjunct = rule.body[position]
                delta_rows = self._matching(conjunct, delta) if isinstance(conjunct, Atom) else []
                if delta_rows:
                    heads = union(heads, self.heads_at(key, position, delta_rows, old=old))
        return heads

    def supported(self, delta: Delta) -> Delta:
        """Return the facts of a set that have an instance on the next version."""
        heads: Delta = {}
        for key, rule in self.node_rules.rules.items():
            delta_rows = self._matching(rule.head, delta)
            if delta_rows:
                rows = evaluate_delta(
                    self.draft, self.node_rules.supported(key), delta_rows, self.own, old=False
                )
                heads = union(heads, self.heads(key, rows))
        return heads

    def instances(self, goals: Delta) -> Iterator[Instances]:
        """Yield the instances of facts on the next version, with the facts of the node that they need."""
        self.draft.check_time()
        for key, rule in self.node_rules.rules.items():
            delta_rows = self._matching(rule.head, goals)
            if not delta_rows:
                continue
            rows = evaluate_delta(self.draft, self.node_rules.instances(key), delta_rows, self.own, old=False)
            if len(rows):
                yield from _instances_of(rows, [rule.head, *self.node_rules.own_atoms(key)])

    def _matching(self, atom: Atom, delta: Delta) -> DeltaRows:
        """Return the facts of a set that may match an atom."""
        if not delta:
            return []
        relations = self.node_rules.relations(self.draft.store, atom)
        if relations is None:
            return [(rows, relation.member_of) for relation, rows in delta.items() if relation.is_class]
        return [(delta[relation], relation.member_of) for relation in relations if relation in delta]

    # The segment.

    def is_outside(self, relation: Relation, rows: Ids) -> Flags:
        """Return a flag per row: whether an owner other than the node holds it in the next version."""
        outside: Flags = self.draft.flags(relation, rows, self.own) & OUTSIDE != 0
        return outside

    def held(self, delta: Delta) -> Delta:
        """Return the facts of a set that the segment holds in the next version."""
        return self._select(delta, held=True)

    def lacking(self, delta: Delta) -> Delta:
        """Return the facts of a set that the segment does not hold in the next version."""
        return self._select(delta, held=False)

    def _select(self, delta: Delta, *, held: bool) -> Delta:
        selected: Delta = {}
        for relation, rows in delta.items():
            those = self.draft.held_rows(relation, rows, self.own, held=held)
            if len(those):
                selected[relation] = those
        return selected

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
        if self.node_rules.typed and relation.is_class:
            return TYPED, as_pairs(relation, rows)
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
        for facts, positions in groups:
            for relation, which, own in _grouped(Relation(atom.relation, width), columns[positions]):
                kept = tuple((r, part[which]) for r, part in facts)
                following.append(((*kept, (relation, own)), positions[which]))
        groups = following
    for facts, _ in groups:
        yield Instances(facts[0], facts[1:])


def _grouped(relation: Relation, rows: Ids) -> Iterator[tuple[Relation, Ids, Ids]]:
    """Yield the relations of rows, the numbers of their rows, and the rows as their tables hold them."""
    for stored, own in by_class(relation, rows):
        if stored == relation:
            yield stored, np.arange(len(rows), dtype=np.int32), own
        else:
            yield stored, np.flatnonzero(rows[:, 1] == stored.member_of).astype(np.int32), own
