"""Evaluation errors: they drop bindings, are counted, and never depend on the order of a body."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import RandomProgram, evaluate_program, evaluate_text, keyed, programs
from zodiacedge.engine.api import Settings
from zodiacedge.errors import EvaluationProblem
from zodiacedge.language.ast import Aggregate, Conjunct, Rule

DIVIDED = 'p(0) . p(1) . p("a") . r: q(X, Y) :- p(X), Y := 6 / X .'


def test_an_error_drops_its_binding_and_no_other() -> None:
    assert evaluate_text(DIVIDED).facts() == ["q(1, 6.0E0)"]


def test_dropped_bindings_are_counted_per_rule() -> None:
    evaluated = evaluate_text(DIVIDED + " s: t(Y) :- p(X), Y := X + 1 . u(X) :- p(X) .")
    counts = {evaluated.rules[key].label: found.count for key, found in evaluated.result.dropped.items()}
    assert counts == {"r": 2, "s": 1}


def test_the_example_names_the_reason_and_the_binding() -> None:
    dropped = evaluate_text("p(0) . r: q(Y) :- p(X), Y := 6 / X .").dropped("r")
    assert dropped is not None
    assert dropped.example == "division by zero (X = 0)"


def test_an_error_is_counted_once_though_recursion_meets_it_in_every_round() -> None:
    evaluated = evaluate_text('n(0) . n("a") . r: n(Y) :- n(X), Y := X + 1, Y < 5 .')
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 1


def test_a_binding_with_two_errors_is_counted_once() -> None:
    dropped = evaluate_text("p(0) . r: q(Y, Z) :- p(X), Y := 1 / X, Z := 2 / X .").dropped("r")
    assert dropped is not None
    assert dropped.count == 1


def test_an_error_counts_only_where_everything_else_holds() -> None:
    evaluated = evaluate_text("p(0) . p(1) . q(1) . r: s(Y) :- p(X), q(X), Y := 1 / X .")
    assert evaluated.dropped() is None
    evaluated = evaluate_text("p(0) . r: s(Y) :- p(X), Y := 1 / X, X > 0 .")
    assert evaluated.dropped() is None


def test_what_needs_a_missing_value_is_not_judged() -> None:
    evaluated = evaluate_text("p(0) . q(1) . r: s(X) :- p(X), Y := 1 / X, Y > 5, not q(Y), Z := Y + 1 .")
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 1
    assert evaluated.facts() == []


def test_an_error_inside_an_aggregate_drops_the_inner_binding() -> None:
    text = "p(a, 0) . p(a, 2) . r: s(X, S) :- AGGREGATE(p(X, V), W := 6 / V) ON X WITH SUM(W) AS S ."
    evaluated = evaluate_text(text)
    dropped = evaluated.dropped("r")
    assert evaluated.facts() == ["s(a, 3.0E0)"]
    assert dropped is not None
    assert dropped.count == 1


def test_a_comparison_across_kinds_is_an_error_and_not_false() -> None:
    evaluated = evaluate_text('p(1) . p("a") . r: q(X) :- p(X), X < 5 . s: t(X) :- p(X), X != 5 .')
    assert evaluated.facts() == ["q(1)", 't("a")', "t(1)"]
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 1
    assert evaluated.dropped("s") is None


def test_a_query_reports_what_it_dropped() -> None:
    evaluated = evaluate_text("p(0) . p(2) .")
    assert evaluated.answer("?- p(X), Y := 6 / X .") == ["2, 3.0E0"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(5))))
def test_no_order_of_a_body_changes_facts_or_counts(order: tuple[int, ...]) -> None:
    parts = ["p(X)", "Y := 6 / X", "Z := Y + X", "Z < 10", "not q(Z)"]
    body = ", ".join(parts[n] for n in order)
    evaluated = evaluate_text(f'p(0) . p("a") . p(1) . p(2) . p(6) . q(5e0) . r: s(X) :- {body} .')
    assert evaluated.facts() == ["s(1)", "s(6)"]
    dropped = evaluated.dropped("r")
    assert dropped is not None
    assert dropped.count == 2


def _shuffled(draw: st.DrawFn, body: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    moved = [
        replace(c, body=_shuffled(draw, c.body)) if isinstance(c, Aggregate) else c
        for c in draw(st.permutations(body))
    ]
    return tuple(moved)


@st.composite
def _reordered(draw: st.DrawFn) -> tuple[RandomProgram, RandomProgram]:
    program = draw(programs())
    rules: list[Rule] = [replace(rule, body=_shuffled(draw, rule.body)) for rule in program.rules]
    return program, replace(program, rules=tuple(draw(st.permutations(rules))))


@settings(max_examples=150)
@given(_reordered())
def test_no_order_of_random_bodies_and_rules_changes_facts_or_counts(
    pair: tuple[RandomProgram, RandomProgram],
) -> None:
    first, second = map(evaluate_program, pair)
    assert keyed(pair[0].rules).keys() == keyed(pair[1].rules).keys()
    assert first.result.visible() == second.result.visible()
    assert {k: d.count for k, d in first.result.dropped.items()} == {
        k: d.count for k, d in second.result.dropped.items()
    }


# Strict mode


def test_strict_mode_raises_and_names_the_rule() -> None:
    with pytest.raises(EvaluationProblem, match=r"rule r drops 2 bindings") as caught:
        evaluate_text(DIVIDED, Settings(strict=True))
    assert [d.code for d in caught.value.diagnostics] == ["E002"]


def test_strict_mode_shows_a_rule_without_a_label() -> None:
    with pytest.raises(EvaluationProblem, match=r"q\(Y\) :- p\(X\), Y := 1 / X"):
        evaluate_text("p(0) . q(Y) :- p(X), Y := 1 / X .", Settings(strict=True))


def test_strict_mode_names_every_rule_of_a_node() -> None:
    text = (
        'p("a") . a: p(Y) :- q(X), Y := X + 1, Y < 3 . b: q(Y) :- p(X), Y := X - 1, Y > 0 . c: q(X) :- p(X) .'
    )
    with pytest.raises(EvaluationProblem) as caught:
        evaluate_text(text, Settings(strict=True))
    assert len(caught.value.diagnostics) == 2


def test_strict_mode_is_silent_without_errors() -> None:
    assert evaluate_text("p(2) . q(Y) :- p(X), Y := 6 / X .", Settings(strict=True)).facts() == ["q(3.0E0)"]
