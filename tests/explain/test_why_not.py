"""`kb.why_not`: the closest bindings of each rule, and the conditions that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from zodiacedge.explain.missing import (
    Attempt,
    BodyFails,
    FailedComparison,
    HeadDiffers,
    NoBindings,
    NoResult,
    NoSuchFact,
    OtherValue,
    PresentFact,
    WhyNot,
)
from zodiacedge.language.ast import Variable
from zodiacedge.terms import IRI, integer

if TYPE_CHECKING:
    from zodiacedge.kb.knowledge_base import KnowledgeBase

FARM = """
r1: alarm(X) :- turbine(X), reading(X, V), V > 80, not muted(X) .
r2: alarm(wt9) :- storm(_) .
r3: peak(X, M) :- AGGREGATE(reading(X, V)) ON X WITH MAX(V) AS M .
r4: double(X, D) :- peak(X, M), D := M * 2 .
r5: ratio(X, R) :- reading(X, V), reading(Y, W), near(X, Y), R := V / W .
r6: path(X, Z) :- path(X, Y), near(Y, Z) .
r7: path(X, Y) :- near(X, Y) .
r8: pair(X, X) :- turbine(X) .
"""
FACTS = """
turbine(wt1) . turbine(wt2) . turbine(wt3) . turbine(wt4) . reading(wt1, 90) . reading(wt2, 55) .
reading(wt2, 20) . reading(wt3, 99) . muted(wt3) . near(wt1, wt2) . near(wt1, wt5) . reading(wt5, 0) .
"""


@pytest.fixture(params=["reference", "embedded"])
def farm(request: pytest.FixtureRequest) -> KnowledgeBase:
    kb = ze.open(engine=request.param)
    with kb.change() as c:
        c.add_rules(FARM)
        c.add_facts(FACTS)
    return kb


def failure(answer: WhyNot, label: str) -> BodyFails:
    (found,) = [f for f in answer.rules if f.rule.label == label]
    assert isinstance(found, BodyFails)
    return found


def closest(answer: WhyNot, label: str) -> Attempt:
    return failure(answer, label).attempts[0]


def test_a_comparison_that_fails_has_its_values(farm: KnowledgeBase) -> None:
    attempts = failure(farm.why_not("alarm(wt2)"), "r1").attempts
    told = []
    for attempt in attempts:
        (failing,) = attempt.failing
        assert isinstance(failing, FailedComparison)
        assert len(attempt.holds) == 3
        told.append((str(failing.premise.left), str(failing.premise.right)))
    assert sorted(told) == [("20", "80"), ("55", "80")]


def test_a_negated_fact_that_is_there_is_named(farm: KnowledgeBase) -> None:
    (failing,) = closest(farm.why_not("alarm(wt3)"), "r1").failing
    assert isinstance(failing, PresentFact)
    assert str(failing.fact) == "muted(wt3)"
    assert failing.explicit


def test_an_unnamed_variable_is_shown_as_it_was_written(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_rules(
            "r9: odd(X) :- alert(X, _) . r10: all(N) :- AGGREGATE(reading(_, V)) WITH COUNT(V) AS N ."
        )
    missing, other = farm.why_not("odd(wt1)"), farm.why_not("all(1)")
    assert "alert(wt1, _): no such fact" in str(missing)
    assert list(map(str, missing.next_questions)) == ["alert(wt1, _)"]
    assert "AGGREGATE(reading(_, V)) WITH COUNT(V) AS N gives N = 5, and 1 is asked" in str(other)


def test_computed_numbers_are_shown_without_exponents(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_rules("r9: odd(X) :- reading(X, V), D := V / 4.0, D > 30 .")
    assert "D := V / 4.0: 90 / 4.0 = 22.5\n" in str(farm.why_not("odd(wt1)"))
    assert "D > 30 fails: 22.5 > 30\n" in str(farm.why_not("odd(wt1)"))


def test_attempts_that_come_as_close_are_in_a_fixed_order(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_facts("near(wt9, wt3) . near(wt9, wt2) . near(wt9, wt4) . near(wt9, wt1) .")
    attempts = failure(farm.why_not("ratio(wt9, 1)"), "r5").attempts
    told = [str(attempt.values[Variable("Y")]) for attempt in attempts]
    assert told == sorted(told)


def test_the_largest_part_of_the_body_is_kept(farm: KnowledgeBase) -> None:
    answer = farm.why_not("alarm(wt4)")
    attempt = closest(answer, "r1")
    (failing,) = attempt.failing
    assert isinstance(failing, NoSuchFact)
    assert str(failing.pattern) == "reading(wt4, V)"
    assert [str(atom) for atom in answer.next_questions] == ["reading(wt4, V)"]
    assert len(attempt.open) == 1


def test_a_head_that_cannot_match_is_named_with_the_reason(farm: KnowledgeBase) -> None:
    (head,) = [f for f in farm.why_not("alarm(wt2)").rules if isinstance(f, HeadDiffers)]
    assert (head.rule.label, str(head.constant), str(head.wanted)) == ("r2", "wt9", "wt2")
    (head,) = [f for f in farm.why_not("pair(wt1, wt2)").rules if isinstance(f, HeadDiffers)]
    assert (head.position, str(head.constant), str(head.wanted)) == (1, "wt1", "wt2")


def test_a_pattern_that_repeats_a_variable_asks_for_equal_arguments(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_rules("""
            n1: near2(X, Y) :- near(X, Y) .
            s1: same(wt9, Y) :- turbine(Y) .
            s2: same(a, b) :- turbine(X) .
        """)
    answer = farm.why_not("near2(Q, Q)")
    (failing,) = closest(answer, "n1").failing
    assert isinstance(failing, FailedComparison)
    assert "X = Y fails: wt1 = wt2" in str(answer)
    # The rule is told as it was stated.
    assert "n1: near2(X, Y) :- near(X, Y) .\n" in f"{answer}\n"
    head, body = farm.why_not("same(Q, Q)").rules[::-1]
    assert isinstance(head, HeadDiffers)
    assert (head.position, str(head.constant), str(head.wanted)) == (1, "b", "a")
    assert isinstance(body, BodyFails)
    # One argument is a constant of the head, so the other must be it.
    assert body.attempts[0].values[Variable("Y")] == IRI("wt9")


def test_an_aggregate_whose_group_is_not_asked_is_tried_on_groups(farm: KnowledgeBase) -> None:
    attempts = failure(farm.why_not("peak(X, 1000)"), "r3").attempts
    assert [str(a.values[Variable("M")]) for a in attempts] == ["90", "55", "99"]
    assert all(isinstance(f, OtherValue) for a in attempts for f in a.failing)
    with farm.change() as c:
        c.remove_facts([f for f in farm.facts() if f.relation == "reading"])
    (failing,) = closest(farm.why_not("peak(X, M)"), "r3").failing
    assert failing == NoBindings(failing.aggregate, {})  # type: ignore[union-attr]


def test_a_result_that_another_atom_has_as_another_value_is_told(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_rules("top: highest(X) :- peak(X, M), AGGREGATE(peak(Y, N)) WITH MAX(N) AS M .")
    attempt = closest(farm.why_not("highest(wt1)"), "top")
    assert attempt.values[Variable("M")] == integer(90)
    assert "gives M = 99, and 90 is needed" in str(farm.why_not("highest(wt1)"))


def test_conditions_on_what_follows_from_an_aggregate_are_tried(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_rules("""
            far: far(X, D) :- turbine(X), D := S - 50, D > 30, not muted(X),
                AGGREGATE(reading(X, V)) ON X WITH SUM(V) AS S .
        """)
    (failing,) = closest(farm.why_not("far(wt2, D)"), "far").failing
    assert isinstance(failing, FailedComparison)
    assert "D > 30 fails: 25 > 30" in str(farm.why_not("far(wt2, D)"))


def test_other_results_and_empty_groups_are_told(farm: KnowledgeBase) -> None:
    (failing,) = closest(farm.why_not("peak(wt2, 99)"), "r3").failing
    assert isinstance(failing, OtherValue)
    assert (str(failing.value), str(failing.wanted)) == ("55", "99")
    (failing,) = closest(farm.why_not("peak(wt4, 1)"), "r3").failing
    assert isinstance(failing, NoBindings)
    (failing,) = closest(farm.why_not("double(wt1, 1)"), "r4").failing
    assert isinstance(failing, OtherValue)
    assert (str(failing.value), str(failing.wanted)) == ("180", "1")


def test_an_expression_without_a_value_is_told(farm: KnowledgeBase) -> None:
    reasons = [a.failing[0] for a in failure(farm.why_not("ratio(wt1, 3)"), "r5").attempts]
    assert any(isinstance(reason, NoResult) for reason in reasons)


def test_a_recursive_atom_under_question_is_named(farm: KnowledgeBase) -> None:
    answer = farm.why_not("path(wt2, X)")
    (failing, *_) = [
        f for a in failure(answer, "r6").attempts for f in a.failing if isinstance(f, NoSuchFact)
    ]
    assert failing.under_question
    assert [str(atom) for atom in answer.next_questions] == ["near(wt2, Y)"]


def test_near_misses_are_found_among_many_bindings(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_rules("r10: odd(X) :- turbine(X), reading(X, V), V > 500, V < 600, not muted(X) .")
        c.add_facts("\n".join(f"reading(wt4, {n}) ." for n in (*range(450), 700)))
    attempt = closest(farm.why_not("odd(wt4)"), "r10")
    (failing,) = attempt.failing
    assert isinstance(failing, FailedComparison)


def test_nothing_defines_the_predicate(farm: KnowledgeBase) -> None:
    assert farm.why_not("alrm(wt1)").note == "did you mean alarm?"
    answer = farm.why_not("turbine(wt8)")
    assert answer.rules == ()
    assert answer.note == "no rule derives it: its facts are explicit facts"


def test_the_nearest_name_is_one_of_the_same_vocabulary() -> None:
    kb = ze.open(engine="reference")
    with kb.change() as c:
        c.add_rules("@prefix ex: <http://example.org/> . ex:alert(wt1, 3) .")
    assert "did you mean ex:alert?" in str(kb.why_not("ex:alrts(a)"))
    assert "no rule and no fact uses it" in str(kb.why_not("ex:Nope(a)"))


def test_a_fact_that_is_there_is_told(farm: KnowledgeBase) -> None:
    with pytest.raises(ze.ZodiacError, match="X004"):
        farm.why_not("alarm(wt1)")
