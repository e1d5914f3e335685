"""Threads that share a knowledge base: versions stay whole, changes come one after the other."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from strategies.waiting import SECONDS, until
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate.two_threads import OtherHalf
from zodiacedge.engine.embedded.machine import execute
from zodiacedge.errors import UsageProblem
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import fact
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import zodiacedge as ze
    from zodiacedge.engine.api import Engine, Progress

A, B = IRI("a"), IRI("b")
CHAIN = "p(X) :- q(X) .  s(X) :- p(X) .  t(X, Y) :- s(X), s(Y) .  u(X) :- t(X, X) ."


@pytest.fixture
def kb(engine: Engine) -> KnowledgeBase:
    return KnowledgeBase(engine, Settings())


def change(kb: KnowledgeBase, text: str) -> ze.ChangeReport:
    with kb.change() as c:
        c.add_rules(text)
    return c.report


def meanwhile(kb: KnowledgeBase, work: Callable[[], object], text: str) -> object:
    """Return what another thread gets that comes while a change is at work."""
    with ThreadPoolExecutor(1) as pool:
        asked: list[Future[object]] = []

        def progress(_: Progress) -> None:
            if not asked:
                asked.append(pool.submit(work))
                until(lambda: kb._engine_lock.wanted)

        kb._settings = Settings(kb.settings.registry, progress=progress)
        change(kb, text)
        return asked[0].result(SECONDS)


def test_a_reader_sees_the_version_before_a_change_at_work(kb: KnowledgeBase) -> None:
    change(kb, CHAIN + "q(a) .")
    before = kb.facts()
    prepared = kb.prepare("?- u(X) .")

    def read() -> object:
        with kb.reading():
            rows = (kb.query("?- u(X) .").rows, prepared().rows)
            return kb.version, kb.facts(), kb.explicit, kb.derived(), kb.explicit_counts(), rows

    one = dict.fromkeys(("p", "s", "t", "u"), 1)
    seen = meanwhile(kb, read, "q(b) .  v(X) :- u(X) .  w(X) :- v(X) .")
    assert seen == (1, before, {fact("q", A)}, one, {"q": 1}, (((A,),), ((A,),)))
    assert kb.version == 2
    assert prepared().rows == ((A,), (B,))


def test_a_reader_that_comes_while_a_dry_run_or_a_verification_is_at_work_is_served(
    kb: KnowledgeBase,
) -> None:
    change(kb, CHAIN + "q(a) .")
    for work in (lambda: kb.dry_run(add_facts="q(b) ."), kb.verify):
        with ThreadPoolExecutor(1) as pool:
            asked: list[Future[object]] = []
            served: list[bool] = []

            def progress(_: Progress) -> None:
                if not asked:  # noqa: B023 - each is done before the next begins
                    asked.append(pool.submit(kb.facts))  # noqa: B023
                    until(lambda: kb._engine_lock.wanted)
                else:
                    served.append(asked[0].done() or not kb._engine_lock.wanted)  # noqa: B023

            kb._settings = Settings(progress=progress)
            work()
            assert asked[0].result(SECONDS) == kb.facts()
            assert served
            assert served[0]


def test_two_writers_come_one_after_the_other(kb: KnowledgeBase) -> None:
    change(kb, CHAIN)

    def write(name: str) -> list[ze.ChangeReport]:
        return [change(kb, f"q({name}{n}) .") for n in range(15)]

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(write, name) for name in ("x", "y")]
        reports = [report for one in found for report in one.result(SECONDS)]
    assert kb.version == 31
    assert sorted(r.version_before for r in reports) == list(range(1, 31))
    assert all(r.version_after == r.version_before + 1 for r in reports)
    by_version = sorted(reports, key=lambda report: report.version_after)
    assert [len(r.inserted) for r in by_version] == [4 + 2 * n + 1 for n in range(30)]
    assert kb.verify().ok


def test_readers_never_see_half_a_version(kb: KnowledgeBase) -> None:
    change(kb, CHAIN)
    member = kb.prepare("?- t(X, Y) .", "X")
    done = threading.Event()

    def read(mine: int) -> int:
        turns = 0
        while not done.is_set():
            with kb.reading():
                size = kb.version - 1
                assert kb.derived() == {"p": size, "s": size, "t": size * size, "u": size}
                assert len(member(X=mine)) == (size if mine < size else 0)
                assert len(kb.query(f"?- t(X, Y), X != never{mine}_{turns} .")) == size * size
            assert all(row[0] == mine for row in member(X=mine))
            turns += 1
        return turns

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read, mine) for mine in (0, 3, 7)]
        try:
            for n in range(12):
                change(kb, f"q({n}) .")
        finally:
            done.set()
        assert all(reader.result(SECONDS) for reader in readers)
    assert kb.verify().ok


GRAPH = """
    r1: path(X, Y) :- edge(X, Y), X != Y .
    r2: path(X, Z) :- path(X, Y), edge(Y, Z), X != Z .
    r3: cost(X, Y, N) :- path(X, Y), N := func:slow(X, Y) .
    r4: far(X, Y) :- node(X), node(Y), not path(X, Y) .
    r5: total(X, S) :- AGGREGATE(cost(X, Y, N)) ON X WITH SUM(N) AS S .
"""


def weight(x: int, y: int) -> int:
    return 100 * x + y


@pytest.mark.parametrize("strategy", ["choose", "maintain"])
def test_a_reader_may_come_between_any_two_slices_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    monkeypatch.setattr(execute, "_BUDGET", 40)
    edges = [("edge", n, (7 * n + k) % 40) for n in range(40) for k in (1, 5)]

    def grown(kb: KnowledgeBase) -> list[ze.ChangeReport]:
        reports = [change(kb, GRAPH)]
        for part in (edges[:50], edges[50:]):
            with kb.change() as c:
                c.add_facts(part)
                c.add_facts([("node", n) for n in range(40)])
            reports.append(c.report)
        with kb.change() as c:
            c.remove_facts(edges[20:30])
        return [*reports, c.report]

    alone = KnowledgeBase(EmbeddedEngine(), Settings())
    alone.function(weight, name="slow")
    expected = grown(alone)
    shared = KnowledgeBase(EmbeddedEngine(strategy=strategy), Settings())
    shared.function(weight, name="slow")
    done = threading.Event()

    def read() -> int:
        turns = 0
        while not done.is_set():
            # New terms, new indexes, the host's function, and a query that another thread assembled.
            shared.query(f"?- path(X, Y), edge(Y, X), Z := Y * 1000 + {turns}, Z > X .")
            shared.query(f"?- cost(X, {turns % 40}, N), M := func:slow(N, {turns}) .")
            assert shared.derived().keys() <= {"path", "cost", "far", "total"}
            turns += 1
        return turns

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            reports = grown(shared)
        finally:
            done.set()
        assert reader.result(SECONDS)
    assert shared.facts() == alone.facts()
    assert [r.inserted for r in reports] == [r.inserted for r in expected]
    assert [r.deleted for r in reports] == [r.deleted for r in expected]
    assert shared.verify().ok


def test_a_query_assembled_by_the_thread_that_changes_is_asked_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(execute, "_BUDGET", 40)
    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    change(kb, "edge(1, 2) .  edge(2, 3) .  edge(3, 1) .  two(X, Z) :- edge(X, Y), edge(Y, Z), edge(Z, X) .")
    after = kb.prepare("?- edge(X, Y) .", "X")
    assert len(after(X=1)) == 1  # planned and assembled here
    with kb.change() as c:
        c.add_facts([("edge", n, (n + k) % 60) for n in range(60) for k in (1, 2, 58)])
        many = ThreadPoolExecutor(1)
        done = threading.Event()

        def ask() -> int:
            turns = 0
            while not done.is_set() or not turns:
                found = [row for row in after(X=1) if row[0] != 1]
                assert found == []
                turns += 1
            return turns

        asking = many.submit(ask)
    done.set()
    assert asking.result(SECONDS)
    many.shutdown()
    assert kb.verify().ok


def test_a_node_that_two_threads_share_rests_while_others_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "_BUDGET", 2000)
    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    size = 21_000
    with kb.change() as c:
        c.add_facts([("a", n, n % 500) for n in range(size)])
        c.add_facts([("b", n, n + 1) for n in range(500)])
    done = threading.Event()

    def read() -> int:
        turns = 0
        while not done.is_set() or not turns:
            assert len(kb.query(f"?- b(X, Y), Z := Y + {10**6 + 1000 * turns} .")) == 500
            turns += 1
        return turns

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            change(kb, "c(X, Z) :- a(X, Y), b(Y, Z), X > Z .")
        finally:
            done.set()
        assert all(reader.result(SECONDS) for reader in readers)
    assert kb.derived() == {"c": sum(n > n % 500 + 1 for n in range(size))}


def test_the_second_thread_of_a_node_does_nothing_while_the_turn_is_passed_on() -> None:
    steps, inside, done = 0, False, threading.Event()
    passed: list[bool] = []

    class Passing:
        wanted = True

        def yield_to_waiters(self) -> None:
            passed.append(inside)

    second = OtherHalf(Passing())

    def work() -> int:
        nonlocal steps, inside
        with second.working:
            while not done.is_set():
                inside = True
                time.sleep(0.002)
                inside = False
                steps += 1
                second.watch(0, 0)
        return steps

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        for wanted in range(1, 11):
            until(lambda: steps >= wanted)  # noqa: B023 - it is asked at once
            second.yield_to_waiters()
        done.set()
        second.wait_for(working)
    assert len(passed) >= 10
    assert not any(passed)


def test_a_load_lets_others_read(kb: KnowledgeBase, tmp_path: Path) -> None:
    change(kb, "q(a) .")
    (tmp_path / "near.csv").write_text("".join(f"{n},{n + 1}\n" for n in range(20_000)))
    with ThreadPoolExecutor(1) as pool, kb.change() as c:
        asked: list[Future[object]] = []

        def progress(_: object) -> None:
            if not asked:
                asked.append(pool.submit(kb.facts))
                until(lambda: kb._engine_lock.wanted)
            else:
                assert not kb._engine_lock.wanted

        c.load(tmp_path / "near.csv", progress=progress)
        assert asked[0].result(SECONDS) == {fact("q", A)}
    assert len(kb.facts()) == 20_001


# What must not be


def test_what_is_called_from_inside_may_not_ask(kb: KnowledgeBase) -> None:
    change(kb, CHAIN)
    for ask in (kb.facts, lambda: change(kb, "q(b) .")):

        def progress(_: Progress) -> None:
            ask()  # noqa: B023 - each is done before the next begins

        kb._settings = Settings(progress=progress)
        with pytest.raises(UsageProblem, match="U011"):
            change(kb, "q(a) .")
    kb._settings = Settings()
    assert kb.version == 1
    assert change(kb, "q(a) .").version_after == 2


def test_a_function_that_asks_is_told_so(kb: KnowledgeBase) -> None:
    change(kb, CHAIN + "q(a) .")
    kb.function(lambda _: len(kb.facts()), name="size")
    answers = kb.query("?- q(X), N := func:size(X) .")
    assert answers.dropped
    assert "U011" in answers.dropped.example
    assert len(kb.query("?- q(X) .")) == 1


def test_a_change_within_a_reading_is_refused(kb: KnowledgeBase) -> None:
    change(kb, "q(a) .")
    with kb.reading():
        assert kb.query("?- q(a) .")
        for refused in (lambda: change(kb, "q(b) ."), kb.dry_run, kb.verify):
            with pytest.raises(UsageProblem, match="U011"):
                refused()
    assert kb.version == 1
    assert change(kb, "q(b) .").version_after == 2
