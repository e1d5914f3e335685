"""Explanations of rules with windows on the clock, in the words of their authors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from explain.checker import Facts, problems
from zodiacedge.explain.missing import BodyFails, PresentFact
from zodiacedge.language.windows import at_time

if TYPE_CHECKING:
    from zodiacedge.explain.proof import Proof
    from zodiacedge.kb.knowledge_base import KnowledgeBase

RULES = """
@time reading 3 .
hot: hot(S) :- reading(S, V, _) within 10 min, V > 80 .
old: old(S, T) :- reading(S, _, T), T < now - 5 min .
many: many(S, N) :- AGGREGATE(reading(S, V, _) within 10 min) ON S WITH COUNT(V) AS N .
alarm: alarm(S) :- sensor(S), not reading(S, _, _) within 10 min .
sensor(s1) . sensor(s2) .
reading(s1, 85, "2026-01-01T12:00:00Z"^^xsd:dateTime) .
reading(s2, 20, "2026-01-01T12:03:00Z"^^xsd:dateTime) .
"""


@pytest.fixture(params=["reference", "embedded"])
def farm(request: pytest.FixtureRequest) -> KnowledgeBase:
    kb = ze.open(engine=request.param)
    with kb.change() as c:
        c.add_rules(RULES)
    return kb


def checked(kb: KnowledgeBase, asked: str) -> Proof:
    """Return a proof that the checker finds nothing wrong with, by the rules at the time of the clock."""
    proof = kb.explain(asked)
    rules = {key: at_time(rule, kb.now) if rule.source else rule for key, rule in kb._program.rules.items()}
    facts = Facts.of(kb.facts(), kb.explicit, kb.settings.registry)
    assert list(problems(proof, rules, facts)) == []
    assert proof.least
    return proof


def test_facts_of_windows_are_proved_at_the_time_of_the_clock(farm: KnowledgeBase) -> None:
    farm.tick("2026-01-01T12:08:00Z")
    for asked in ("hot(s1)", "old(s1, T)", "many(X, N)"):
        assert checked(farm, asked).height == 1
    lines = str(farm.explain("hot(s1)")).splitlines()
    # The time is written as `_`, so only its value is shown.
    assert '├─ "2026-01-01T12:00:00Z"^^xsd:dateTime > "2026-01-01T11:58:00Z"^^xsd:dateTime' in lines
    farm.tick("2026-01-01T12:12:00Z")
    assert "no reading(s1, _, _) within 10 min" in str(checked(farm, "alarm(s1)"))


def test_a_moment_outside_its_window_fails(farm: KnowledgeBase) -> None:
    farm.tick("2026-01-01T12:12:00Z")
    told = str(farm.why_not("hot(s1)"))
    assert '✗ "2026-01-01T12:00:00Z"^^xsd:dateTime > "2026-01-01T12:02:00Z"^^xsd:dateTime fails' in told
    told = str(farm.why_not("many(s1, N)"))
    assert "✗ AGGREGATE(reading(S, V, _) within 10 min) ON S WITH COUNT(V) AS N has no bindings" in told


def test_a_fact_that_breaks_a_silence_is_named(farm: KnowledgeBase) -> None:
    farm.tick("2026-01-01T12:12:00Z")
    answer = farm.why_not("alarm(s2)")
    (failure,) = answer.rules
    assert isinstance(failure, BodyFails)
    (failing,) = failure.attempts[0].failing
    assert isinstance(failing, PresentFact)
    assert failing.fact.relation == "reading"
    assert failing.explicit
    told = 'reading(s2, 20, "2026-01-01T12:03:00Z"^^xsd:dateTime) within 10 min is there: explicit'
    assert told in str(answer)
    assert all("urn:zodiac" not in form for form in (str(answer), answer.to_markdown(), answer.to_html()))


def test_before_the_first_tick_the_clock_is_what_lacks(farm: KnowledgeBase) -> None:
    answer = farm.why_not("hot(s1)")
    assert "✗ the clock has no time: no tick came" in str(answer)
    assert "now" not in str(answer)
    assert answer.next_questions == ()
