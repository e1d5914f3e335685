"""`kb.explain`: proofs of the whole language, and what it says to questions that make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from explain.proving import checked
from zodiacedge.explain.budget import Budget
from zodiacedge.explain.proof import (
    AbsentPremise,
    AggregatePremise,
    BindingPremise,
    ComparisonPremise,
    Explicit,
    FactPremise,
    Proof,
    Step,
)
from zodiacedge.language.parser import parse_fact

if TYPE_CHECKING:
    from zodiacedge.kb.knowledge_base import KnowledgeBase

FARM = """
r1: alarm(X) :- reading(X, V), V > 80, not muted(X, _) .
r2: hot(X) :- alarm(X), near(X, Y), alarm(Y) .
r3: peak(X, M) :- AGGREGATE(reading(X, V)) ON X WITH MAX(V) AS M .
r4: big(X) :- peak(X, M), D := M * 2, D > 170 .
"""
READINGS = """
reading(wt1, 90) . reading(wt1, 95) . reading(wt2, 99) . reading(wt3, 7) .
near(wt1, wt2) . muted(wt9, ann) .
"""


@pytest.fixture(params=["reference", "embedded"])
def farm(request: pytest.FixtureRequest) -> KnowledgeBase:
    kb = ze.open(engine=request.param)
    with kb.change() as c:
        c.add_rules(FARM)
        c.add_facts(READINGS)
    return kb


def step(proof: Proof, fact: str) -> Step:
    support = proof[parse_fact(fact)]
    assert isinstance(support, Step)
    return support


def test_a_step_shows_facts_comparisons_and_absent_facts(farm: KnowledgeBase) -> None:
    shown = step(farm.explain("alarm(wt2)"), "alarm(wt2)")
    assert shown.rule.label == "r1"
    fact, comparison, absent = shown.premises
    assert isinstance(fact, FactPremise)
    assert str(fact.fact) == "reading(wt2, 99)"
    assert isinstance(comparison, ComparisonPremise)
    assert (str(comparison.left), str(comparison.right)) == ("99", "80")
    assert isinstance(absent, AbsentPremise)
    assert str(absent.pattern) == "muted(wt2, _)"


def test_a_step_shows_the_value_of_a_binding(farm: KnowledgeBase) -> None:
    binding = step(farm.explain("big(wt1)"), "big(wt1)").premises[1]
    assert isinstance(binding, BindingPremise)
    assert str(binding.value) == "190"


def test_a_step_shows_the_group_of_an_aggregate_and_its_decisive_rows(farm: KnowledgeBase) -> None:
    with farm.change() as c:
        c.add_facts([parse_fact(f"reading(wt1, {n})") for n in range(20)])
    proof = farm.explain("peak(wt1, 95)")
    (premise,) = step(proof, "peak(wt1, 95)").premises
    assert isinstance(premise, AggregatePremise)
    assert premise.bindings == 22
    assert [str(result) for _, result in premise.results] == ["95"]
    (row,) = premise.shown
    assert [str(p.fact) for p in row.premises if isinstance(p, FactPremise)] == ["reading(wt1, 95)"]
    assert isinstance(proof[parse_fact("reading(wt1, 95)")], Explicit)


def test_a_pattern_shares_parts(farm: KnowledgeBase) -> None:
    proof = farm.explain("alarm(X)")
    assert [str(fact) for fact in proof.facts] == ["alarm(wt1)", "alarm(wt2)"]
    assert not proof.more
    assert len(proof) == 4


def test_a_limit_leaves_facts_out_and_says_so(farm: KnowledgeBase) -> None:
    proof = farm.explain("alarm(X)", limit=1)
    assert len(proof.facts) == 1
    assert proof.more


@pytest.mark.parametrize(
    ("asked", "code", "note"),
    [
        ("alarm(wt7)", "X003", "kb.why_not('alarm(wt7)')"),
        ("alrm(wt1)", "X003", "did you mean alarm?"),
        ("alrm(X)", "X003", "did you mean alarm?"),
        ("?- alarm(X), hot(X) .", "X002", "ask for one atom"),
        ("X > 3", "X002", "ask for one atom"),
    ],
)
def test_a_question_that_makes_no_sense_is_told(
    farm: KnowledgeBase, asked: str, code: str, note: str
) -> None:
    with pytest.raises(ze.ZodiacError) as problem:
        farm.explain(asked)
    (finding,) = problem.value.diagnostics
    assert finding.code == code
    assert note in finding.note


def test_functions_aggregates_classes_and_prefixes_are_explained(farm: KnowledgeBase) -> None:
    farm.function(lambda value: value + 1, name="next")
    farm.aggregate(lambda values: sum(values) / 2, name="half")
    with farm.change() as c:
        c.add_rules(
            """
            PREFIX ex: <http://e/>
            f1: ex:more(X, N) :- reading(X, V), N := func:next(V) .
            f2: ex:half(X, H) :- AGGREGATE(reading(X, V)) ON X WITH half(V) AS H .
            f3: rdf:type(X, D) :- rdf:type(X, C), ex:below(C, D) .
            ex:below(alarm, ex:Event) .
            """
        )
    assert checked(farm, farm.explain("ex:more(wt2, 100)")).height == 1
    assert checked(farm, farm.explain("ex:half(wt2, H)")).height == 1
    proof = checked(farm, farm.explain("ex:Event(wt2)"))
    assert [step.rule.label for step in proof.steps()] == ["r1", "f3"]
    assert checked(farm, farm.explain("rdf:type(wt2, C)")).complete


def test_a_budget_that_ends_gives_a_part_and_says_so(farm: KnowledgeBase) -> None:
    proof = farm.explain("hot(wt1)", budget=Budget(instances=1))
    assert not proof.least
    assert not proof.complete
    assert isinstance(proof[parse_fact("hot(wt1)")], Step)


def test_a_proof_of_any_height_is_found_when_the_budget_has_ended() -> None:
    # The instances of r2 are more than the budget allows to look at together; some of them do.
    kb = ze.open()
    with kb.change() as c:
        c.add_rules("r1: mid(X, Y) :- link(X, Y), live(Y) .  r2: far(X) :- mid(X, Y), mid(Y, Z) .")
        c.add_facts(
            "\n".join(f"link(a, m{n}) . link(m{n}, z{n}) . live(m{n}) . live(z{n}) ." for n in range(60))
        )
    proof = checked(kb, kb.explain("far(a)", budget=Budget(instances=61)))
    assert proof.complete
    assert not proof.least


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ze.ZodiacError, match="X001"):
        Budget(instances=0)


def test_a_budget_is_one_of_numbers_and_serves_several_questions(farm: KnowledgeBase) -> None:
    for wrong in (5, "60 s"):
        with pytest.raises(ze.ZodiacError, match="U013: expected a budget"):
            farm.explain("alarm(wt1)", budget=wrong)  # type: ignore[arg-type]
    with pytest.raises(ze.ZodiacError, match="U013: expected a number, found '60'"):
        Budget(seconds="60")  # type: ignore[arg-type]
    budget = Budget(instances=20)
    assert all(farm.explain("hot(wt1)", budget=budget).least for _ in range(10))
    assert budget.spent == 0


def test_a_pattern_that_nothing_matches_leads_to_why_not(farm: KnowledgeBase) -> None:
    with pytest.raises(ze.ZodiacError, match="why_not says why") as problem:
        farm.explain("near(X, X)")
    assert "X003" in str(problem.value)
    with pytest.raises(ze.ZodiacError, match=r"it is known with 1 argument$"):
        farm.explain("big(X, Y)")
