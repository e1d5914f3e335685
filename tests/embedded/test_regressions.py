"""Programs on which the embedded engine once failed and that random programs seldom reach."""

from __future__ import annotations

import pytest

from strategies import evaluate_text
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import UsageProblem


def assert_same(text: str) -> None:
    expected = evaluate_text(text, engine=ReferenceEngine()).result
    got = evaluate_text(text, engine=EmbeddedEngine()).result
    assert got.visible() == expected.visible()
    assert {k: d.count for k, d in got.dropped.items()} == {k: d.count for k, d in expected.dropped.items()}


def test_a_new_number_flows_through_other_predicates_of_its_node() -> None:
    assert_same("""
        q0(X, N) :- q2(Y, X), N := 1 + 1 .
        q0(X, Y) :- q1(X, Y) .
        q1(X, Y) :- q2(X, Y) .
        q2(X, Y) :- q0(Y, X) .
        q2(X, Y) :- e(X, Y) .
        e(a, b) . e(b, c) . e(c, d) .
    """)


@pytest.mark.parametrize("function", ["floor", "ceil", "round"])
def test_a_double_beyond_64_bits_has_no_whole_number(function: str) -> None:
    numbers = (
        "1e300",
        "-1e300",
        "1e19",
        "-1e19",
        "9223372036854775808.0",
        "9.3e18",
        "-9223372036854775808.0",
    )
    facts = " ".join(f"n({number}) ." for number in numbers)
    assert_same(f"p(X, Y) :- n(X), Y := {function}(X) . {facts}")


def test_a_head_without_columns() -> None:
    assert_same("flag() :- e(X, Y), X != Y . e(a, b) . e(b, b) .")


def test_a_full_buffer_between_two_tables_of_one_predicate() -> None:
    chain = " ".join(f"e(x{n}, x{n + 1}) ." for n in range(120))
    assert_same(f"p(X, Y) :- e(X, Y) . p(X, Y) :- p(X, Z), p(Z, Y), X != Z . {chain} p(x5, x3) .")


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(UsageProblem, match="there is no strategy 'recomputed'"):
        EmbeddedEngine(strategy="recomputed")
