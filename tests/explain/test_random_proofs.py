"""Proofs of random programs and sessions: the checker finds nothing wrong, and heights are the least."""

from __future__ import annotations

import pytest

from explain.checker import Facts, problems
from explain.proving import least_heights, patience
from maintenance.test_random_sessions import changes_of
from strategies import Seeded, keyed, random_program, random_session
from strategies.scale import examples, first_seed
from zodiacedge.engine.api import Engine, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase

ENGINES = {"reference": ReferenceEngine, "embedded": EmbeddedEngine}


def assert_proved(kb: KnowledgeBase, where: str) -> int:
    """Check the proof of every fact, all in one and some one by one; return the largest height."""
    visible, explicit, registry = kb.facts(), kb.explicit, kb.settings.registry
    rules, facts = keyed(kb.rules), Facts.of(visible, explicit, registry)
    heights = least_heights(kb.rules, visible, explicit, registry)
    derived = sorted(visible - explicit, key=str)
    for fact in derived[:: max(1, len(derived) // 12)]:
        proof = kb.explain(fact, budget=patience())
        assert list(problems(proof, rules, facts)) == [], f"{where}: {fact}"
        assert proof.least
        assert proof.complete
        assert proof.height == heights[fact], f"{where}: {fact}"
    for fact in sorted(explicit, key=str)[:2]:
        assert kb.explain(fact).height == 0
    return max(heights.values(), default=0)


def prove(seed: int, engine: Engine) -> int:
    program = random_program(Seeded(seed))
    kb = KnowledgeBase(engine, Settings())
    kb.apply(Change(add_rules=program.rules, add_facts=program.facts))
    return assert_proved(kb, f"seed {seed}")


@pytest.mark.parametrize("engine", ENGINES)
def test_random_programs_are_proved(engine: str) -> None:
    largest = [prove(seed, ENGINES[engine]()) for seed in range(40)]
    assert max(largest) > 3


@pytest.mark.parametrize("engine", ENGINES)
def test_every_version_of_a_random_session_is_proved(engine: str) -> None:
    for seed in range(6):
        kb = KnowledgeBase(ENGINES[engine](), Settings())
        for number, change in enumerate(changes_of(random_session(Seeded(seed), most_changes=4))):
            try:
                kb.apply(change)
            except ZodiacError:
                continue
            assert_proved(kb, f"seed {seed}, change {number}")


@pytest.mark.soak
def test_many_random_programs_are_proved() -> None:
    start = first_seed(2_000_000)
    for seed in range(start, start + examples(2_000)):
        prove(seed, EmbeddedEngine(modules=bool(seed % 2)))
