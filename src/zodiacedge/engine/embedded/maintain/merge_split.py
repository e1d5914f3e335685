"""The segments of nodes that merge, split or lose rules: new nodes inherit tables of removed nodes.

A new node inherits the tables of the removed nodes with which it shares rules, as far as a head of the shared
rules fills them. Inherited facts that other rules of a removed node derived are suspects: they may have lost
their support. Tables that no node inherits are recorded as changed even if other owners hold their rows,
because a segment that holds them may now support them only in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.embedded.maintain.delta_query import evaluate_delta
from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
from zodiacedge.engine.embedded.maintain.shapes.inverses import stays_outside
from zodiacedge.engine.embedded.storage.relation import (
    TYPED,
    Relation,
    as_pairs,
    by_class,
    in_pairs,
    members_of,
)
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.ownership import OWN, OWN_BEFORE
from zodiacedge.language.ast import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Delta, Draft
    from zodiacedge.graph.hyper_graph import HyperGraph, NodeDelta
    from zodiacedge.language.ast import Atom, Rule

    Keys = frozenset[str]


class Lineage(NamedTuple):
    """A node whose rules were not together before: its rules, the old nodes with some of them, new rules."""

    keys: Keys
    parents: tuple[Keys, ...]
    added: tuple[str, ...]


class _NodeSets(NamedTuple):
    # The nodes that only the next version has, the old home of each rule that moved, and the removed nodes.
    new: list[Keys]
    homes: dict[str, Keys]
    removed: list[Keys]


def node_changes(
    store: Database, before: HyperGraph | None, after: HyperGraph
) -> tuple[list[Lineage], list[Keys]]:
    """Return the nodes that only the next version has, and those that only the old version has."""
    if before is None:
        nodes = _unknown_before(store, after)
    elif after.delta and after.delta.before() is before:
        nodes = _by_delta(after.delta)
    else:
        nodes = _by_comparison(before, after)
    lines = [_lineage(keys, nodes.homes) for keys in nodes.new if keys not in store.segments]
    return lines, nodes.removed


def _lineage(keys: Keys, homes: Mapping[str, Keys]) -> Lineage:
    ordered = sorted(keys)
    parents = tuple(dict.fromkeys(homes[key] for key in ordered if key in homes))
    return Lineage(keys, parents, tuple(key for key in ordered if key not in homes))


def _by_delta(delta: NodeDelta) -> _NodeSets:
    """Take the nodes from the delta between the two graphs."""
    former = [frozenset(node.rules) for node in delta.former]
    return _NodeSets([frozenset(node.rules) for node in delta.fresh], _homes(former), former)


def _unknown_before(store: Database, after: HyperGraph) -> _NodeSets:
    """Compare the nodes of a graph with the segments of a store, where the old graph is not known."""
    new = [frozenset(node.rules) for node in after.nodes.values()]
    existing = set(new)
    return _NodeSets(new, _homes(store.segments), [keys for keys in store.segments if keys not in existing])


def _by_comparison(before: HyperGraph, after: HyperGraph) -> _NodeSets:
    """Compare all nodes of two graphs."""
    old = before.nodes
    new = [frozenset(node.rules) for node in after.nodes.values() if old.get(node.id) is not node]
    former = [node.rules for node in old.values() if after.nodes.get(node.id) is not node]
    removed = [frozenset(rules) for rules in former if not _is_node(after, rules)]
    return _NodeSets(new, _homes(map(frozenset, former)), removed)


def _homes(nodes: Iterable[Keys]) -> dict[str, Keys]:
    return {key: keys for keys in nodes for key in keys}


def _is_node(graph: HyperGraph, rules: tuple[str, ...]) -> bool:
    home = graph.homes.get(rules[0])
    return home is not None and frozenset(graph.nodes[home].rules) == frozenset(rules)


@dataclass(slots=True)
class Successor:
    """A new node with its inherited segment."""

    segment: Segment
    lineage: Lineage
    merged_in: list[Segment] = field(default_factory=list)
    """The tables of further parents that were copied into the segment."""
    copied: SegmentChange = field(default_factory=SegmentChange)
    """How many of the copied rows that the segment did not have were kept and deleted, after maintenance."""

    @property
    def inherited(self) -> int:
        """The number of inherited facts."""
        return len(self.segment) + sum(map(len, self.merged_in))


@dataclass(slots=True)
class Inheritance:
    """The step from the segments of removed nodes to those of new nodes."""

    draft: Draft
    store: Database
    before: HyperGraph | None
    after: Mapping[str, Rule]
    successors: dict[Keys, Successor] = field(default_factory=dict)
    unclaimed: list[tuple[Relation, Ids]] = field(default_factory=list)
    """Rows of inherited tables that no head of the successor matches."""
    _filled: dict[tuple[int, bool], tuple[Rule, set[Relation]]] = field(default_factory=dict)
    """The relations that a rule's heads fill, by the identity of the rule, which is kept with them."""

    def hand_over(
        self, lineages: Sequence[Lineage], removed: Sequence[Keys], known: Mapping[Keys, NodeRules]
    ) -> None:
        """Hand the tables of removed nodes over to new nodes; `known` has rules of removed nodes."""
        taken: set[int] = set()
        for lineage in lineages:
            if lineage.parents:
                self._inherit(lineage, taken)
        for successor in self.successors.values():
            self.draft.add_successor(successor.segment)
        for keys in removed:
            self.draft.remove_segment(self.store.segments[keys])
        for keys in removed:
            segment, node_rules = self.store.segments[keys], known.get(keys)
            for relation, table in segment.tables.items():
                if id(table) in taken:
                    continue
                # What was only copied from outside, and back, is nobody's loss.
                if node_rules is None or not stays_outside(self.draft, node_rules, segment, relation):
                    self.draft.record_unowned(relation, table)
        for relation, rows in self.unclaimed:
            self.draft.changed.record(relation, rows)
        for successor in self.successors.values():
            self._merge_in(successor)

    def suspects(self, keys: Keys, node_rules: NodeRules) -> Delta:
        """Return the inherited facts of a node that rules outside it derived in the old version."""
        successor = self.successors[keys]
        suspects: dict[Relation, Table] = {}
        for parent in successor.lineage.parents:
            others = {key: self.before.rule(key) for key in parent - keys} if self.before else {}
            other_rules = NodeRules(others) if others else None
            for key, rule in others.items():
                if other_rules is None or not self._fills(rule, successor.segment, typed=node_rules.typed):
                    continue
                rows = evaluate_delta(
                    self.draft, other_rules.all_heads(key), (), self.store.segments[parent], old=True
                )
                for relation, own in by_class(Relation(rule.head.relation, len(rule.head.args)), rows):
                    suspects.setdefault(relation, Table(relation.arity)).insert(own)
        return {relation: table.rows for relation, table in suspects.items()}

    def lost_rules(self, node_rules: NodeRules) -> Iterator[Rule]:
        """Yield the rules whose facts are suspects: those of the node's parents that fill its tables."""
        successor = self.successors[node_rules.keys]
        for parent in successor.lineage.parents:
            for key in parent - node_rules.keys:
                rule = self.before.rule(key) if self.before else None
                if rule and self._fills(rule, successor.segment, typed=node_rules.typed):
                    yield rule

    def settle(self, successor: Successor) -> SegmentChange:
        """Record the rows copied into a segment and deleted from it as changed.

        Return how many rows that only further parents had were kept, and how many were deleted.
        """
        kept = lost = 0
        seen: dict[Relation, Table] = {}
        for further in successor.merged_in:
            for relation, table in further.tables.items():
                for stored, rows in by_class(relation, table.rows):
                    marks = self.draft.flags(stored, rows, successor.segment)
                    deleted = marks & OWN == 0
                    self.draft.changed.record(stored, rows[deleted])
                    new = marks & OWN_BEFORE == 0
                    if len(successor.merged_in) > 1:
                        # A row of several parents counts once.
                        earlier = seen.setdefault(stored, Table(stored.arity))
                        new &= ~earlier.mask(rows)
                        earlier.insert(rows)
                    kept += int(np.count_nonzero(new & ~deleted))
                    lost += int(np.count_nonzero(new & deleted))
        return SegmentChange(kept, lost)

    def _inherit(self, lineage: Lineage, taken: set[int]) -> None:
        keys = lineage.keys
        typed = in_pairs(self.after[key].head for key in keys)
        filled = {key: self._tables(self.after[key], typed=typed) for key in keys}
        successor = self.successors[keys] = Successor(Segment(), lineage)
        # The largest segment is inherited as it is, the others are merged into it.
        ordered = sorted(lineage.parents, key=lambda parent: -len(self.store.segments[parent]))
        for parent in ordered:
            segment = self.store.segments[parent]
            heads: dict[Relation, list[str]] = {}
            for key in keys & parent:
                for relation in filled[key]:
                    heads.setdefault(relation, []).append(key)
            further = Segment()
            rows = 0
            for relation, sources in heads.items():
                shared = [self.after[key] for key in sources]
                table = segment.tables.get(relation)
                if table is None:
                    table = self._other_layout(relation, segment, [self.after[key] for key in keys & parent])
                is_further = relation in successor.segment.tables
                table = self._claimed(
                    relation, table, [rule.head for rule in shared], taken, share=not is_further
                )
                (further if is_further else successor.segment).tables[relation] = table
                rows += len(table)
            if further.tables:
                successor.merged_in.append(further)
            for key in keys & segment.aggregate_rows.keys():
                successor.segment.aggregate_rows[key] = segment.aggregate_rows[key]
            # The successors of a node share its time by facts, or by rules where it has none.
            share = rows / len(segment) if len(segment) else len(keys & parent) / len(parent)
            successor.segment.seconds += segment.seconds * min(share, 1.0)
            successor.segment.multiplicity = max(successor.segment.multiplicity, segment.multiplicity)
        for key in lineage.added:
            aggregate = self.after[key].aggregate
            if aggregate:
                successor.segment.aggregate_rows[key] = Table(len(aggregate.groups) + len(aggregate.folds))
        for relations in filled.values():
            for relation in relations:
                successor.segment.table(relation)

    def _claimed(
        self, relation: Relation, table: Table, heads: Sequence[Atom], taken: set[int], *, share: bool
    ) -> Table:
        """Return a table of the rows that a head matches: the same table if all rows match and it is free.

        A node must hold only rows that it can derive, because other nodes read them before it is visited.
        """
        rows = table.rows
        matched = self._matched(relation, rows, heads) if len(rows) else None
        is_free = id(table) not in taken
        taken.add(id(table))
        if matched is None:
            return table if is_free or not share else Table.of(rows.copy())
        self.unclaimed.append((relation, rows[~matched]))
        return Table.of(rows[matched])

    def _matched(self, relation: Relation, rows: Ids, heads: Sequence[Atom]) -> NDArray[np.bool_] | None:
        """Return a flag per row: whether a head matches it; None if all rows match."""
        matched = np.zeros(len(rows), np.bool_)
        for head in heads:
            args = head.args[: relation.arity]
            by_head = np.ones(len(rows), np.bool_)
            if len(set(args)) == len(args) and all(isinstance(arg, Variable) for arg in args):
                return None
            for column, arg in enumerate(args):
                if not isinstance(arg, Variable):
                    by_head &= rows[:, column] == self.store.terms.constant(arg)
                else:
                    by_head &= rows[:, column] == rows[:, args.index(arg)]
            matched |= by_head
        return None if matched.all() else matched

    def _other_layout(self, relation: Relation, segment: Segment, rules: Sequence[Rule]) -> Table:
        """Return a table of class members that a segment keeps in the other layout."""
        table = Table(relation.arity)
        if relation == TYPED:
            for stored in {r for rule in rules for r in self._tables(rule, typed=False)}:
                if stored.is_class and stored in segment.tables:
                    table.insert(as_pairs(stored, segment.tables[stored].rows))
        elif relation.is_class and TYPED in segment.tables:
            table.insert(members_of(relation, segment.tables[TYPED].rows))
        return table

    def _merge_in(self, successor: Successor) -> None:
        for further in successor.merged_in:
            for relation, table in further.tables.items():
                rows = successor.segment.tables[relation].filter(table.rows, present=False)
                overlay = self.draft.overlay(successor.segment, relation)
                overlay.add(overlay.plus.filter(rows, present=False))

    def _fills(self, rule: Rule, segment: Segment, *, typed: bool) -> bool:
        """Whether the heads of a rule may be in a table of a segment."""
        own = self._tables(rule, typed=typed)
        return bool(own & segment.tables.keys()) or (TYPED in own and any(r.is_class for r in segment.tables))

    def _tables(self, rule: Rule, *, typed: bool) -> set[Relation]:
        """Return the relation of the table that a node fills with a rule's heads."""
        filled = self._filled.get((id(rule), typed))
        if filled is None:
            filled = rule, {self.store.filled_by(rule.head, pairs=typed)}
            self._filled[id(rule), typed] = filled
        return filled[1]
