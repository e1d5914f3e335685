"""The content of every drawing of a graph: hyper-nodes with levels, names and sizes, and their edges.

The level of a node is one more than the highest level of its predecessors. The number of edges may be
quadratic in the number of rules, so a sketch has a limit and says whether it is complete. A sketch of a
part of the graph has the nodes of `Details.only` and the edges between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.graph.draw.names import predicate_name, rule_name, short_name
from zodiacedge.language.ast import body_atoms
from zodiacedge.language.printer import format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from zodiacedge.graph.hyper_graph import Edge, HyperGraph
    from zodiacedge.language.ast import Predicate
    from zodiacedge.language.unify import Pattern


class FactCount(NamedTuple):
    """The numbers of explicit and of derived facts of a predicate; a fact may be both."""

    explicit: int
    derived: int


@dataclass(frozen=True, slots=True)
class Details:
    """What a drawing shows beside the rules, and which nodes it has."""

    sizes: Mapping[int, int] | None = None
    """Facts per node id; None if unknown."""
    counts: Mapping[Predicate, FactCount] | None = None
    """Facts per predicate; None if unknown."""
    prefixes: Mapping[str, str] = field(default_factory=lambda: DEFAULT_PREFIXES)
    highlight: Collection[int] = ()
    """Ids of nodes to mark."""
    only: Collection[int] | None = None
    """Ids of the nodes to draw; None for all."""


PLAIN = Details()


class SketchPredicate(NamedTuple):
    """A predicate that the rules of a drawing derive or read, with its facts if they are known."""

    name: str
    facts: FactCount | None


@dataclass(frozen=True, slots=True)
class SketchNode:
    """A hyper-node of a drawing."""

    id: int
    name: str
    level: int
    keys: tuple[str, ...]
    rules: tuple[str, ...]
    """Label or text of each rule."""
    texts: tuple[str, ...]
    """Text of each rule."""
    defines: tuple[str, ...]
    short_defines: tuple[str, ...]
    """The same, of an IRI without a prefix only the part after the last `/` or `#`."""
    reads: tuple[str, ...]
    """Predicates of the body atoms."""
    recursive: bool
    size: int | None
    highlighted: bool


@dataclass(frozen=True, slots=True)
class SketchEdge:
    """A hyper edge, with the names of the predicates that carry it."""

    source: int
    target: int
    negative: bool
    via: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sketch:
    """Nodes in topological order, and edges by their source in that order."""

    nodes: tuple[SketchNode, ...]
    edges: tuple[SketchEdge, ...]
    predicates: tuple[SketchPredicate, ...]
    """The predicates that the nodes derive or read, sorted by name."""
    complete: bool
    """Whether it has all edges."""

    @property
    def rules(self) -> int:
        """The number of rules of all nodes."""
        return sum(len(node.keys) for node in self.nodes)


def sketch(graph: HyperGraph, details: Details = PLAIN, most_edges: int = 100_000) -> Sketch:
    """Return the sketch of a graph, or of a part of it."""
    level = _levels(graph)
    marked, only = frozenset(details.highlight), details.only
    sizes, prefixes = details.sizes, details.prefixes
    nodes: list[SketchNode] = []
    predicates: dict[Predicate, None] = {}
    for node in graph.order:
        if only is not None and node.id not in only:
            continue
        rules = [graph.rule(key) for key in node.rules]
        defines = graph.defines(node.id)
        reads = tuple(dict.fromkeys(atom.predicate for rule in rules for atom in body_atoms(rule.body)))
        predicates |= dict.fromkeys((*defines, *reads))
        nodes.append(
            SketchNode(
                node.id,
                node.name,
                level[node.id],
                node.rules,
                tuple(rule_name(rule, prefixes) for rule in rules),
                tuple(format_rule(rule, prefixes) for rule in rules),
                tuple(predicate_name(predicate, prefixes) for predicate in defines),
                tuple(dict.fromkeys(short_name(predicate, prefixes) for predicate in defines)),
                tuple(predicate_name(predicate, prefixes) for predicate in reads),
                graph.recursive(node.id),
                sizes.get(node.id) if sizes is not None else None,
                node.id in marked,
            )
        )
    within = (e for e in graph.edges() if only is None or (e.source in only and e.target in only))
    edges = tuple(_edge(edge, prefixes) for edge in islice(within, most_edges + 1))
    counted = sorted(
        SketchPredicate(predicate_name(p, prefixes), _count(p, details.counts)) for p in predicates
    )
    return Sketch(tuple(nodes), edges[:most_edges], tuple(counted), complete=len(edges) <= most_edges)


def _edge(edge: Edge, prefixes: Mapping[str, str]) -> SketchEdge:
    via = tuple(predicate_name(predicate, prefixes) for predicate in edge.via)
    return SketchEdge(edge.source, edge.target, edge.negative, via)


def _count(predicate: Predicate, counts: Mapping[Predicate, FactCount] | None) -> FactCount | None:
    return counts.get(predicate, FactCount(0, 0)) if counts is not None else None


def _levels(graph: HyperGraph) -> dict[int, int]:
    # By patterns, not edges: in topological order all writers of what a node reads, except its own
    # rules, come before the node.
    levels: dict[int, int] = {}
    highest: dict[Pattern, int] = {}
    for node in graph.order:
        shapes = [graph.rules.shapes[key] for key in node.rules]
        bodies = dict.fromkeys(body for shape in shapes for body in (*shape.positive, *shape.negative))
        below = (highest.get(head, -1) for body in bodies for head in graph.rules.heads.unifying(body))
        levels[node.id] = max(below, default=-1) + 1
        for shape in shapes:
            highest[shape.head] = max(highest.get(shape.head, 0), levels[node.id])
    return levels
