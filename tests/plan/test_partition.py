"""When a node's fixpoint falls apart, and by which arguments."""

from __future__ import annotations

import pytest

from zodiacedge.language.parser import parse_program
from zodiacedge.language.safety import resolve
from zodiacedge.plan.partition import fixpoint_partitioning


@pytest.mark.parametrize(
    ("rules", "positions"),
    [
        ("p(X, Z) :- p(X, Y), e(Y, Z) .", {("p", 2): 0}),
        ("p(X, Z) :- e(X, Y), p(Y, Z) .", {("p", 2): 1}),
        ("p(X, Z) :- p(X, Y), p(Y, Z) .", None),
        ("p(X, Y) :- p(Y, X) .", None),
        ("p(X, Y) :- up(X, A), p(A, B), down(B, Y) .", None),
        ("p(X, Z) :- p(X, Y), not n(Y), e(Y, Z) . p(X, Z) :- p(X, Y), p(X, Z), f(Y, Z) .", {("p", 2): 0}),
        ("p(X, Y) :- q(Y, X) . q(X, Y) :- p(Y, X), e(X) .", {("p", 2): 0, ("q", 2): 1}),
        ("p(a, Z) :- p(a, Y), e(Y, Z) .", None),
        ("C(X) :- C(X), e(X, Y), D(Y) .", {("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", 2): 0}),
        ("p(X, Y) :- p(X, X), e(X, Y) .", {("p", 2): 0}),
        ("p(X) :- p(X), e(X) . p(X) :- p(Y), e(Y, X) .", None),
    ],
)
def test_positions(rules: str, positions: dict[tuple[str, int], int] | None) -> None:
    found = fixpoint_partitioning([resolve(rule) for rule in parse_program(rules).rules])
    by_predicate = {(p.name, p.arity): at for p, at in found.positions.items()} if found else None
    assert by_predicate == positions


def test_a_node_with_very_many_ways_to_choose_is_not_searched() -> None:
    wide = ", ".join(f"X{n}" for n in range(30))
    rules = f"p({wide}) :- q({wide}) . q({wide}) :- p({wide}), e(X0) ."
    assert fixpoint_partitioning([resolve(rule) for rule in parse_program(rules).rules]) is None
