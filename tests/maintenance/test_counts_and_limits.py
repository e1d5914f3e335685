"""What a change counts and limits, whichever means bring a node up to date.

What is expected was worked out by hand, and the reference evaluator agrees with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from zodiacedge.cli.sessions.format import parse_session
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import EvaluationProblem, LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from zodiacedge.engine.api import Engine
    from zodiacedge.kb.report import ChangeReport


def on_both(engine: Engine) -> pytest.MarkDecorator:
    """Run on the definition and on an engine."""
    return pytest.mark.parametrize("engine", [ReferenceEngine(), engine], ids=["reference", "embedded"])


def reports(engine: Engine, session: str, limits: Limits | None = None) -> list[ChangeReport]:
    kb = KnowledgeBase(engine, Settings(limits=limits or Limits()))
    return [kb.apply(step.change) for step in parse_session(session)]


def dropped(engine: Engine, session: str) -> list[dict[str, int]]:
    return [{rule: d.count for rule, d in one.dropped.items()} for one in reports(engine, session)]


@on_both(EmbeddedEngine(strategy="maintain"))
def test_the_dropped_bindings_of_a_rule_follow_its_facts(engine: Engine) -> None:
    session = """
    begin
    + r1: p(Z) :- q(X, Y), Z := X / Y .
    + q(1, 0) .
    commit
    begin
    + q(2, 0) .
    commit
    begin
    - q(1, 0) .
    commit
    begin
    - q(2, 0) .
    commit
    begin
    + s(a) .
    commit
    """
    assert dropped(engine, session) == [{"r1": 1}, {"r1": 2}, {"r1": 1}, {}, {}]


@on_both(EmbeddedEngine(strategy="maintain"))
def test_the_dropped_values_of_an_aggregate_follow_its_facts(engine: Engine) -> None:
    session = """
    begin
    + r1: total(S, N) :- AGGREGATE(sale(S, P, V)) ON S WITH SUM(V) AS N .
    + sale(x, p1, 2) .
    commit
    begin
    + sale(x, p2, "none") .
    commit
    begin
    - sale(x, p2, "none") .
    commit
    """
    assert dropped(engine, session) == [{}, {"r1": 1}, {}]


@on_both(EmbeddedEngine(strategy="maintain"))
def test_a_value_that_an_aggregate_drops_fails_a_strict_change(engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings(strict=True))
    with kb.change() as c:
        c.add_rules("r1: total(S, N) :- AGGREGATE(sale(S, P, V)) ON S WITH SUM(V) AS N . sale(x, p1, 2) .")
    with pytest.raises(EvaluationProblem), kb.change() as c:
        c.add_facts('sale(x, p2, "none") .')


GROWING = """
begin
+ count: n(Y) :- n(X), Y := X + 1, not stop(X) .
+ n(0) .
+ stop(5) .
+ stop(60) .
commit
begin
- stop(5) .
commit
"""


@on_both(EmbeddedEngine(strategy="maintain"))
def test_the_limit_on_facts_holds_for_a_node_that_is_maintained(engine: Engine) -> None:
    with pytest.raises(LimitReached, match="the limit of 30 derived facts"):
        reports(engine, GROWING, Limits(facts=30))


@on_both(EmbeddedEngine(strategy="maintain"))
def test_the_limit_on_rounds_holds_for_a_node_that_is_maintained(engine: Engine) -> None:
    with pytest.raises(LimitReached, match="the limit of 30 rounds"):
        reports(engine, GROWING, Limits(rounds=30))


@on_both(EmbeddedEngine(strategy="recompute"))
def test_a_node_that_is_evaluated_anew_counts_once(engine: Engine) -> None:
    session = """
    begin
    + r1: p(X, Y) :- a(X), a(Y) .
    + a(1) . + a(2) . + a(3) . + a(4) .
    commit
    begin
    + a(5) .
    commit
    """
    assert reports(engine, session, Limits(facts=30))[-1].net_change() == {"a": 1, "p": 9}


@on_both(EmbeddedEngine(strategy="maintain"))
def test_a_visited_node_is_reported_with_the_facts_it_has(engine: Engine) -> None:
    session = """
    begin
    + hot: hot(T) :- reading(T, C), C > 80 .
    + reading(a, 90) .
    commit
    begin
    + reading(b, 95) .
    commit
    """
    assert [[node.facts for node in one.nodes] for one in reports(engine, session)] == [[1], [2]]
