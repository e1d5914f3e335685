"""Many small changes: percentiles, which changes count, and an end that must be as it should."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import integer
from zodiacedge_bench import suites
from zodiacedge_bench.changes.churn import (
    AnyFact,
    Draw,
    churn_facts,
    churn_rules,
    copies_task,
    links_drawn,
    links_task,
)
from zodiacedge_bench.changes.edits import Edit
from zodiacedge_bench.measure.harness import Expected, Run, WrongCountError
from zodiacedge_bench.measure.latency import Latencies
from zodiacedge_bench.measure.task import Task, lubm_task
from zodiacedge_bench.report.targets import latency_verdicts
from zodiacedge_bench.suites import Options

if TYPE_CHECKING:
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge_bench.changes.edits import Committed

SMALL = Options(small=True)
# From start(0) on, everything follows; from any other fact next to nothing.
CHAIN = Task(
    "chain",
    "r1: reached(X) :- start(X) . r2: reached(Y) :- reached(X), next(X, Y) .",
    lambda: [fact("next", integer(n), integer(n + 1)) for n in range(30)],
    Expected(),
)


def nothing(_text: str) -> None:
    pass


def latencies(*milliseconds: float, change: str = "fact in") -> Latencies:
    return Latencies("test", change, tuple(Run(one / 1e3, one / 1e3) for one in milliseconds))


def test_percentiles_are_latencies_that_occurred() -> None:
    hundred = latencies(*range(100, 0, -1))
    assert [1e3 * hundred.percentile(percent) for percent in (50, 95, 99)] == [50, 95, 99]
    assert 1e3 * hundred.worst == 100
    assert [latencies(7).percentile(percent) for percent in (50, 99)] == [0.007, 0.007]


def test_the_first_changes_have_a_line_of_their_own_and_only_the_first_a_target() -> None:
    few = latencies(*[1] * 499)
    assert few.by_age() == (few,)
    first, later = latencies(*[9] * 100, *[1] * 400).by_age()
    assert (first.change, first.percentile(50), later.change, later.worst) == (
        "fact in, first 100",
        0.009,
        "fact in",
        0.001,
    )
    assert [(verdict.target.text, verdict.word) for verdict in latency_verdicts([first, later])] == [
        ("test: fact in, the first", "met"),
        ("test: fact in, p50", "met"),
        ("test: fact in, p99", "met"),
    ]
    slow, later = latencies(11, *[1] * 499).by_age()
    assert latency_verdicts([slow, later])[0].word == "missed"


def test_targets_are_about_half_of_the_changes_and_about_nearly_all() -> None:
    verdicts = latency_verdicts([latencies(*[0.9] * 98, 4, 6), latencies(*[6] * 99, 9, change="rule in")])
    assert [(one.target.text, one.word) for one in verdicts] == [
        ("test: fact in, p50", "met"),
        ("test: fact in, p99", "met"),
        ("test: rule in, p50", "missed"),
        ("test: rule in, p99", "met"),
    ]


def test_targets_judge_processor_time_whatever_else_the_machine_does() -> None:
    busy = Latencies("test", "fact in", tuple(Run(0.02, 0.0005) for _ in range(100)))
    assert {verdict.word for verdict in latency_verdicts([busy])} == {"met"}


def test_every_churn_runs_and_is_back_where_it_began() -> None:
    report = suites.churn(SMALL, changes=5)
    assert [(one.workload, one.change, len(one.runs)) for one in report.latencies] == [
        ("54 rules", "rule out", 5),
        ("54 rules", "rule in", 5),
        ("lubm-1 (small)", "fact out", 5),
        ("lubm-1 (small)", "fact in", 5),
        ("1,000 links", "fact out", 5),
        ("1,000 links", "fact in", 5),
        ("1,000 links", "fact of a watched node out", 5),
        ("1,000 links", "fact of a watched node in", 5),
    ]
    assert len(report.verdicts) == 16
    assert len(suites.churn(replace(SMALL, only=("rules",)), changes=2).latencies) == 2


def test_a_fact_from_which_much_follows_does_not_count() -> None:
    drawn = iter([fact("start", integer(0)), fact("start", integer(25)), fact("start", integer(29))])
    out, into = churn_facts(CHAIN, {"fact": lambda _random: (next(drawn), False)}, 2, nothing)
    assert len(out.runs) == len(into.runs) == 2
    assert out.left_out == into.left_out == 1


def test_too_few_facts_that_count_are_an_error() -> None:
    with pytest.raises(WrongCountError, match="at most 20 consequences"):
        churn_facts(CHAIN, {"fact": lambda _random: (fact("start", integer(0)), False)}, 1, nothing)


def test_a_change_that_is_not_taken_back_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Edit.commit

    def forgetful(edit: Edit, kb: KnowledgeBase) -> Committed:
        done = honest(edit, kb)
        return replace(done, deleted={}) if edit.remove_facts else done

    monkeypatch.setattr(Edit, "commit", forgetful)
    with pytest.raises(WrongCountError, match="was not reverted"):
        churn_facts(CHAIN, {"fact": lambda _random: (fact("start", integer(29)), False)}, 1, nothing)


def test_an_end_that_is_not_the_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Edit.commit

    def careless(edit: Edit, kb: KnowledgeBase) -> Committed:
        done = honest(edit, kb)
        if edit.add_rules:
            with kb.change() as change:
                change.add_facts([("p1_0", integer(1), integer(2))])
        return done

    monkeypatch.setattr(Edit, "commit", careless)
    with pytest.raises(
        WrongCountError, match="54 rules, after all changes: of p1_0/2, the explicit facts have"
    ):
        churn_rules(copies_task(3), 1, nothing)


def draws(draw: Draw) -> list[tuple[Fact, bool]]:
    random = Random(3)
    return [draw(random) for _ in range(200)]


LUBM, LINKS = lubm_task(1, departments=1), links_task(100, 10)
DRAWS = [(LUBM, AnyFact(LUBM.loaded)), *((LINKS, one) for one in links_drawn(LINKS, 100, 10).values())]


@pytest.mark.parametrize(("task", "draw"), DRAWS, ids=["lubm", "links", "watched links"])
def test_facts_are_drawn_that_are_there_and_that_are_not(task: Task, draw: Draw) -> None:
    store = task.loaded.store()
    there = set(store.facts(store.explicit))
    drawn = draws(draw)
    assert all((fact in there) == is_there for fact, is_there in drawn)
    assert 50 < sum(is_there for _, is_there in drawn) < 150
