"""A graph as text, as DOT for Graphviz, and as JSON. Pictures are left to `svg` and `page`.

The JSON document is stable; fields may be added to it, but none changes its meaning::

    {"format": "zodiacedge-graph", "version": 1,
     "rules": 7,                             number of rules
     "nodes": [                              in topological order
       {"id": 2, "name": "hn2",
        "level": 1,                          one more than the highest level of its predecessors
        "rules": [{"key": "…",               identity of the rule
                   "label": "r2",            null if it has none
                   "text": "p2(X, Y) :- …"}],
        "defines": ["p2/2"],                 predicates of the heads
        "reads": ["p1/2"],                   predicates of the body atoms
        "recursive": true,                   whether its rules read what they derive
        "size": 120,                         number of facts, null if unknown
        "highlighted": false}],
     "edges": [
       {"source": 2, "target": 3,            ids; an edge goes from writer to reader
        "negative": true,                    read under `not` or inside an aggregate
        "via": ["p4/2"]}],                   predicates that carry it
     "predicates": [                         that the rules derive or read, by name
       {"name": "p2/2",
        "explicit": 3, "derived": 120}],     numbers of facts, null if unknown
     "complete": true}                       false if there were too many edges to list

The graph may be a part of a larger one: `rules` and all lists are those of the part.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.graph.draw.sketch import PLAIN, sketch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.graph.draw.sketch import Details, Sketch, SketchEdge, SketchNode
    from zodiacedge.graph.hyper_graph import HyperGraph

_MAX_LISTED = 12
_MAX_EDGES = 20_000  # more are not readable


def to_text(graph: HyperGraph, details: Details = PLAIN) -> str:
    """Return a listing by level: each node's rules, predicates and edges; then the facts per predicate."""
    drawn = sketch(graph, details, _MAX_EDGES)
    names = {node.id: node.name for node in drawn.nodes}
    leaving: dict[int, list[SketchEdge]] = {}
    for edge in drawn.edges:
        leaving.setdefault(edge.source, []).append(edge)
    edges = f"{'' if drawn.complete else 'more than '}{counted(len(drawn.edges), 'edge')}"
    negative = sum(edge.negative for edge in drawn.edges)
    nodes = f"{counted(drawn.rules, 'rule')} in {counted(len(drawn.nodes), 'hyper-node')}"
    whole = "" if details.only is None else f" (a part of {counted(len(graph), 'hyper-node')})"
    lines = [
        f"{nodes}, {edges}, {negative} of them negative{whole}",
        "→ feeds   ⇢ feeds through `not` or an aggregate   ↻ recursive",
    ]
    # sorted() is stable, so the order within a level stays topological.
    for level, together in groupby(sorted(drawn.nodes, key=_level), _level):
        lines += ["", f"level {level}"]
        for node in together:
            lines += _paragraph(node, leaving.get(node.id, []), names)
    if details.counts is not None:
        lines += ["", *_facts(drawn)]
    return "\n".join(lines) + "\n"


def to_dot(graph: HyperGraph, details: Details = PLAIN) -> str:
    """Return the graph for Graphviz: dashed arrows are negative edges."""
    drawn = sketch(graph, details, _MAX_EDGES)
    lines = [
        "digraph hrdg {",
        "  rankdir=TB;",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10];',
    ]
    for node in drawn.nodes:
        size = "" if node.size is None else f" ({counted(node.size, 'fact')})"
        rows = [
            f"{node.name}{' ↻' if node.recursive else ''}{size}",
            _listing(node.rules),
            _listing(node.defines),
        ]
        colour = ', fillcolor="#fff3cd"' if node.highlighted else ""
        lines.append(f"  n{node.id} [label={_dot_text(rows)}{colour}];")
    for edge in drawn.edges:
        style = ", style=dashed" if edge.negative else ""
        label = _dot_text([_listing(edge.via)])
        lines.append(f"  n{edge.source} -> n{edge.target} [label={label}{style}];")
    if not drawn.complete:
        lines.append(f"  // only the first {len(drawn.edges)} edges")
    return "\n".join([*lines, "}"]) + "\n"


def to_dict(graph: HyperGraph, details: Details = PLAIN) -> dict[str, object]:
    """Return the graph as plain values; the module's docstring has the fields."""
    drawn = sketch(graph, details)
    return {
        "format": "zodiacedge-graph",
        "version": 1,
        "rules": drawn.rules,
        "nodes": [
            {
                "id": node.id,
                "name": node.name,
                "level": node.level,
                "rules": [
                    {"key": key, "label": graph.rule(key).label or None, "text": text}
                    for key, text in zip(node.keys, node.texts, strict=True)
                ],
                "defines": list(node.defines),
                "reads": list(node.reads),
                "recursive": node.recursive,
                "size": node.size,
                "highlighted": node.highlighted,
            }
            for node in drawn.nodes
        ],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "negative": edge.negative,
                "via": list(edge.via),
            }
            for edge in drawn.edges
        ],
        "predicates": [
            {
                "name": name,
                "explicit": facts.explicit if facts else None,
                "derived": facts.derived if facts else None,
            }
            for name, facts in drawn.predicates
        ],
        "complete": drawn.complete,
    }


def to_json(graph: HyperGraph, details: Details = PLAIN) -> str:
    """Return `to_dict` as JSON text."""
    return json.dumps(to_dict(graph, details), ensure_ascii=False, indent=2) + "\n"


def _level(node: SketchNode) -> int:
    return node.level


def _paragraph(node: SketchNode, edges: list[SketchEdge], names: Mapping[int, str]) -> list[str]:
    marks = f"{' ↻' if node.recursive else ''}{' *' if node.highlighted else ''}"
    size = "" if node.size is None else f"   {counted(node.size, 'fact')}"
    lines = [f"  {node.name}{marks}   {', '.join(node.defines)}{size}"]
    lines += [f"      {text}" for text in node.texts]
    by_label: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for edge in edges:
        by_label.setdefault((edge.negative, edge.via), []).append(names[edge.target])
    for (negative, via), targets in by_label.items():
        lines.append(f"    {'⇢' if negative else '→'} {', '.join(targets)}   ({_listing(via)})")
    return lines


def _facts(drawn: Sketch) -> list[str]:
    rows = [("facts", "explicit", "derived")]
    rows += [(name, f"{f.explicit:,}", f"{f.derived:,}") for name, f in drawn.predicates if f]
    wide, *numbers = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        f"  {name:{wide}}  {explicit:>{numbers[0]}}  {derived:>{numbers[1]}}"
        for name, explicit, derived in rows
    ]


def _listing(words: tuple[str, ...]) -> str:
    left = len(words) - _MAX_LISTED
    return ", ".join(words[:_MAX_LISTED]) + (f" and {left} more" if left > 0 else "")


def _dot_text(rows: list[str]) -> str:
    escaped = (row.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for row in rows)
    return '"' + "\\n".join(escaped) + '"'
