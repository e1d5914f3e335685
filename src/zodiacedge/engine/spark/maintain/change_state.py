"""The state of a change in progress: the version before it, and the segments of each node so far.

The scheduler reads it, `propagate` updates it. It also finds the nodes of the old version whose segments
those of the new one inherit, where nodes merge and split.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.spark.maintain.affected_nodes import changed_relations
from zodiacedge.engine.spark.storage.embedded_tables import constants
from zodiacedge.engine.spark.storage.windows import WINDOW_OWNER, WINDOWS
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from zodiacedge.engine.api import Settings
    from zodiacedge.engine.spark.ingest.batch import SparkFactDelta
    from zodiacedge.engine.spark.storage.files import DataFile, Owners
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.spark.storage.windows import Windows
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.graph.merge_split import HyperNode
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term


@dataclass
class ChangeState:
    """A change in progress. A node is identified by the keys of its rules."""

    before: SparkVersion
    rules: Mapping[str, Rule]
    graph: HyperGraph
    fact_delta: SparkFactDelta
    settings: Settings
    windows: Windows
    """The windows after the change."""
    terms: TermFiles
    """All terms before rules are evaluated."""

    def __post_init__(self) -> None:
        """Start with the old segments of the nodes that are still in the graph."""
        before = self.before
        self.nodes = {frozenset(node.rules): node for node in self.graph.nodes.values()}
        self.explicit_files = self.fact_delta.after
        self.segments = {keys: segment for keys, segment in before.segments.items() if keys in self.nodes}
        deleted = [segment for keys, segment in before.segments.items() if keys not in self.nodes]
        self.changed_facts = changed_relations(self.fact_delta.effective_delta, deleted)
        self.changed_at_first = dict(self.changed_facts)
        if self.windows.content != before.windows.content:
            self.changed_at_first[WINDOWS] = None
        self.dropped = {key: dropped for key, dropped in before.dropped.items() if key in self.rules}
        self.same_functions = self.settings.registry is before.registry

    @property
    def workspace(self) -> Workspace:
        """The workspace of the version before."""
        return self.before.workspace

    @property
    def rows(self) -> int:
        """The number of rows of all nodes."""
        return sum(segment.rows for segment in self.segments.values())

    def rows_but(self, own: Collection[frozenset[str]]) -> int:
        """Count the rows of all nodes but these."""
        return sum(segment.rows for keys, segment in self.segments.items() if keys not in own)

    @cached_property
    def keys(self) -> dict[Term, int]:
        """The fingerprints of all terms that rules mention."""
        return self.workspace.keys(term for rule in self.rules.values() for term in constants(rule))

    def rules_of(self, node: HyperNode) -> dict[str, Rule]:
        """Return the rules of a node, by key."""
        return {key: self.rules[key] for key in node.rules}

    def labels(self, node: HyperNode) -> tuple[str, ...]:
        """Return the labels of a node's rules; of a rule without label, its text."""
        return tuple(rule.label or format_rule(rule) for rule in self.rules_of(node).values())

    def is_new(self, keys: frozenset[str]) -> bool:
        """Whether a node must be evaluated: it has no segment, or the registered functions changed."""
        return keys not in self.segments or not self.same_functions

    def starts_from_scratch(self, node: HyperNode) -> bool:
        """Whether a node is new, and no old nodes merged into it."""
        keys = frozenset(node.rules)
        return self.is_new(keys) and not self.merged_in(keys)

    def is_exact(self, node: HyperNode) -> bool:
        """Whether a node has had no evaluation errors."""
        return not any(key in self.dropped for key in node.rules)

    @property
    def owners(self) -> Owners:
        """The explicit facts and the windows after the change, and the segments so far, by owner."""
        facts: Owners = {None: self.explicit_files, **dict(self.segments.items())}
        return {**facts, WINDOW_OWNER: self.windows.segment}

    def outside(self, own: Collection[frozenset[str]]) -> tuple[Owners, Owners]:
        """Return the segments of the owners outside these nodes, before the change and after it."""
        before, after = (
            {owner: segment for owner, segment in owners.items() if owner not in own}
            for owners in (self.before.read_owners, self.owners)
        )
        return before, after

    def moved(self, keys: frozenset[str]) -> SegmentChange | None:
        """Count the rows that a node gained and lost; None if that takes a comparison of rows."""
        before, segment = self.before.segments.get(keys), self.segments[keys]
        if before is None:
            return None if any(key in self._old_nodes for key in keys) else SegmentChange(segment.rows)
        total = SegmentChange()
        for relation in {**before.contents, **segment.contents}:
            counts = before.content(relation).counted(segment.content(relation))
            if counts is None:
                return None
            total = SegmentChange(total.gained + counts.gained, total.lost + counts.lost)
        return total

    # Nodes that merge and split.

    def known_files(self, keys: frozenset[str]) -> Iterator[DataFile]:
        """Yield the files of the old version that a node may have kept or inherited."""
        for old in {self._old_nodes[key] for key in keys if key in self._old_nodes}:
            yield from self.before.segments[old].parts

    def parents(self, own: Collection[frozenset[str]]) -> set[frozenset[str]]:
        """Return the deleted nodes whose remaining rules are all in these nodes."""
        if not self.same_functions:
            return set()
        old_nodes = {self._old_nodes[key] for keys in own for key in keys if key in self._old_nodes}
        parents = set()
        for old in old_nodes - self.nodes.keys():
            successors = {frozenset(self.graph.node_of(key).rules) for key in old if key in self.rules}
            if old <= self.before.rules.keys() and successors <= set(own):
                parents.add(old)
        return parents

    def has_other_parents(self, keys: frozenset[str], known: Collection[frozenset[str]]) -> bool:
        """Whether rules of a new node were in old nodes other than the known ones."""
        if keys in self.before.segments:
            return False
        return any(self._old_nodes[key] not in known for key in keys if key in self._old_nodes)

    def merged_in(self, keys: frozenset[str]) -> list[frozenset[str]]:
        """Return the old nodes that merged into a new one, with all their rules."""
        parents = self.parents({keys}) if keys not in self.segments else set()
        return sorted(parents, key=sorted) if all(old <= keys for old in parents) else []

    @cached_property
    def _old_nodes(self) -> dict[str, frozenset[str]]:
        """The nodes of the old version, by the keys of their rules."""
        return {key: keys for keys in self.before.segments for key in keys}
