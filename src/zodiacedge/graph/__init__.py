"""The rule dependency graph and its hyper-nodes, kept up to date as rules come and go (Algorithms 1 to 4).

`HyperGraph.build(rules)` makes a graph from rules by key; `graph.update(added, removed)` returns the
next graph and a `GraphChange`, or raises `StratificationProblem` and leaves the graph as it was.

    patterns  an index of atoms that unify
    rdg       the rule dependency graph: which rules feed which
    digraph   strongly connected components and topological order of any graph
    draft     an order under construction: hyper-nodes merge and split
    stratify  negative edges in a cycle are refused
    change    what became of the hyper-nodes
    hrdg      the hyper rule dependency graph
    draw      the graph as text, DOT, JSON and SVG
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
