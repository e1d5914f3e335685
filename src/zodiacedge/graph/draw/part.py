"""Parts of a graph that a drawing may be limited to: the surroundings of nodes, the nodes of a predicate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.ast import body_atoms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Predicate


def around(graph: HyperGraph, nodes: Iterable[int], distance: int) -> frozenset[int]:
    """Return nodes and those up to a distance from one of them, along edges in either direction."""
    neighbours: dict[int, set[int]] = {}
    for edge in graph.edges():
        neighbours.setdefault(edge.source, set()).add(edge.target)
        neighbours.setdefault(edge.target, set()).add(edge.source)
    reached = set(nodes)
    outermost = set(reached)
    for _ in range(distance):
        outermost = {near for node in outermost for near in neighbours.get(node, ())} - reached
        if not outermost:
            break
        reached |= outermost
    return frozenset(reached)


def concerned(graph: HyperGraph, predicates: Iterable[Predicate]) -> frozenset[int]:
    """Return the nodes with a rule that derives or reads facts of one of some predicates."""
    wanted = set(predicates)
    nodes: set[int] = set()
    for key, shape in graph.rules.shapes.items():
        if any(atom.predicate in wanted for atom in (shape.rule.head, *body_atoms(shape.rule.body))):
            nodes.add(graph.homes[key])
    # A rule over a variable class derives or reads each class, and says so by its edges only.
    for edge in graph.edges():
        if not wanted.isdisjoint(edge.via):
            nodes |= {edge.source, edge.target}
    return frozenset(nodes)
