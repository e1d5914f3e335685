"""Answers to "why not" over random programs: what they say holds does, and what they say fails does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from explain.proving import patience
from strategies import Seeded, random_program
from strategies.scale import examples, first_seed
from zodiacedge.engine.api import Engine, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.explain.missing import BodyFails, FailedComparison, HeadDiffers, NoSuchFact, PresentFact
from zodiacedge.explain.proof import AbsentPremise, BindingPremise, ComparisonPremise, FactPremise
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.explain.missing import Attempt, WhyNot
    from zodiacedge.explain.proof import Premise
    from zodiacedge.language.ast import Fact

ENGINES = {"reference": ReferenceEngine, "embedded": EmbeddedEngine}


def absent_facts(kb: KnowledgeBase, visible: frozenset[Fact]) -> Iterator[Fact]:
    """Yield facts of derived predicates that are not there: those that are, with an argument of another."""
    heads = {rule.head.predicate for rule in kb.rules}
    derived = sorted((fact for fact in visible if fact.predicate in heads), key=str)
    for fact, other in zip(derived, derived[7:] + derived[:7], strict=True):
        for position in range(fact.predicate.arity if other.args else 0):
            args = list(fact.args)
            args[position] = other.args[0]
            absent = replace(fact, args=tuple(args))
            if absent not in visible:
                yield absent


def absent_patterns(kb: KnowledgeBase, facts: FactSet) -> Iterator[Atom]:
    """Yield patterns of derived predicates that no fact matches, where a variable or a constant repeats."""
    variable = Variable("Q")
    for relation, arity in sorted({(r.head.relation, len(r.head.args)) for r in kb.rules}):
        found = facts.match(Atom(relation, tuple(Variable(f"X{n}") for n in range(arity))), {})
        terms = sorted({term for binding in found for term in binding.values()}, key=str)
        for position in range(arity if relation != RDF_TYPE else 0):
            for term in (variable, *terms[:3]):
                args = [term] * arity
                args[position] = variable
                pattern = Atom(relation, tuple(args))
                if not any(True for _ in facts.match(pattern, {})):
                    yield pattern


def mistakes(answer: WhyNot, facts: FactSet) -> Iterator[str]:
    """Yield what is wrong with an answer."""
    for failure in answer.rules:
        if isinstance(failure, HeadDiffers):
            if failure.constant == failure.wanted:
                yield f"{failure.rule}: its head does not differ"
            continue
        assert isinstance(failure, BodyFails)
        for attempt in failure.attempts:
            conjuncts = len(attempt.holds) + len(attempt.failing) + len(attempt.open)
            if not attempt.failing or conjuncts != len(failure.rule.body):
                yield f"{failure.rule}: {conjuncts} conjuncts, {len(attempt.failing)} of them fail"
            yield from (f"{failure.rule}: {wrong}" for wrong in in_attempt(attempt, facts))


def in_attempt(attempt: Attempt, facts: FactSet) -> Iterator[str]:
    for premise in attempt.holds:
        if not holds(premise, facts):
            yield f"{premise} does not hold"
    for failing in attempt.failing:
        match failing:
            case NoSuchFact(pattern=pattern) if any(True for _ in facts.match(pattern, {})):
                yield f"{pattern} is there"
            case PresentFact(fact=fact) if fact not in facts:
                yield f"{fact} is not there"
            case FailedComparison(premise=premise) if holds(premise, facts):
                yield f"{premise.filled} holds"


def holds(premise: Premise, facts: FactSet) -> bool:
    match premise:
        case FactPremise(fact=fact):
            return fact in facts
        case AbsentPremise(pattern=pattern):
            return not any(True for _ in facts.match(pattern, {}))
        case ComparisonPremise(comparison=comparison, left=left, right=right):
            return compare(left, comparison.operator, right)
        case BindingPremise(filled=filled, value=value):
            return evaluate(filled.expression, {}, Registry()) == value
        case _:
            return premise.bindings > 0


def ask(seed: int, engine: Engine) -> int:
    program = random_program(Seeded(seed))
    kb = KnowledgeBase(engine, Settings())
    kb.apply(Change(add_rules=program.rules, add_facts=program.facts))
    visible = frozenset(kb.facts())
    facts = FactSet(visible)
    asked = 0
    for fact in list(absent_facts(kb, visible))[:12]:
        answer = kb.why_not(fact, budget=patience())
        assert list(mistakes(answer, facts)) == [], f"seed {seed}: {fact}"
        assert answer.complete
        # Every rule of the predicate is accounted for.
        rules = [rule for rule in kb.rules if rule.head.predicate == fact.predicate]
        assert {failure.rule.head.relation for failure in answer.rules} <= {fact.relation}
        assert len(answer.rules) >= len(rules)
        # Each form can be written, and each next question can be asked.
        assert str(answer)
        assert answer.to_json()
        for question in answer.next_questions[:2]:
            assert kb.why_not(str(question)).rules is not None
        asked += 1
    for pattern in list(absent_patterns(kb, facts))[:8]:
        answer = kb.why_not(pattern, budget=patience())
        for failure in answer.rules:
            assert isinstance(failure, HeadDiffers) or failure.attempts, f"seed {seed}: {pattern}"
            for attempt in () if isinstance(failure, HeadDiffers) else failure.attempts:
                assert attempt.failing
                assert list(in_attempt(attempt, facts)) == [], f"seed {seed}: {pattern}"
        asked += 1
    return asked


@pytest.mark.parametrize("engine", ENGINES)
def test_answers_about_random_programs_are_true(engine: str) -> None:
    assert sum(ask(seed, ENGINES[engine]()) for seed in range(25)) > 40


@pytest.mark.soak
def test_answers_about_many_random_programs_are_true() -> None:
    start = first_seed(3_000_000)
    for seed in range(start, start + examples(1_000)):
        ask(seed, EmbeddedEngine(modules=bool(seed % 2)))
