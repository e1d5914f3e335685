"""A negative edge inside a hyper-node: refused, with the cycle told rule by rule."""

from __future__ import annotations

import pytest

from zodiacedge.errors import Diagnostic, StratificationProblem
from zodiacedge.graph import HyperGraph
from zodiacedge.language.ast import Atom, Negation, Rule, Variable
from zodiacedge.language.parser import parse_program


def rules_of(text: str) -> dict[str, Rule]:
    program = parse_program(text, "some.rules")
    return {rule.label or f"key {place}": rule for place, rule in enumerate(program.rules)}


def findings(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(StratificationProblem) as caught:
        HyperGraph.build(rules_of(text))
    return caught.value.diagnostics


def steps(finding: Diagnostic) -> list[str]:
    return [line.strip() for line in finding.message.split("\n")[1:]]


def test_a_cycle_through_not_is_told_rule_by_rule() -> None:
    (found,) = findings("""
        a: p(X, Y) :- q(X, Y), not r(X, Y) .
        b: r(X, Y) :- s(Y, X) .
        c: s(X, Y) :- p(X, Y) .
    """)
    assert found.code == "G001"
    assert "`not`" in found.message.split("\n")[0]
    assert steps(found) == [
        "b derives r/2, which a reads under `not`",
        "a derives p/2, which c reads",
        "c derives s/2, which b reads",
    ]


def test_the_places_of_the_cycle_are_shown() -> None:
    (found,) = findings("a: p(X, Y) :- e(X, Y), not q(X, Y) .\nb: q(X, Y) :- p(Y, X) .\n")
    assert found.span is not None
    assert found.span.text == "q(X, Y)"
    assert [(text, span.text) for text, span in found.related] == [("b reads p/2", "p(Y, X)")]
    assert "some.rules:1:28" in found.render()


def test_a_rule_that_denies_itself_is_a_cycle_of_one() -> None:
    (found,) = findings("win: Win(X) :- move(X, Y), not Win(Y) .")
    assert steps(found) == ["win derives Win/1, which win reads under `not`"]


def test_any_atom_inside_an_aggregate_counts() -> None:
    (found,) = findings("""
        n: total(X, N) :- AGGREGATE(part(X, Y), not gone(Y, Y), weight(Y, W)) ON X WITH SUM(W) AS N .
        w: gone(X, X) :- total(X, N) .
    """)
    assert steps(found)[0] == "w derives gone/2, which n reads inside an aggregate"
    assert "an aggregate" in found.message.split("\n")[0]


def test_the_shortest_cycle_is_chosen() -> None:
    (found,) = findings("""
        a: p(X, Y) :- e(X, Y), not q(X, Y) .
        l1: r(X, Y) :- p(X, Y) .
        l2: s(X, Y) :- r(X, Y) .
        l3: q(X, Y) :- s(X, Y) .
        short: q(X, Y) :- p(Y, X) .
        b: s(X, Y) :- r(X, Y), not p(Y, Y) .
    """)
    assert steps(found) == [
        "short derives q/2, which a reads under `not`",
        "a derives p/2, which short reads",
    ]


def test_every_offending_node_is_reported_at_once() -> None:
    found = findings("""
        a: p(X, Y) :- e(X, Y), not p(Y, X) .
        b: q(X, Y) :- e(X, Y), not r(Y, X) .
        c: r(X, Y) :- q(X, Y) .
        fine: s(X, Y) :- e(X, Y), not q(X, Y) .
    """)
    assert [finding.code for finding in found] == ["G001", "G001"]
    assert sum("p/2" in finding.message for finding in found) == 1


def test_a_variable_class_in_a_head_is_named_as_the_reason() -> None:
    (found,) = findings("""
        sub: rdf:type(X, Z) :- rdf:type(X, Y), subClassOf(Y, Z) .
        fine: Fine(X) :- Turbine(X), not Broken(X) .
    """)
    assert steps(found)[0] == "sub derives Broken/1, which fine reads under `not`"
    assert "the head of sub is `rdf:type` with a variable class" in found.note


def test_a_rule_without_a_label_is_told_by_its_text() -> None:
    (found,) = findings("p(X, Y) :- e(X, Y), not p(Y, X) .")
    text = "`p(X, Y) :- e(X, Y), not p(Y, X)`"
    assert steps(found) == [f"{text} derives p/2, which {text} reads under `not`"]


def test_rules_without_a_source_are_refused_as_well() -> None:
    head = Atom("p", (Variable("X"), Variable("Y")))
    with pytest.raises(StratificationProblem) as caught:
        HyperGraph.build({"k": Rule(head, (Negation(head),), "r")})
    assert caught.value.diagnostics[0].span is None


def test_constants_that_differ_keep_a_cycle_open() -> None:
    graph = HyperGraph.build(rules_of("a: p(X, one) :- e(X, X), not p(X, two) . b: Q(X) :- R(X), not P(X) ."))
    assert len(graph) == 2


def test_a_refused_update_leaves_the_graph_as_it_was() -> None:
    graph = HyperGraph.build(rules_of("a: p(X, Y) :- e(X, Y), not q(X, Y) . b: q(X, Y) :- f(X, Y) ."))
    before = dict(graph.nodes), dict(graph.homes), list(graph.ranks), len(graph.rules)
    with pytest.raises(StratificationProblem):
        graph.update(rules_of("c: q(X, Y) :- p(X, Y) . d: fresh(X, Y) :- p(X, Y) ."), ["b"])
    assert (dict(graph.nodes), dict(graph.homes), list(graph.ranks), len(graph.rules)) == before
    after, change = graph.update(rules_of("d: fresh(X, Y) :- p(X, Y) ."))
    assert len(after) == 3
    assert [line.fate for line in change.lineages] == ["formed"]


def test_a_cycle_that_only_an_old_rule_denies_is_refused_too() -> None:
    graph = HyperGraph.build(rules_of("a: p(X, Y) :- e(X, Y), not q(X, Y) ."))
    with pytest.raises(StratificationProblem):
        graph.update(rules_of("c: q(X, Y) :- p(X, Y) ."))
