"""What is kept from one change to the next must not outlive what it was made for."""

from __future__ import annotations

import gc

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.limits import Limits
from zodiacedge.errors import CheckProblem, LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Fact
from zodiacedge.terms import integer

STRATEGIES = ["maintain", "choose"]


def opened(strategy: str, limits: Limits | None = None) -> KnowledgeBase:
    return KnowledgeBase(EmbeddedEngine(strategy=strategy), Settings(limits=limits or Limits()))


def change(kb: KnowledgeBase, rules: str = "", facts: str = "", without: str = "") -> frozenset[Fact]:
    with kb.change() as c:
        if rules:
            c.add_rules(rules)
        if facts:
            c.add_facts(facts)
        if without:
            c.remove_facts(without)
    return c.report.inserted


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_function_that_is_registered_anew_gives_its_own_results(strategy: str) -> None:
    kb = opened(strategy)
    kb.function(lambda y: y + 1, name="f")
    change(kb, "r: p(X, Z) :- q(X, Y), Z := func:f(Y) .", "q(1, 5) .")
    change(kb, facts="q(2, 9) .")
    change(kb, without="q(2, 9) .")
    kb.function(lambda y: y + 100, name="f")
    change(kb, facts="q(3, 5) .")
    came = change(kb, facts="q(4, 9) .")
    assert Fact("p", (integer(4), integer(109))) in came
    assert kb.verify(against="reference").ok


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_dry_run_leaves_no_other_spelling_of_a_rule_behind(strategy: str) -> None:
    kb = opened(strategy)
    change(kb, facts="e(1, 10) . e(1, 20) . e(2, 5) . e(3, 7) . c(1) . d(2) .")
    rule = "a: p(X, M, N) :- c(X), AGGREGATE(e(X, Z)) ON X WITH {} ."
    kb.dry_run(add_rules=rule.format("SUM(Z) AS M, COUNT(Z) AS N"))
    change(kb, rule.format("COUNT(Z) AS N, SUM(Z) AS M"))
    change(kb, "b: c(X) :- p(Y, M, N), d(X) .")
    change(kb, facts="c(3) .")
    assert kb.verify(against="reference").ok


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_change_refused_for_its_facts_leaves_no_label_behind(strategy: str) -> None:
    kb = opened(strategy, Limits(facts=1))
    change(kb, facts="q(1, 1) . q(2, 2) .")
    for label in ("old", "new"):
        with pytest.raises(LimitReached, match=f"rule {label};"):
            change(kb, f"{label}: p(X) :- q(X, X) .")


@pytest.mark.parametrize("strategy", [*STRATEGIES, "recompute"])
def test_what_is_within_the_limit_after_the_change_is_not_refused(strategy: str) -> None:
    kb = opened(strategy, Limits(facts=200))
    facts = " ".join(f"q({n}, {n}) ." for n in range(100))
    change(kb, "r: p(X) :- q(X, X) .  s: t(X) :- p(X) .", facts)
    for n in range(4):
        change(kb, facts=f"q({1000 + n}, {1000 + n}) .", without=f"q({n}, {n}) .")
    assert kb.derived() == {"p": 100, "t": 100}
    with pytest.raises(LimitReached):
        change(kb, facts="q(5000, 5000) .")


def test_tables_that_are_no_more_are_not_kept() -> None:
    rows = 5_000

    def large() -> int:
        gc.collect()
        return sum(len(one) > rows // 2 for one in gc.get_objects() if isinstance(one, Table))

    before = large()
    kb = opened("choose")
    with kb.change() as c:
        # Bindings are dropped, so the first node is evaluated anew each time.
        c.add_rules("u: p(X, Z) :- e(X, Y), Z := 100 / Y .  v: r(X, Z) :- g(X, X), p(X, Z) .")
        c.add_facts([(n, n) for n in range(rows)], "e")
        c.add_facts([(1, 1)], "g")
    for n in range(10):
        change(kb, facts=f"e({rows + n}, {n + 1}) .")
        change(kb, facts=f"g({rows + n}, {rows + n}) .")
    assert large() - before <= 5


AGGREGATE = "a: busy(X) :- AGGREGATE(e(X, Y)) ON X WITH COUNT(Y) AS N ."
ANY_CLASS = "v: rdf:type(X, C) :- t(X, C) ."


@pytest.mark.parametrize(("first", "second"), [(AGGREGATE, ANY_CLASS), (ANY_CLASS, AGGREGATE)])
def test_a_rule_for_any_class_is_a_rule_for_one_that_an_aggregate_defines(first: str, second: str) -> None:
    kb = opened("choose")
    change(kb, first, "e(1, 2) .")
    with pytest.raises(CheckProblem, match="C012"):
        change(kb, second)
