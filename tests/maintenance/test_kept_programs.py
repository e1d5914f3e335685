"""What is kept from one change to the next must not outlive what it was made for."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.machine.assemble import Assembly
from zodiacedge.engine.embedded.maintain import delta_query
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.limits import Limits
from zodiacedge.errors import CheckProblem, LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Fact
from zodiacedge.terms import integer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.machine.sources import Reads
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.engine.registry import Registry

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
    return frozenset(c.report.inserted)


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


# A path whose facts are derived one from another: deleting them takes a round for each.
PATH = """
    start: p(X, Y) :- e(X, Y) .  other: p(X, Y) :- h(X, Y) .
    step: p(X, Y) :- p(X, Z), f(Z, Y) .  loop: p(X, Y) :- g(X, Y), p(Y, Y) .
    far: q(X) :- p(X, Y), s(Y) .
"""
LENGTH = 30
# The queries that deleting, rederiving and inserting ask of three nodes in the old version and in the next.
MOST_QUERIES = 12
DELETIONS = pytest.mark.parametrize("deletion", ["Backward/Forward", "DRed"])


class Assemblies:
    """How many delta queries were evaluated, and how many of them assembled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.evaluated = self.assembled = 0

        def counted_assembly(store: Database, reads: Reads, registry: Registry) -> Assembly:
            self.assembled += 1
            return Assembly(store, reads, registry)

        run = delta_query.AssembledQuery.run

        def counted_run(program: delta_query.AssembledQuery, draft: Draft, rows: NDArray[np.int32]) -> object:
            self.evaluated += 1
            return run(program, draft, rows)

        monkeypatch.setattr(delta_query, "Assembly", counted_assembly)
        monkeypatch.setattr(delta_query.AssembledQuery, "run", counted_run)


def path(deletion: str) -> KnowledgeBase:
    backward = deletion == "Backward/Forward"
    kb = KnowledgeBase(EmbeddedEngine(modules=False, strategy="maintain", backward=backward), Settings())
    steps = " ".join(f"f({n}, {n + 1}) ." for n in range(LENGTH))
    change(kb, PATH, f"{steps} e(0, 1) . h(5, 10) . h(0, 25) . g(1, 1) . g(7, 7) . s(10) . s(26) .")
    return kb


@DELETIONS
@pytest.mark.parametrize("rule", ["start", "loop", "other"])
def test_a_removed_rule_assembles_each_delta_query_once(
    rule: str, deletion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = path(deletion)
    counts = Assemblies(monkeypatch)
    with kb.change() as c:
        c.remove_rules(rule)
    assert {node.strategy for node in c.report.nodes} <= {"maintained", "dropped"}
    assert counts.assembled <= MOST_QUERIES
    assert kb.verify(against="reference").ok


def test_backward_forward_reuses_its_queries_round_after_round(monkeypatch: pytest.MonkeyPatch) -> None:
    kb = path("Backward/Forward")
    counts = Assemblies(monkeypatch)
    with kb.change() as c:
        c.remove_rules("start")
    assert len(c.report.deleted) > LENGTH / 2
    assert counts.evaluated > LENGTH > MOST_QUERIES >= counts.assembled


@DELETIONS
def test_a_rule_change_leaves_its_delta_queries_to_later_changes(
    deletion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = path(deletion)
    removed, added = "start", "start: p(X, Y) :- e(X, Y) ."
    for _ in range(2):
        with kb.change() as c:
            c.remove_rules(removed)
        change(kb, added)
    counts = Assemblies(monkeypatch)
    with kb.change() as c:
        c.remove_rules(removed)
    assert len(c.report.deleted) > LENGTH / 2
    assert counts.evaluated > 0
    assert counts.assembled == 0
    assert kb.verify(against="reference").ok


@DELETIONS
def test_a_node_that_changes_keeps_the_delta_queries_of_its_other_rules(
    deletion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = path(deletion)
    rule = "more: p(X, Y) :- p(X, Z), f(Z, Y), h(A, B) ."

    def change_twice() -> None:
        # The node gets and loses a rule, and so it is another node each time; all it derived is in doubt.
        change(kb, rule)
        with kb.change() as c:
            c.remove_rules("more")
        assert {node.strategy for node in c.report.nodes} == {"maintained"}

    change_twice()
    counts = Assemblies(monkeypatch)
    change_twice()
    # The queries of the rule itself, and none of the rules that stay.
    assert 0 < counts.assembled <= (2 if deletion == "Backward/Forward" else 4)
    assert kb.verify(against="reference").ok


def test_the_expected_time_of_a_node_does_not_grow_over_rule_changes() -> None:
    kb = opened("maintain")
    # Without the last rule of the circle the others are nodes of their own.
    circle = "a: p(X, Y) :- q(X, Y) .  b: q(X, Y) :- r(X, Y) ."
    change(kb, f"{circle} c: r(X, Y) :- p(Y, X) .  d: r(X, Y) :- e(X, Y) .", "e(1, 2) . e(2, 3) . e(3, 3) .")

    def seconds() -> float:
        return sum(segment.seconds for segment in kb._state.store.segments.values())  # type: ignore[attr-defined]

    before = seconds()
    for _ in range(5):
        with kb.change() as c:
            c.remove_rules("c")
        change(kb, "c: r(X, Y) :- p(Y, X) .")
    assert 0 < seconds() < 1.5 * before
    assert kb.verify(against="reference").ok


def test_a_rule_change_that_fails_leaves_no_program_for_its_tables() -> None:
    kb = KnowledgeBase(EmbeddedEngine(strategy="maintain"), Settings(limits=Limits(facts=1000)))
    change(kb, "r: r(X) :- p(X), e(X) .", " ".join(f"e({n}) ." for n in range(100)))
    change(kb, facts="p(1) .")

    def unknown_tables() -> int:
        gc.collect()
        store = kb._state.store  # type: ignore[attr-defined]
        known = {id(t) for one in (store.explicit, *store.segments.values()) for t in one.tables.values()}
        programs = [one for one in gc.get_objects() if isinstance(one, delta_query.AssembledQuery)]
        return len({id(t) for one in programs for t in one.tables.bases} - known)

    before = unknown_tables()
    with pytest.raises(LimitReached):
        change(kb, "p: p(X) :- e(X) .  square: t(X, Y) :- r(X), r(Y) .", "e(100) .")
    assert unknown_tables() == before
    change(kb, "p: p(X) :- e(X) .", "e(100) .")
    assert kb.derived() == {"p": 101, "r": 101}
    assert unknown_tables() == before
