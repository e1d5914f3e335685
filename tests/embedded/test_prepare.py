"""Loads build what later changes look rows up in."""

from __future__ import annotations

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded import prepare
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate.closure_kernels import follow_links
from zodiacedge.engine.embedded.machine import execute
from zodiacedge.engine.embedded.machine.interpreter import run
from zodiacedge.engine.embedded.maintain.shapes import closure
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.terms import dictionary
from zodiacedge.engine.embedded.terms.intern_kernels import intern_term
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

PROGRAM = """
copy(Y, X) :- link(X, Y) .
end(Y) :- link(_, Y) .
two(X, Z) :- link(X, Y), link(Y, Z), red(X) .
only(X) :- red(X), not link(X, _) .
path(X, Y) :- link(X, Y) .
path(X, Z) :- path(X, Y), link(Y, Z) .
near(X, Y) :- link(X, Y), red(X) .
near(X, Y) :- near(Y, X) .
near(X, Z) :- near(X, Y), near(Y, Z) .
both(X, Y) :- link(X, Y), both(Y, X) .
both(X, X) :- red(X) .
degree(X, N) :- AGGREGATE(red(X), link(X, Y)) ON X WITH COUNT(Y) AS N .
"""


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """List the sizes of the tables that an index is built for; hash sets of working tables do not matter."""
    monkeypatch.setattr(prepare, "_LARGE", 10)
    monkeypatch.setattr(prepare, "_ROOM", 2)
    rows: list[int] = []
    build, ready = Table._new_index, Table.make_ready

    def counted(table: Table, number: int, mask: int) -> None:
        rows.append(len(table))
        build(table, number, mask)

    def committed(table: Table, more: int, *, deleting: bool) -> None:
        if not table.has_hash_set:
            rows.append(len(table))
        ready(table, more, deleting=deleting)

    monkeypatch.setattr(Table, "_new_index", counted)
    monkeypatch.setattr(Table, "make_ready", committed)
    return rows


def load(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules(PROGRAM)
        c.add_facts([("link", n, (7 * n + 1) % 30) for n in range(30)])
        c.add_facts([("red", n) for n in range(0, 30, 2)])


def test_the_first_change_after_a_load_indexes_no_large_table(built: list[int]) -> None:
    kb, reference = (
        KnowledgeBase(EmbeddedEngine(strategy="maintain"), Settings()),
        KnowledgeBase(ReferenceEngine(), Settings()),
    )
    for each in (kb, reference):
        load(each)
    for fact in (("link", 3, 4), ("red", 5), ("link", 6, 13)):
        built.clear()
        for each in (kb, reference):
            with each.change() as c:
                if fact == ("link", 6, 13):
                    c.remove_facts([fact])
                else:
                    c.add_facts([fact])
        assert [rows for rows in built if rows >= 10] == [], fact
    assert kb.facts() == reference.facts()


def test_a_small_change_prepares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kb = KnowledgeBase(EmbeddedEngine(strategy="recompute"), Settings())
    load(kb)
    # Preparing any table would compare with it, and fail.
    monkeypatch.setattr(prepare, "_LARGE", None)
    with kb.change() as c:
        c.add_facts([("link", 3, 4)])
    assert c.report.facts_added == 1


def test_a_load_calls_the_kernel_of_closures_so_that_no_change_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prepare, "_LARGE", 10)
    calls: list[int] = []

    def counted(links: int, count: int, *others: int) -> int:
        calls.append(count)
        return int(follow_links(links, count, *others))

    monkeypatch.setattr(closure, "follow_links", counted)
    kb = KnowledgeBase(EmbeddedEngine(strategy="maintain"), Settings())
    load(kb)
    assert set(calls) == {0}
    with kb.change() as c:
        c.add_facts([("link", 3, 4)])
    assert max(calls) > 0


def test_a_load_by_modules_alone_calls_the_kernels_of_other_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_LARGE", 10)
    calls: list[str] = []

    def counted_run(frame: int, state: int) -> int:
        calls.append("run")
        return int(run(frame, state))

    def counted_term(at: int, kind: int, payload: int) -> int:
        calls.append("intern_term")
        return int(intern_term(at, kind, payload))

    monkeypatch.setattr(execute, "run", counted_run)
    monkeypatch.setattr(dictionary, "intern_term", counted_term)
    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    with kb.change() as c:
        c.add_rules("near(X, Y) :- near(Y, X) .\nnear(X, Z) :- near(X, Y), near(Y, Z) .")
        c.add_facts([("near", n, n + 1) for n in range(0, 60, 2)])
    assert {"run", "intern_term"} <= set(calls)
    state = kb.state
    assert isinstance(state, EmbeddedState)
    assert len(state.store.dictionary) == 60
