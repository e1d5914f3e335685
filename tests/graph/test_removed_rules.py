"""Removed rules: the nodes that read them are impacted, and no trace stays in the indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from zodiacedge.graph import HyperGraph
from zodiacedge.language.parser import parse_program

if TYPE_CHECKING:
    from zodiacedge.language.ast import Rule


def rules_of(text: str) -> dict[str, Rule]:
    return {rule.label: rule for rule in parse_program(text).rules}


def test_what_read_from_a_dropped_node_is_directly_impacted() -> None:
    graph = HyperGraph.build(
        rules_of("""
            a: p(X, Y) :- e(X, Y) .  b: q(X, Y) :- p(X, Y) .  n: r(X, Y) :- e(X, Y), not p(X, Y) .
            c: s(X, Y) :- q(X, Y) .  other: t(X, Y) :- e(X, Y) .
        """)
    )
    _, change = graph.update({}, ["a"])
    assert [node.rules for node in change.dropped] == [("a",)]
    assert change.lineages == ()
    assert {node.rules for node in change.directly_impacted()} == {("b",), ("n",)}
    assert {node.rules for node in change.plan()} == {("b",), ("n",), ("c",)}


@pytest.mark.parametrize(
    "text",
    [
        "p(X, Y) :- q(X, Y), not s(X, Y) .",
        "p(X, Y) :- q(X, Y) .",
        "p(X, Y) :- q(X, Y), r(X, Y) .",
        "s(X, Y) :- q(X, Y), not r(X, Y) .",
    ],
)
def test_a_key_cannot_come_to_stand_for_a_rule_that_denies_something_else(text: str) -> None:
    graph = HyperGraph.build({"k": parse_program("p(X, Y) :- q(X, Y), not r(X, Y) .").rules[0]})
    with pytest.raises(ValueError, match="other dependencies"):
        graph.update({"k": parse_program(text).rules[0]})


def test_nothing_of_removed_rules_stays_in_the_tables() -> None:
    rules = rules_of("a: p(X, Y) :- q(X, Y), not r(X, Y) . b: u(X, Y) :- p(X, Y), v(X, X) .")
    graph = HyperGraph.build(rules).update({}, rules)[0]
    shape = HyperGraph.build(rules).rules.shapes["a"]
    for pattern in (*shape.positive, *shape.negative, shape.head):
        assert not list(graph.rules.bodies.unifying(pattern))
        assert not list(graph.rules.heads.unifying(pattern))
    assert not graph.rules.bodies._indexes
    assert not graph.rules.heads._indexes
    assert not len(graph.rules.positive)
    assert not len(graph.rules.negative)
    assert not len(graph.rules.writers)
