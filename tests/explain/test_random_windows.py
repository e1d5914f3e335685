"""Explanations over random sessions with a clock: proofs are right, and no hidden name is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from explain.checker import Facts, problems
from explain.proving import patience
from explain.test_random_why_not import absent_facts, in_attempt
from strategies import Seeded
from strategies.scale import examples, first_seed
from strategies.timed import random_timed_changes
from zodiacedge.engine.api import Engine, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.explain.missing import BodyFails
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.vocabulary import RECENT_BASE
from zodiacedge.language.windows import at_time

if TYPE_CHECKING:
    from zodiacedge.explain.proof import Proof

ENGINES = {"reference": ReferenceEngine, "embedded": EmbeddedEngine}
# The words of windows as atoms and as comparisons with the clock.
HIDDEN = (RECENT_BASE, "clock of", "coalesce(")


def assert_explained(kb: KnowledgeBase, where: str) -> int:
    """Check explanations of some facts that are there, and of some that are not; return their number."""
    visible, registry = frozenset(kb.facts()), kb.settings.registry
    rules = {key: at_time(rule, kb.now) if rule.source else rule for key, rule in kb._program.rules.items()}
    there = Facts.of(visible, kb.explicit, registry)
    derived = sorted(visible - kb.explicit, key=str)[::3][:5]
    for fact in derived:
        proof: Proof = kb.explain(fact, budget=patience())
        assert list(problems(proof, rules, there)) == [], f"{where}: {fact}"
        assert proof.least
        assert not any(word in str(proof) for word in HIDDEN), f"{where}: {fact}"
    absent = list(absent_facts(kb, visible))[:3]
    for fact in absent:
        answer = kb.why_not(fact, budget=patience())
        assert not any(word in str(answer) for word in HIDDEN), f"{where}: {fact}"
        for failure in answer.rules:
            for attempt in failure.attempts if isinstance(failure, BodyFails) else ():
                assert list(in_attempt(attempt, FactSet(visible))) == [], f"{where}: {fact}"
    return len(derived) + len(absent)


def follow(seed: int, engine: Engine) -> int:
    kb = KnowledgeBase(engine, Settings())
    explained = 0
    for number, change in enumerate(random_timed_changes(Seeded(seed), 5)):
        try:
            kb.apply(change)
        except ZodiacError:
            continue
        explained += assert_explained(kb, f"seed {seed}, change {number}")
    return explained


@pytest.mark.parametrize("engine", ENGINES)
def test_random_sessions_with_a_clock_are_explained(engine: str) -> None:
    assert sum(follow(seed, ENGINES[engine]()) for seed in range(12)) > 40


@pytest.mark.soak
def test_many_random_sessions_with_a_clock_are_explained() -> None:
    start = first_seed(5_000_000)
    for seed in range(start, start + examples(1_000)):
        follow(seed, EmbeddedEngine(modules=bool(seed % 2)))
