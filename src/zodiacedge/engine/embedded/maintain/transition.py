"""The transition of one change: the old version, the rules of the next version, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.api import Dropped, NodeRun
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Rule

    Keys = frozenset[str]


@dataclass(frozen=True, slots=True)
class OldVersion:
    """The version that a change starts from."""

    store: Database
    graph: HyperGraph | None
    """None if the version was never evaluated."""
    dropped: Mapping[str, Dropped]
    node_rules: Mapping[Keys, NodeRules]
    facts: int
    """The number of facts of all segments."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The rules of the next version."""

    rules: Mapping[str, Rule]
    graph: HyperGraph
    same_functions: bool
    """Whether the functions registered are those of the old version."""


@dataclass(slots=True)
class NextVersion:
    """The parts of a change's result that are not in the overlays of its draft."""

    facts: int
    """The number of facts of all segments."""
    dropped: dict[str, Dropped]
    readers: dict[Relation, tuple[int, ...]]
    """The nodes of the graph that read a relation; filled on demand."""
    explicit: dict[Relation, Table] = field(default_factory=dict)
    """The explicit tables of relations that had none."""
    segments: dict[Keys, Segment] = field(default_factory=dict)
    """The segments of new nodes, and of nodes that were recomputed."""
    patched: dict[Keys, tuple[float, int]] = field(default_factory=dict)
    """Nodes that were recomputed and whose old segments were patched: seconds, and tries in a row."""
    removed: list[Keys] = field(default_factory=list)
    """The nodes of the old version that the next version does not have."""
    node_rules: dict[Keys, NodeRules] = field(default_factory=dict)
    """The rules of nodes that were not profiled yet."""
    runs: list[NodeRun] = field(default_factory=list)
