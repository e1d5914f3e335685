"""The checker of proofs finds planted mistakes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from explain.checker import Facts, problems
from explain.proving import checked
from strategies import keyed
from zodiacedge.explain.proof import (
    AggregatePremise,
    BindingPremise,
    ComparisonPremise,
    Explicit,
    FactPremise,
    Proof,
    Step,
    Unexplained,
)
from zodiacedge.language.ast import Variable
from zodiacedge.language.parser import parse_fact
from zodiacedge.terms import IRI, integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.explain.proof import Support
    from zodiacedge.kb.knowledge_base import KnowledgeBase

RULES = """
r1: alarm(X) :- peak(X, M), M > 80, not muted(X), D := M - 80, D < 50 .
r2: peak(X, M) :- AGGREGATE(reading(X, V)) ON X WITH MAX(V) AS M .
r3: near(X, Y) :- near(Y, X) .
"""
FACTS = "reading(wt1, 90) . reading(wt1, 95) . near(wt1, wt2) . muted(wt2) ."


@pytest.fixture
def farm() -> KnowledgeBase:
    kb = ze.open(engine="reference")
    with kb.change() as c:
        c.add_rules(RULES)
        c.add_facts(FACTS)
    return kb


def found(kb: KnowledgeBase, proof: Proof) -> list[str]:
    return list(problems(proof, keyed(kb.rules), Facts.of(kb.facts(), kb.explicit, kb.settings.registry)))


def changed(proof: Proof, fact: str, change: Callable[[Step], Support]) -> Proof:
    """Return a proof with another support of a derived fact."""
    support = proof[parse_fact(fact)]
    assert isinstance(support, Step)
    return replace(proof, supports={**proof.supports, support.fact: change(support)})


def with_premise(step: Step, position: int, **fields: object) -> Step:
    premises = list(step.premises)
    premises[position] = replace(premises[position], **fields)  # type: ignore[arg-type]
    return replace(step, premises=tuple(premises))


def test_a_right_proof_has_no_problems(farm: KnowledgeBase) -> None:
    checked(farm, farm.explain("alarm(wt1)"))


def test_a_negated_atom_that_is_there_is_found(farm: KnowledgeBase) -> None:
    proof = farm.explain("alarm(wt1)")
    facts = Facts.of({*farm.facts(), parse_fact("muted(wt1)")}, farm.explicit, farm.settings.registry)
    assert "a fact matches it" in str(list(problems(proof, keyed(farm.rules), facts)))


def test_a_wrong_fold_is_found(farm: KnowledgeBase) -> None:
    def wrong(step: Step) -> Step:
        premise = step.premises[0]
        assert isinstance(premise, AggregatePremise)
        values = {**step.values, Variable("M"): integer(90)}
        results = tuple((fold, integer(90)) for fold, _ in premise.results)
        other = with_premise(step, 0, results=results)
        return replace(other, values=values, fact=parse_fact("peak(wt1, 90)"))

    proof = changed(farm.explain("peak(wt1, 95)"), "peak(wt1, 95)", wrong)
    proof = replace(proof, facts=(parse_fact("peak(wt1, 90)"),))
    supports = {support.fact: support for support in proof.supports.values()}
    assert "folded again, it has other results" in str(found(farm, replace(proof, supports=supports)))


def test_a_wrong_number_of_bindings_is_found(farm: KnowledgeBase) -> None:
    proof = changed(
        farm.explain("peak(wt1, 95)"), "peak(wt1, 95)", lambda step: with_premise(step, 0, bindings=3)
    )
    assert "it has 2 bindings, not 3" in str(found(farm, proof))


def test_a_cycle_is_found(farm: KnowledgeBase) -> None:
    proof = farm.explain("near(wt2, wt1)")
    (step,) = [s for s in proof.supports.values() if isinstance(s, Step)]
    (premise,) = step.premises
    assert isinstance(premise, FactPremise)
    other = replace(
        step,
        fact=premise.fact,
        values={Variable("X"): IRI("wt1"), Variable("Y"): IRI("wt2")},
        premises=(replace(premise, fact=step.fact),),
    )
    proof = replace(proof, supports={step.fact: step, other.fact: other})
    assert "leans on itself" in str(found(farm, proof))


def test_a_missing_conjunct_is_found(farm: KnowledgeBase) -> None:
    proof = changed(
        farm.explain("alarm(wt1)"),
        "alarm(wt1)",
        lambda step: replace(step, premises=step.premises[:2] + step.premises[3:]),
    )
    assert "4 premises, and its rule 5 conjuncts" in str(found(farm, proof))


def test_a_false_comparison_and_a_wrong_binding_are_found(farm: KnowledgeBase) -> None:
    def wrong(step: Step) -> Step:
        comparison, binding = step.premises[1], step.premises[3]
        assert isinstance(comparison, ComparisonPremise)
        assert isinstance(binding, BindingPremise)
        return with_premise(with_premise(step, 1, left=integer(81)), 3, value=integer(1))

    told = str(found(farm, changed(farm.explain("alarm(wt1)"), "alarm(wt1)", wrong)))
    assert "its sides have other values" in told
    assert "it has another value" in told


def test_other_values_of_the_variables_are_found(farm: KnowledgeBase) -> None:
    def wrong(step: Step) -> Step:
        return replace(step, values={**step.values, Variable("M"): integer(20)})

    told = str(found(farm, changed(farm.explain("alarm(wt1)"), "alarm(wt1)", wrong)))
    assert "it does not hold" in told
    assert "is no instance of it under these values" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda step: Explicit(step.fact), "is not an explicit fact"),
        (lambda step: Unexplained(step.fact), "no budget ended"),
        (lambda step: replace(step, key="other"), "its rule is not in force"),
        (lambda step: replace(step, height=7), "its height is 7"),
        (lambda step: replace(step, fact=parse_fact("alarm(wt2)")), "has the support of alarm(wt2)"),
    ],
)
def test_a_wrong_support_is_found(farm: KnowledgeBase, change: Callable[[Step], Support], told: str) -> None:
    assert told in str(found(farm, changed(farm.explain("alarm(wt1)"), "alarm(wt1)", change)))


def test_a_fact_without_support_is_found(farm: KnowledgeBase) -> None:
    proof = farm.explain("alarm(wt1)")
    rest = {fact: s for fact, s in proof.supports.items() if fact != parse_fact("peak(wt1, 95)")}
    assert "peak(wt1, 95) has no support in the proof" in str(found(farm, replace(proof, supports=rest)))
