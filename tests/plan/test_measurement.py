"""Measured plans: the rows of each step are those that the reference counts, and estimates are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from strategies import Seeded, evaluate_program, random_program
from zodiacedge.engine.api import MeasuresPlans, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate.seminaive import NodeEvaluation
from zodiacedge.engine.embedded.machine.execute import execute
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.language.ast import Query, Variable
from zodiacedge.language.safety import resolve
from zodiacedge.plan import algebra
from zodiacedge.plan.measurement import MeasuredStep, Measurement, StepCount, measured_steps
from zodiacedge.plan.order import NoStatistics
from zodiacedge.plan.variants import plans

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.language.ast import Rule
    from zodiacedge.plan.algebra import Plan


def evaluated(text: str, **facts: list[tuple[int, int]]) -> ze.KnowledgeBase:
    kb = ze.open()
    with kb.change() as change:
        change.add_rules(text)
        for name, rows in facts.items():
            for row in rows:
                change.add_facts(f"{name}({', '.join(map(str, row))}) .")
    return kb


def whole(rule: Rule) -> Plan:
    return plans(resolve(rule), (), NoStatistics())[0]


def measured(kb: ze.KnowledgeBase, label: str) -> Measurement:
    (rule,) = (rule for rule in kb.rules if rule.label == label)
    state = kb.state
    assert isinstance(state, MeasuresPlans)
    return state.measure(whole(rule), kb.settings)


def rows(counts: tuple[StepCount, ...]) -> list[int]:
    return [count.rows for count in counts]


def test_rows_are_counted_after_each_step() -> None:
    kb = evaluated(
        "r: p(X, S) :- e(X, Y), Y > 2, S := X + Y, not f(X, Y) .",
        e=[(n, n) for n in range(6)],
        f=[(3, 3), (4, 7)],
    )
    found = measured(kb, "r")
    assert rows(found.steps) == [6, 3, 3, 2]
    assert (found.rows, found.facts) == (2, 2)


def test_heads_that_are_derived_twice_are_one_fact() -> None:
    kb = evaluated("r: p(Z, Z) :- e(X, Z), e(Z, Y) .", e=[(1, 2), (3, 2), (2, 4), (2, 5)])
    found = measured(kb, "r")
    # The second atom only tests: one match is enough for each row of the first.
    assert (found.rows, found.facts) == (2, 1)


def test_what_the_node_itself_derives_is_read_as_it_is_at_the_end() -> None:
    chain = [(n, n + 1) for n in range(10)]
    kb = evaluated("a: t(X, Y) :- e(X, Y) . b: t(X, Z) :- t(X, Y), e(Y, Z) .", e=chain)
    assert measured(kb, "b").facts == 45


def test_a_fact_that_is_explicit_and_derived_is_read_once() -> None:
    kb = evaluated("a: p(X, Y) :- e(X, Y) . b: q(X, Y) :- p(X, Y), e(X, Y) .", e=[(1, 2)], p=[(1, 2), (3, 4)])
    assert measured(kb, "b").rows == 1
    assert sorted(rows(measured(kb, "b").steps)) in ([1, 1], [1, 2])


def test_the_body_of_an_aggregate_has_counts_of_its_own() -> None:
    kb = evaluated(
        "r: n(X, N, M) :- g(X, M), AGGREGATE(e(X, Y), Y > 1) ON X WITH COUNT(Y) AS N .",
        e=[(1, 1), (1, 2), (1, 3), (2, 2)],
        g=[(1, 5), (1, 6)],
    )
    found = measured(kb, "r")
    assert rows(found.inner) == [4, 3]
    assert rows(found.steps) == [2, 2]
    assert [type(step) for step in found.plan.inner] == [algebra.Match, algebra.Test]


def test_rows_are_right_where_python_computes_values() -> None:
    kb = ze.open()
    kb.function(lambda x: x + 1, name="next")
    with kb.change() as change:
        change.add_rules("r: p(X, Y) :- e(X, X), Y := func:next(X) .")
        change.add_facts("e(1, 1) . e(2, 2) . e(3, 3) .")
    assert rows(measured(kb, "r").steps) == [3, 3]


def test_what_a_first_run_costs_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "zodiacedge.engine.embedded.evaluate.measure"
    clock = [0]

    def slow_at_first(call: Callable[..., object]) -> Callable[..., object]:
        costs = iter([1_000_000])

        def run(*given: object) -> object:
            clock[0] += next(costs, 1)
            return call(*given)

        return run

    kb = evaluated(
        "r: n(X, N) :- g(X), AGGREGATE(e(X, Y), Y > 1) ON X WITH COUNT(Y) AS N . g(1) .", e=[(1, 2)]
    )
    monkeypatch.setattr(NodeEvaluation, "aggregate_rows", slow_at_first(NodeEvaluation.aggregate_rows))
    monkeypatch.setattr(f"{module}.execute", slow_at_first(execute))
    monkeypatch.setattr(f"{module}.time", SimpleNamespace(perf_counter=lambda: clock[0]))
    found = measured(kb, "r")
    assert clock[0] > 2_000_000
    assert [count.seconds for count in (*found.inner, *found.steps)] == [1, 1, 1, 1]
    assert found.seconds == 2


def test_a_rule_without_facts_reaches_no_further_step() -> None:
    kb = evaluated("r: p(X, Z) :- e(X, Y), f(Y, Z) . s: e(X, Y) :- g(X, Y) .")
    found = measured(kb, "r")
    assert rows(found.steps) == [0, 0]
    assert measured_steps(found.plan.steps, found.steps)[1].actual is None


@pytest.mark.parametrize("seed", range(40))
def test_a_measured_rule_derives_what_the_reference_derives_from_the_same_facts(seed: int) -> None:
    program = random_program(Seeded(seed))
    state = evaluate_program(program, engine=EmbeddedEngine()).result
    reference = evaluate_program(program, engine=ReferenceEngine()).result
    assert isinstance(state, MeasuresPlans)
    for rule in map(resolve, program.rules):
        found = state.measure(whole(rule), Settings())
        columns = tuple(dict.fromkeys(a for a in rule.head.args if isinstance(a, Variable)))
        answer = reference.answer(Query(columns, rule.body), Settings())
        assert found.facts == len(answer.rows)
        assert found.rows >= found.facts
        assert len(found.steps) == len(rule.body)


@pytest.mark.parametrize(
    ("estimate", "actual", "off"),
    [
        (100.0, 100.0, False),
        (100.0, 9.0, True),
        (9.0, 100.0, True),
        (20.0, 100.0, False),
        (0.5, 0.0, False),
        (None, 100.0, False),
        (100.0, None, False),
    ],
)
def test_an_estimate_is_off_by_an_order_of_magnitude(
    estimate: float | None, actual: float | None, *, off: bool
) -> None:
    step = whole(evaluated("r: p(X, Y) :- e(X, Y) .").rules[0]).steps[0]
    assert MeasuredStep(step, estimate, actual, StepCount(1, 0.0)).is_off is off
