"""Drawings: text, DOT and JSON against golden files, pictures by their properties."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from zodiacedge.graph import HyperGraph
from zodiacedge.graph.draw.layout import Box, arrange
from zodiacedge.graph.draw.show import to_dict, to_dot, to_json, to_text
from zodiacedge.graph.draw.sketch import Details, FactCount
from zodiacedge.graph.draw.svg import to_svg
from zodiacedge.language.ast import Atom, Predicate, Rule, Variable
from zodiacedge.language.parser import parse_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.graph.draw.layout import Layout

GRAPHS = Path(__file__).parent.parent / "golden" / "graphs"
FORMATS: dict[str, Callable[[HyperGraph], str]] = {".txt": to_text, ".dot": to_dot, ".json": to_json}
EXPECTED = sorted(path for path in GRAPHS.iterdir() if path.suffix in FORMATS)
SVG = "{http://www.w3.org/2000/svg}"
X, Y = Variable("X"), Variable("Y")


def graph_of(text: str) -> HyperGraph:
    program = parse_program(text)
    return HyperGraph.build({rule.label or f"k{i}": rule for i, rule in enumerate(program.rules)})


def running() -> HyperGraph:
    return graph_of((GRAPHS / "running_example.rules").read_text(encoding="utf-8"))


def picture(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own output


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.name)
def test_golden_drawings(path: Path) -> None:
    graph = graph_of(path.with_suffix(".rules").read_text(encoding="utf-8"))
    assert FORMATS[path.suffix](graph) == path.read_text(encoding="utf-8")


def test_sizes_and_highlights_are_shown() -> None:
    graph = running()
    details = Details(sizes={1: 1, 2: 1200}, highlight={4})
    text = to_text(graph, details)
    assert "1 fact\n" in text
    assert "1,200 facts" in text
    assert "hn4 ↻ *" in text
    nodes = to_dict(graph, details)["nodes"]
    assert isinstance(nodes, list)
    assert [(node["size"], node["highlighted"]) for node in nodes] == [
        (1, False),
        (1200, False),
        (None, False),
        (None, True),
    ]
    svg = to_svg(graph, details)
    assert "1,200 facts" in svg
    assert svg.count('class="box marked"') == 2  # the node and the legend
    assert "1,200 facts" in to_dot(graph, details)


def test_facts_per_predicate_are_listed_for_what_the_rules_derive_and_read() -> None:
    graph = graph_of("r: p(X, Y) :- q(X, Y) .")
    counts = {Predicate("q", 2): FactCount(1200, 0), Predicate("unrelated", 2): FactCount(7, 7)}
    text = to_text(graph, Details(counts=counts))
    assert text.endswith(
        "  facts  explicit  derived\n  p/2           0        0\n  q/2       1,200        0\n"
    )
    assert to_dict(graph, Details(counts=counts))["predicates"] == [
        {"name": "p/2", "explicit": 0, "derived": 0},
        {"name": "q/2", "explicit": 1200, "derived": 0},
    ]
    assert "explicit" not in to_text(graph)


def test_a_part_has_its_nodes_and_the_edges_between_them() -> None:
    graph = running()
    part = to_dict(graph, Details(only={2, 4}))
    nodes, edges = part["nodes"], part["edges"]
    assert isinstance(nodes, list)
    assert isinstance(edges, list)
    assert [node["name"] for node in nodes] == ["hn2", "hn4"]
    assert [(edge["source"], edge["target"]) for edge in edges] == [(2, 4)]
    assert part["rules"] == sum(len(node["rules"]) for node in nodes)
    text = to_text(graph, Details(only={2, 4}))
    assert "2 hyper-nodes, 1 edge" in text
    assert "(a part of 4 hyper-nodes)" in text
    root = picture(to_svg(graph, Details(only={2, 4})))
    assert {g.get("id") for g in root.iter(f"{SVG}g") if g.get("id")} == {"hn2", "hn4"}


def test_names_have_the_prefixes_of_the_program() -> None:
    graph = graph_of("@prefix ex: <http://e/> . ex:p(X, Y) :- <http://other/a/q>(X, Y), ex:r(X, Y) .")
    details = Details(prefixes={"ex": "http://e/"})
    rule = "ex:p(X, Y) :- <http://other/a/q>(X, Y), ex:r(X, Y) ."
    assert rule in to_text(graph, details)
    (node,) = json.loads(to_json(graph, details))["nodes"]
    assert node["defines"] == ["ex:p/2"]
    assert node["reads"] == ["<http://other/a/q>/2", "ex:r/2"]
    assert ">ex:p</text>" in to_svg(graph, details)
    assert ">p</text>" in to_svg(graph)


def test_json_is_one_document_with_a_version() -> None:
    found = json.loads(to_json(running()))
    assert (found["format"], found["version"], found["complete"]) == ("zodiacedge-graph", 1, True)
    assert [edge for edge in found["edges"] if edge["negative"]] == [
        {"source": 2, "target": 3, "negative": True, "via": ["p4/2"]}
    ]


def test_a_picture_has_a_box_per_node_and_an_arrow_per_edge() -> None:
    graph = running()
    root = picture(to_svg(graph))
    assert {g.get("id") for g in root.iter(f"{SVG}g") if g.get("id")} == {n.name for n in graph.order}
    titles = [path.findtext(f"{SVG}title") for path in root.iter(f"{SVG}path") if path.get("marker-end")]
    assert {title for title in titles if title} == {
        "hn1 feeds hn2 (p1/2)",
        "hn2 feeds hn3 through not or an aggregate (p4/2)",
        "hn2 feeds hn4 (p2/2)",
        "hn3 feeds hn4 (p5/2)",
    }
    dashed = [path for path in root.iter(f"{SVG}path") if path.get("class") == "edge negative"]
    assert len(dashed) == 2  # the edge and the legend


def test_special_characters_are_escaped() -> None:
    graph = graph_of('p(X, "<&\\"\\\\>") :- q(X, "a\\nb") .')
    picture(to_svg(graph))
    assert "&lt;&amp;" in to_svg(graph)
    (label,) = re.findall(r'n1 \[label="((?:[^"\\]|\\.)*)"\];', to_dot(graph))
    assert "\n" not in label


def test_an_empty_graph_can_be_drawn() -> None:
    graph = HyperGraph()
    picture(to_svg(graph))
    assert to_text(graph).startswith("0 rules in 0 hyper-nodes")
    assert json.loads(to_json(graph))["nodes"] == []


def test_both_kinds_of_edge_between_two_nodes_are_drawn_apart() -> None:
    graph = graph_of("a: p(X, Y) :- e(X, Y) . b: q(X, Y) :- p(X, Y), not p(Y, X) .")
    root = picture(to_svg(graph))
    drawn = [p for p in root.iter(f"{SVG}path") if p.find(f"{SVG}title") is not None]
    assert len({path.get("d") for path in drawn}) == 2


def overlapping(
    a: tuple[float, float, float, float], b: tuple[float, float, float, float], slack: float = 0.01
) -> bool:
    (left, top, right, bottom), (other_left, other_top, other_right, other_bottom) = a, b
    return (
        left < other_right - slack
        and other_left < right - slack
        and top < other_bottom - slack
        and other_top < bottom - slack
    )


def check_clear(boxes: dict[int, Box], layout: Layout) -> None:
    """No box lies on another, and no arrow runs over a box."""
    areas = {
        node: (x, y, x + boxes[node].width, y + boxes[node].height) for node, (x, y) in layout.corners.items()
    }
    assert areas.keys() == boxes.keys()
    placed = list(areas.values())
    for place, area in enumerate(placed):
        assert not any(overlapping(area, other) for other in placed[place + 1 :])
        assert area[0] >= -0.01
        assert area[2] <= layout.width + 0.01
        assert area[3] <= layout.height + 0.01
    for path in layout.paths.values():
        stretches = [(x - 1, start, x + 1, end) for x, start, end in path]
        bends = [(min(a[0], b[0]), a[2], max(a[0], b[0]) + 0.1, b[1]) for a, b in pairwise(path)]
        for part in (*stretches, *bends):
            assert not any(overlapping(part, area) for area in placed)


@pytest.mark.parametrize("seed", range(30))
def test_no_arrow_runs_over_a_box_and_no_box_over_another(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 28)
    pairs = {(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randint(0, 2 * count))}
    pairs = {(a, b) for a, b in pairs if a < b}
    levels = [0] * count
    for a, b in sorted(pairs, key=lambda pair: pair[1]):
        levels[b] = max(levels[b], levels[a] + 1)
    for _ in range(count):
        for a, b in pairs:
            levels[b] = max(levels[b], levels[a] + 1)
    boxes = {n: Box(rng.uniform(60, 300), rng.uniform(40, 120), levels[n]) for n in range(count)}
    check_clear(boxes, arrange(boxes, sorted(pairs)))


@pytest.mark.parametrize("shape", ["chain", "hub", "copies"])
def test_thousands_of_nodes_are_drawn_in_reasonable_time(shape: str) -> None:
    def rule(head: str, body: str) -> Rule:
        return Rule(Atom(head, (X, Y)), (Atom(body, (X, Y)),))

    program = {
        "chain": {f"k{i}": rule(f"p{i + 1}", f"p{i}") for i in range(2000)},
        "hub": {f"w{i}": rule("hub", f"i{i}") for i in range(1000)}
        | {f"r{i}": rule(f"o{i}", "hub") for i in range(1000)},
        "copies": {f"k{i}": rule(f"p{i}", f"p{i - 1 if i % 5 else -1}") for i in range(1500)},
    }[shape]
    graph = HyperGraph.build(program)
    start = perf_counter()
    text = to_svg(graph)
    assert perf_counter() - start < 15
    assert text.count("<rect class") >= len(graph)
    assert ("of the arrows are drawn" in text) == (shape == "hub")


def test_the_layout_library_loads_only_when_something_is_drawn() -> None:
    code = (
        "import sys, zodiacedge.graph.draw.svg; sys.exit(any(m.startswith('grandalf') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
