"""Parts of a graph: the surroundings of a node, and the nodes of a predicate."""

from __future__ import annotations

import pytest

from zodiacedge.graph import HyperGraph
from zodiacedge.graph.draw.part import around, concerned
from zodiacedge.language.ast import Predicate
from zodiacedge.language.names import is_named, spelled
from zodiacedge.language.parser import parse_program

CHAIN = """a: p1(X, Y) :- p0(X, Y) .
b: p2(X, Y) :- p1(X, Y) .
c: p3(X, Y) :- p2(X, Y) .
d: q(X, Y) :- e(X, Y) ."""


def graph_of(text: str) -> HyperGraph:
    return HyperGraph.build({rule.label: rule for rule in parse_program(text).rules})


def labels(graph: HyperGraph, nodes: frozenset[int]) -> set[str]:
    return {key for key, home in graph.homes.items() if home in nodes}


@pytest.mark.parametrize(
    ("centre", "distance", "reached"),
    [("b", 0, "b"), ("b", 1, "abc"), ("a", 1, "ab"), ("a", 2, "abc"), ("a", 99, "abc"), ("d", 5, "d")],
)
def test_neighbours_are_those_up_to_a_distance_in_both_directions(
    centre: str, distance: int, reached: str
) -> None:
    graph = graph_of(CHAIN)
    assert labels(graph, around(graph, [graph.homes[centre]], distance)) == set(reached)


def test_a_predicate_concerns_the_nodes_that_derive_it_and_those_that_read_it() -> None:
    graph = graph_of(CHAIN)
    assert labels(graph, concerned(graph, [Predicate("p1", 2)])) == {"a", "b"}
    assert labels(graph, concerned(graph, [Predicate("p0", 2)])) == {"a"}
    assert labels(graph, concerned(graph, [Predicate("p1", 3)])) == set()


def test_atoms_under_not_and_inside_aggregates_read_too() -> None:
    graph = graph_of(
        "a: p(X, Y) :- e(X, Y), not q(X, Y) . b: n(X, N) :- AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N ."
    )
    assert labels(graph, concerned(graph, [Predicate("q", 2)])) == {"a", "b"}


def test_a_rule_over_all_classes_concerns_a_class() -> None:
    graph = graph_of("a: rdf:type(X, D) :- rdf:type(X, C), sub(C, D) . b: big(X) :- Turbine(X) .")
    assert labels(graph, concerned(graph, [Predicate("Turbine", 1)])) == {"a", "b"}


@pytest.mark.parametrize("name", ["ex:p", "ex:p/2", "<http://e/p>", "http://e/p", "http://e/p/2"])
def test_a_predicate_may_be_named_as_in_a_program(name: str) -> None:
    assert is_named(Predicate("http://e/p", 2), spelled(name, {"ex": "http://e/"}))


@pytest.mark.parametrize("name", ["p", "ex:p/3", "ex:q", "/2"])
def test_other_names_do_not_mean_it(name: str) -> None:
    assert not is_named(Predicate("http://e/p", 2), spelled(name, {"ex": "http://e/"}))
