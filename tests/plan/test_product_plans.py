"""Which plans have heads that are a product, and what its parts are."""

from __future__ import annotations

import pytest

from zodiacedge.language.parser import parse_program
from zodiacedge.language.printer import format_conjunct
from zodiacedge.language.safety import resolve
from zodiacedge.plan.algebra import Absent, Match, Step
from zodiacedge.plan.order import NoStatistics
from zodiacedge.plan.product import Product, product_of
from zodiacedge.plan.variants import plans


def product(text: str, delta: int) -> Product | None:
    """Return the product of a rule's plan for the delta at a position."""
    rule = resolve(parse_program(text).rules[0])
    (plan,) = (plan for plan in plans(rule, [delta], NoStatistics()) if plan.delta == delta)
    return product_of(plan.steps, plan.head)


def shown(steps: tuple[Step, ...]) -> list[str]:
    return [format_conjunct(step.atom) for step in steps if isinstance(step, Match | Absent)]


def test_the_parts_share_only_the_first_variable_of_the_delta() -> None:
    found = product("p(X, Y) :- a(K, X), p(K, V), b(V, W), b(W, Y), a(K, U), c(U) .", 1)
    assert found is not None
    assert shown(found.parts[0]) == ["a(K, X)"]
    assert shown(found.parts[1]) == ["b(V, W)", "b(W, Y)"]
    assert sorted(shown(found.tests)) == ["a(K, U)", "c(U)"]
    assert found.with_delta == 1


def test_the_delta_alone_may_be_a_part() -> None:
    found = product("p(Y, X) :- a(K, X), p(K, Y) .", 1)
    assert found is not None
    assert found.parts[0] == ()
    assert found.with_delta == 0
    assert shown(found.parts[1]) == ["a(K, X)"]


def test_the_delta_may_bind_a_variable_of_the_head_if_one_atom_binds_the_other() -> None:
    found = product("p(X, Z) :- p(X, Y), a(Y, Z) .", 0)
    assert found is not None
    assert found.parts[0] == ()
    assert shown(found.parts[1]) == ["a(Y, Z)"]


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        ("p(X, Y) :- a(K, X), p(K, V), a(V, Y), X != Y .", 1),  # the parts are compared
        ("p(X, Y) :- a(V, X), p(K, V), a(V, Y) .", 1),  # they share the delta's other variable
        ("p(X, Y) :- a(K, X), a(K, Y), p(K, V), c(V) .", 2),  # the delta's other variable is in neither
        ("p(X, Z) :- p(X, Y), a(Y, W), a(W, Z) .", 0),  # one variable and a join of two atoms
        ("p(X, X) :- a(K, X), p(K, V) .", 1),
        ("p(X, k) :- a(K, X), p(K, X) .", 1),
        ("p(X, Y) :- a(K, X), p(K, K), a(K, Y) .", 1),
        ("p(X, Y, Z) :- a(K, X), a(K, Z), p(K, Y, X) .", 2),
        ("p(X, Y) :- a(K, X), p(K, Z), Y := Z .", 1),
    ],
)
def test_other_heads_are_no_product(text: str, delta: int) -> None:
    assert product(text, delta) is None


def test_the_part_with_fewer_matches_comes_first() -> None:
    found = product("p(X, Y) :- a(K, U), a(U, X), p(K, Y) .", 2)
    assert found is not None
    assert found.first == 1
