"""The rule dependency graph (RDG) and its hyper-nodes (HRDG), maintained under rule changes (Algorithms 1-4).

`HyperGraph.build(rules)` builds a graph from rules by key; `graph.update(added, removed)` returns the
next graph and a `GraphChange`, or raises `StratificationProblem` and leaves the graph as it was.

    patterns     an index of atoms that unify
    rule_graph   the rule dependency graph (RDG): edges from a rule to the readers of its facts
    digraph      strongly connected components and topological order of any graph
    merge_split  dynamic topological order: hyper-nodes merge and split
    stratify     refuses negative edges in a cycle
    change       lineage of hyper-nodes, directly impacted nodes (DIHN)
    hyper_graph  the hyper rule dependency graph (HRDG)
    draw         the graph as text, DOT, JSON, SVG and HTML
"""

from zodiacedge.graph.change import GraphChange, NodeLineage
from zodiacedge.graph.hyper_graph import Edge, HyperGraph, Neighbours
from zodiacedge.graph.merge_split import HyperNode

__all__ = [
    "Edge",
    "GraphChange",
    "HyperGraph",
    "HyperNode",
    "Neighbours",
    "NodeLineage",
]
