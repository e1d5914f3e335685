"""Limits end the work with an error that names the rule."""

from __future__ import annotations

import time

import pytest

from strategies import evaluate_text
from zodiacedge.engine.api import Progress, Settings
from zodiacedge.engine.limits import Limits
from zodiacedge.errors import LimitReached

ENDLESS = "n(0) . count: n(Y) :- n(X), Y := X + 1 ."


def test_a_limit_on_facts_ends_endless_recursion() -> None:
    with pytest.raises(LimitReached, match=r"100 derived facts was reached in rule count") as caught:
        evaluate_text(ENDLESS, Settings(limits=Limits(facts=100)))
    assert [d.code for d in caught.value.diagnostics] == ["E001"]


def test_a_limit_on_rounds_ends_endless_recursion() -> None:
    with pytest.raises(LimitReached, match=r"20 rounds was reached in rule count"):
        evaluate_text(ENDLESS, Settings(limits=Limits(rounds=20)))


def test_a_limit_on_seconds_ends_endless_recursion() -> None:
    start = time.perf_counter()
    with pytest.raises(LimitReached, match=r"0.2 s was reached in rule count"):
        evaluate_text(ENDLESS, Settings(limits=Limits(seconds=0.2)))
    assert time.perf_counter() - start < 20


def test_a_limit_on_memory_ends_the_work() -> None:
    with pytest.raises(LimitReached, match=r"1 byte of memory was reached in rule count"):
        evaluate_text(ENDLESS, Settings(limits=Limits(memory=1)))


@pytest.mark.parametrize("rule", ["r: n(Y) :- n(X), Y := X + 1 .", "r: m(X, Y) :- n(X), n(Y) ."])
@pytest.mark.parametrize(
    ("limits", "advice"),
    [
        (Limits(facts=2), "if it is recursive and computes values, bound them .*raise the limit .facts."),
        (Limits(rounds=0), "if it is recursive and computes values, bound them .*raise the limit .rounds."),
        (Limits(memory=1), "narrow its body or load fewer facts; or raise the limit .memory."),
        (Limits(seconds=0.0), "narrow its body or load fewer facts; or raise the limit .seconds."),
    ],
)
def test_the_advice_is_right_with_and_without_recursion(rule: str, limits: Limits, advice: str) -> None:
    facts = " ".join(f"n({n}) ." for n in range(80))
    with pytest.raises(LimitReached, match=advice):
        evaluate_text(f"{facts} {rule}", Settings(limits=limits))


def test_what_stays_below_its_limits_is_not_disturbed() -> None:
    text = "n(0) . n(Y) :- n(X), Y := X + 1, Y <= 5 ."
    limits = Limits(facts=5, rounds=6, seconds=60.0)
    assert len(evaluate_text(text, Settings(limits=limits)).facts()) == 5


def test_the_limit_on_facts_counts_all_nodes_together() -> None:
    text = "e(1) . e(2) . e(3) . a(X) :- e(X) . b(X) :- a(X) ."
    with pytest.raises(LimitReached):
        evaluate_text(text, Settings(limits=Limits(facts=5)))
    assert len(evaluate_text(text, Settings(limits=Limits(facts=6))).facts()) == 6


def test_explicit_facts_do_not_count_as_derived() -> None:
    facts = " ".join(f"e({n}) ." for n in range(50))
    assert len(evaluate_text(f"{facts} a(X) :- e(X), X < 3 .", Settings(limits=Limits(facts=3))).facts()) == 3


def _much(rule: str) -> str:
    return " ".join(f"e({n}) ." for n in range(40)) + rule


@pytest.mark.parametrize(
    "rule",
    [
        "r: p(X) :- e(X), e(Y), e(Z), X + Y + Z < 0 .",
        "r: p(N) :- AGGREGATE(e(X), e(Y), e(Z), X + Y + Z < 0) WITH COUNT(X) AS N .",
        "r: p(N) :- AGGREGATE(e(X), e(Y), e(Z)) WITH COUNT(X) AS N .",
    ],
)
def test_the_clock_is_watched_where_a_join_finds_nothing_and_inside_aggregates(rule: str) -> None:
    with pytest.raises(LimitReached, match="rule r"):
        evaluate_text(_much(rule), Settings(limits=Limits(seconds=0.0)))


def test_the_clock_is_watched_in_queries() -> None:
    evaluated = evaluate_text(_much(""), Settings(limits=Limits(seconds=0.0)))
    with pytest.raises(LimitReached, match="the limit of 0 s was reached in the query\n"):
        evaluated.answer("?- e(X), e(Y), e(Z), X + Y + Z < 0 .")


def test_a_limit_of_one_is_singular() -> None:
    with pytest.raises(LimitReached, match="1 derived fact was reached"):
        evaluate_text(ENDLESS, Settings(limits=Limits(facts=1)))
    with pytest.raises(LimitReached, match="1 round was reached"):
        evaluate_text(ENDLESS, Settings(limits=Limits(rounds=1)))


def test_progress_is_reported_after_every_round() -> None:
    seen: list[Progress] = []
    text = "n(0) . r: n(Y) :- n(X), Y := X + 1, Y < 3 . s: m(X) :- n(X) ."
    evaluate_text(text, Settings(progress=seen.append))
    assert [(p.node, p.nodes, p.rules, p.round, p.facts) for p in seen] == [
        (0, 2, ("r",), 1, 1),
        (0, 2, ("r",), 2, 2),
        (0, 2, ("r",), 3, 2),
        (1, 2, ("s",), 1, 5),
        (1, 2, ("s",), 2, 5),
    ]
