"""How a change stands: what there was before it, and what each node has by now.

Whoever chooses the next step (`next_step`) and whoever takes it (`attempt`) ask here; only the latter
writes. What nodes of the old version hand over to those of the new one is told here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.spark.maintain.affected_nodes import touched_by
from zodiacedge.engine.spark.storage.embedded_tables import constants
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from zodiacedge.engine.api import Settings
    from zodiacedge.engine.spark.ingest.batch import SparkFactDelta
    from zodiacedge.engine.spark.storage.files import DataFile, Segment
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.graph.draft import HyperNode
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term


@dataclass
class ChangeState:
    """A change under way. A node is known by the keys of its rules."""

    before: SparkVersion
    rules: Mapping[str, Rule]
    graph: HyperGraph
    effect: SparkFactDelta
    settings: Settings

    def __post_init__(self) -> None:
        """Start with what stays as it was until somebody finds otherwise."""
        before = self.before
        self.homes = {frozenset(node.rules): node for node in self.graph.nodes.values()}
        self.explicit_files = self.effect.after
        self.segments = {keys: one for keys, one in before.segments.items() if keys in self.homes}
        gone = [one for keys, one in before.segments.items() if keys not in self.homes]
        self.touched_at_first = touched_by(self.effect.sifted, gone)
        self.dropped = {key: one for key, one in before.dropped.items() if key in self.rules}
        self.same_functions = self.settings.registry is before.registry

    @property
    def workspace(self) -> Workspace:
        """Where it is worked out."""
        return self.before.workspace

    @property
    def rows(self) -> int:
        """How many rows all nodes have."""
        return sum(one.rows for one in self.segments.values())

    @cached_property
    def keys(self) -> dict[Term, int]:
        """The fingerprints of all terms that rules mention."""
        return self.workspace.keys(term for rule in self.rules.values() for term in constants(rule))

    def rules_of(self, node: HyperNode) -> dict[str, Rule]:
        """Return the rules of a node, by key."""
        return {key: self.rules[key] for key in node.rules}

    def labels(self, node: HyperNode) -> tuple[str, ...]:
        """Return how people know the rules of a node."""
        return tuple(rule.label or format_rule(rule) for rule in self.rules_of(node).values())

    def is_new(self, keys: frozenset[str]) -> bool:
        """Whether a node must be evaluated: it was not there before, or functions may give other values."""
        return keys not in self.segments or not self.same_functions

    def starts_from_nothing(self, node: HyperNode) -> bool:
        """Whether a node is new and no others came together in it."""
        keys = frozenset(node.rules)
        return self.is_new(keys) and not self.merged_in(keys)

    def is_exact(self, node: HyperNode) -> bool:
        """Whether no evaluation errors are known of a node."""
        return not any(key in self.dropped for key in node.rules)

    def outside(self, own: Iterable[frozenset[str]]) -> tuple[list[Segment], list[Segment]]:
        """Return what lies outside some nodes, before the change and after it."""
        inside = set(own)
        before = [one for keys, one in self.before.segments.items() if keys not in inside]
        after = [one for keys, one in self.segments.items() if keys not in inside]
        return [self.before.explicit_files, *before], [self.explicit_files, *after]

    def moved(self, keys: frozenset[str], segment: Segment) -> SegmentChange | None:
        """Count what a node gained and lost; None if only the rows would tell, or those of other nodes."""
        had = self.before.segments.get(keys)
        if had is None:
            return None if any(key in self._old_homes for key in keys) else SegmentChange(segment.rows)
        total = SegmentChange()
        for relation in {**had.contents, **segment.contents}:
            found = had.content(relation).counted(segment.content(relation))
            if found is None:
                return None
            total = SegmentChange(total.gained + found.gained, total.lost + found.lost)
        return total

    def known_parts(self, keys: frozenset[str]) -> Iterator[DataFile]:
        """Yield the files of the old version that a node may have kept or taken over."""
        for old in {self._old_homes[key] for key in keys if key in self._old_homes}:
            yield from self.before.segments[old].parts

    def parents(self, own: Collection[frozenset[str]]) -> set[frozenset[str]]:
        """Return the nodes that are no more, all of whose rules that still are have come into some nodes."""
        if not self.same_functions:
            return set()
        old_homes = {self._old_homes[key] for keys in own for key in keys if key in self._old_homes}
        found = set()
        for old in old_homes - self.homes.keys():
            heirs = {frozenset(self.graph.node_of(key).rules) for key in old if key in self.rules}
            if old <= self.before.rules.keys() and heirs <= set(own):
                found.add(old)
        return found

    def has_other_parents(self, keys: frozenset[str], known: Collection[frozenset[str]]) -> bool:
        """Whether rules of a node that is new were in others before than some that are known."""
        if keys in self.before.segments:
            return False
        return any(self._old_homes[key] not in known for key in keys if key in self._old_homes)

    def merged_in(self, keys: frozenset[str]) -> list[frozenset[str]]:
        """Return the nodes that came together in a new one with all their rules."""
        parents = self.parents({keys}) if keys not in self.segments else set()
        return sorted(parents, key=sorted) if all(old <= keys for old in parents) else []

    @cached_property
    def _old_homes(self) -> dict[str, frozenset[str]]:
        """The nodes of the old version that rules were in."""
        return {key: keys for keys in self.before.segments for key in keys}
