"""What nodes take over from nodes that are no more: merge, split and removal of rules in one step.

A node takes the tables of the old nodes that it shares rules with, as far as a head of the shared rules
fills them. Of what it takes, those facts are suspects that other rules of the old node derived: they may
have no other support. Tables that nobody takes are noted as touched, whoever else holds their rows, because
some segment may now hold them up only by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.embedded.maintain.delta_query import evaluate_delta
from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
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
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Delta, Draft
    from zodiacedge.graph.hyper_graph import HyperGraph, NodeDelta
    from zodiacedge.language.ast import Atom, Rule

    Keys = frozenset[str]


class Lineage(NamedTuple):
    """A node whose rules were not together before: its rules, the old nodes they were in, and new ones."""

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
    """Return the nodes that only the next version has, and those that only the old one has."""
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
    """What a node starts from."""

    segment: Segment
    line: Lineage
    poured: list[Segment] = field(default_factory=list)
    """What was copied into its segment from further parents."""
    copied: SegmentChange = field(default_factory=SegmentChange)
    """How much of that stayed and went, once the node is maintained, of what the segment did not have."""


@dataclass(slots=True)
class Inheritance:
    """The step from the old nodes' segments to those of the new ones."""

    draft: Draft
    store: Database
    before: HyperGraph | None
    after: Mapping[str, Rule]
    heirs: dict[Keys, Successor] = field(default_factory=dict)
    unclaimed: list[tuple[Relation, Ids]] = field(default_factory=list)
    """Rows of tables that some node took over and that no head of it matches."""

    def take(self, lines: Sequence[Lineage], gone: Sequence[Keys]) -> None:
        """Hand the tables of old nodes to new ones."""
        taken: set[int] = set()
        for line in lines:
            if line.parents:
                self._inherit(line, taken)
        for heir in self.heirs.values():
            self.draft.inherit(heir.segment)
        for keys in gone:
            self.draft.leave(self.store.segments[keys])
        for keys in gone:
            for relation, table in self.store.segments[keys].tables.items():
                if id(table) not in taken:
                    self.draft.abandon(relation, table)
        for relation, rows in self.unclaimed:
            self.draft.touched.note(relation, rows)
        for heir in self.heirs.values():
            self._pour(heir)

    def suspects(self, keys: Keys, shape: NodeRules) -> Delta:
        """Return the facts that a node took over and that rules outside it derived in the old version."""
        heir = self.heirs[keys]
        found: dict[Relation, Table] = {}
        for parent in heir.line.parents:
            others = {key: self.before.rule(key) for key in parent - keys} if self.before else {}
            asked = NodeRules(others) if others else None
            for key, rule in others.items():
                if asked is None or not self._fills(rule, heir.segment, typed=shape.typed):
                    continue
                rows = evaluate_delta(
                    self.draft, asked.all_heads(key), (), self.store.segments[parent], old=True
                )
                for relation, own in by_class(Relation(rule.head.relation, len(rule.head.args)), rows):
                    found.setdefault(relation, Table(relation.arity)).insert(own)
        return {relation: table.rows for relation, table in found.items()}

    def settle(self, heir: Successor) -> SegmentChange:
        """Note what was copied into a segment and did not stay in it as touched; count what was new to it.

        These are the rows that only further parents had: those that stayed, and those that did not.
        """
        stayed = lost = 0
        seen: dict[Relation, Table] = {}
        for further in heir.poured:
            for relation, table in further.tables.items():
                for one, rows in by_class(relation, table.rows):
                    marks = self.draft.flags(one, rows, heir.segment)
                    gone = marks & OWN == 0
                    self.draft.touched.note(one, rows[gone])
                    new = marks & OWN_BEFORE == 0
                    if len(heir.poured) > 1:
                        # Several parents may have had a row: it counts once.
                        earlier = seen.setdefault(one, Table(one.arity))
                        new &= ~earlier.mask(rows)
                        earlier.insert(rows)
                    stayed += int(np.count_nonzero(new & ~gone))
                    lost += int(np.count_nonzero(new & gone))
        return SegmentChange(stayed, lost)

    def _inherit(self, line: Lineage, taken: set[int]) -> None:
        keys = line.keys
        typed = in_pairs(self.after[key].head for key in keys)
        heir = self.heirs[keys] = Successor(Segment(), line)
        # The largest segment is taken as it is, the others are poured into it.
        ordered = sorted(line.parents, key=lambda one: -len(self.store.segments[one]))
        for parent in ordered:
            segment = self.store.segments[parent]
            heir.segment.seconds += segment.seconds
            shared = [self.after[key] for key in keys & parent]
            further = Segment()
            for relation in {r for rule in shared for r in self._tables(rule, typed=typed)}:
                heads = [rule.head for rule in shared if relation in self._tables(rule, typed=typed)]
                table = segment.tables.get(relation)
                if table is None:
                    table = self._other_layout(relation, segment, shared)
                further_one = relation in heir.segment.tables
                table = self._claimed(relation, table, heads, taken, share=not further_one)
                (further if further_one else heir.segment).tables[relation] = table
            if further.tables:
                heir.poured.append(further)
            for key in keys & segment.aggregate_rows.keys():
                heir.segment.aggregate_rows[key] = segment.aggregate_rows[key]
        for key in line.added:
            aggregate = self.after[key].aggregate
            if aggregate:
                heir.segment.aggregate_rows[key] = Table(len(aggregate.groups) + len(aggregate.folds))
        for key in keys:
            for relation in self._tables(self.after[key], typed=typed):
                heir.segment.table(relation)

    def _claimed(
        self, relation: Relation, table: Table, heads: Sequence[Atom], taken: set[int], *, share: bool
    ) -> Table:
        """Return a table of the rows that some head matches: the very table if they are all and it is free.

        A row that a node holds must be one that it can derive: others read it before the node's turn comes.
        """
        rows = table.rows
        matched = self._matched(relation, rows, heads)
        is_free = id(table) not in taken
        taken.add(id(table))
        if matched is None:
            return table if is_free or not share else Table.of(rows.copy())
        self.unclaimed.append((relation, rows[~matched]))
        return Table.of(rows[matched])

    def _matched(self, relation: Relation, rows: Ids, heads: Sequence[Atom]) -> NDArray[np.bool_] | None:
        """Tell of each row whether some head matches it; None if all heads do, whatever the row."""
        found = np.zeros(len(rows), np.bool_)
        for head in heads:
            args = head.args[: relation.arity]
            here = np.ones(len(rows), np.bool_)
            if len(set(args)) == len(args) and all(isinstance(arg, Variable) for arg in args):
                return None
            for column, arg in enumerate(args):
                if not isinstance(arg, Variable):
                    here &= rows[:, column] == self.store.terms.constant(arg)
                else:
                    here &= rows[:, column] == rows[:, args.index(arg)]
            found |= here
        return None if found.all() else found

    def _other_layout(self, relation: Relation, segment: Segment, rules: Sequence[Rule]) -> Table:
        """Return what a segment holds of a relation that it keeps in another table: members of classes."""
        found = Table(relation.arity)
        if relation == TYPED:
            for one in {r for rule in rules for r in self._tables(rule, typed=False)}:
                if one.is_class and one in segment.tables:
                    found.insert(as_pairs(one, segment.tables[one].rows))
        elif relation.is_class and TYPED in segment.tables:
            found.insert(members_of(relation, segment.tables[TYPED].rows))
        return found

    def _pour(self, heir: Successor) -> None:
        for further in heir.poured:
            for relation, table in further.tables.items():
                rows = heir.segment.tables[relation].filter(table.rows, present=False)
                overlay = self.draft.overlay(heir.segment, relation)
                overlay.add(overlay.plus.filter(rows, present=False))

    def _fills(self, rule: Rule, segment: Segment, *, typed: bool) -> bool:
        """Whether what a rule derives may stand in a table of a segment, whatever its heads match."""
        own = self._tables(rule, typed=typed)
        return bool(own & segment.tables.keys()) or (
            TYPED in own and any(one.is_class for one in segment.tables)
        )

    def _tables(self, rule: Rule, *, typed: bool) -> set[Relation]:
        """Return the relation of the table that a node fills with a rule's heads."""
        return {self.store.filled_by(rule.head, pairs=typed)}
