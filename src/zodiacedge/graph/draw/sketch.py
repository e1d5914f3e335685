"""The content of every drawing of a graph: hyper-nodes with levels, names and sizes, and their edges.

The level of a node is one more than the highest level of its predecessors. The number of edges may be
quadratic in the number of rules, so a sketch has a limit and says whether it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from zodiacedge.graph.draw.names import predicate_name, rule_name, short_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from zodiacedge.graph.hrdg import Edge, HyperGraph
    from zodiacedge.language.unify import Pattern


@dataclass(frozen=True, slots=True)
class SketchNode:
    """A hyper-node of a drawing."""

    id: int
    name: str
    level: int
    keys: tuple[str, ...]
    rules: tuple[str, ...]
    """Label or text of each rule."""
    defines: tuple[str, ...]
    short_defines: tuple[str, ...]
    """The same, of an IRI only the part after the last `/` or `#`."""
    recursive: bool
    size: int | None
    highlighted: bool


@dataclass(frozen=True, slots=True)
class Sketch:
    """Nodes in topological order, and edges by their source in that order."""

    nodes: tuple[SketchNode, ...]
    edges: tuple[Edge, ...]
    complete: bool
    """Whether it has all edges."""


def sketch(
    graph: HyperGraph,
    sizes: Mapping[int, int] | None = None,
    highlight: Collection[int] = (),
    most_edges: int = 100_000,
) -> Sketch:
    """Return the sketch of a graph. `sizes` are facts per node id, `highlight` node ids."""
    level = _levels(graph)
    marked = frozenset(highlight)
    nodes = []
    for node in graph.order:
        defines = graph.defines(node.id)
        nodes.append(
            SketchNode(
                node.id,
                node.name,
                level[node.id],
                node.rules,
                tuple(rule_name(graph.rule(key)) for key in node.rules),
                tuple(predicate_name(predicate) for predicate in defines),
                tuple(dict.fromkeys(short_name(predicate) for predicate in defines)),
                graph.recursive(node.id),
                sizes.get(node.id) if sizes is not None else None,
                node.id in marked,
            )
        )
    edges = tuple(islice(graph.edges(), most_edges + 1))
    return Sketch(tuple(nodes), edges[:most_edges], complete=len(edges) <= most_edges)


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
