"""The rule dependency graph and its hyper-nodes, kept up to date as rules come and go.

`HyperGraph.build(rules)` makes a graph from rules by key; `graph.update(added, removed)` returns the
next graph and a `GraphChange`, or raises `StratificationProblem` and leaves the graph as it was.

In reading order: `patterns` (an index of which atoms unify), `rdg` (which rules feed which), `digraph`
(components and order of any graph), `draft` (an order that takes one more), `stratify`, `change` (what
became of the nodes), `hrdg`, and the drawings `show`, `layout` and `svg`.
"""

from zodiacedge.graph.change import GraphChange, Lineage
from zodiacedge.graph.draft import HyperNode
from zodiacedge.graph.hrdg import Edge, HyperGraph, Neighbours

__all__ = [
    "Edge",
    "GraphChange",
    "HyperGraph",
    "HyperNode",
    "Lineage",
    "Neighbours",
]
