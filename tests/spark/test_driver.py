"""What reaches the driver is small by construction, whatever is done but asking for all facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zodiacedge as ze
from spark.driver_cap import MOST_ROWS, cap
from spark.test_spark_store import on
from store.conftest import abandon
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.kb.transaction import Transaction

# A relation has many times as many rows as may reach the driver, and many times as many bytes.
NODES = 1500

# A join, a union, a class, a recursion, a negation with a witness, groups, and a value that is compared.
LARGE = """
j: two(X, Z) :- <e>(X, Y), <e>(Y, Z) .
u: two(X, Y) :- <e>(X, Y) .
k: Heavy(X) :- <w>(X, "8") .
r: after(X, Y) :- <s>(X, Y) .
c: after(X, Y) :- after(X, Z), <s>(Z, Y) .
n: Last(X) :- <s>(_, X), not <s>(X, _) .
g: count(X, N) :- AGGREGATE(<e>(X, Y)) ON X WITH COUNT(Y) AS N .
v: Many(X) :- count(X, N), N > 1 .
"""
GOING = '<e>(n3, n21) . <s>(n5, n6) . <w>(n8, "8") .'
COMING = '<n7> <w> "8" .\n<n5> <s> <n6> .\n<n4> <s> <n200> .\nno triple\n<new> <e> <n3> .\n'
# A rule with an aggregate that defines a class: it may have no explicit members, and others have many.
BUSY = "b: Busy(X) :- AGGREGATE(<e>(X, Y)) ON X WITH COUNT(Y) AS N ."


def write_data(path: Path) -> None:
    """Write edges, weights, short chains, members of a class, and lines that are none."""
    lines = [f'<n{n}> <e> <n{n * 7 % NODES}> .\n<n{n}> <w> "{n % 9}" .\n' for n in range(NODES)]
    lines += [f"<n{n}> <s> <n{n + 1}> .\n" for n in range(NODES) if n % 5 != 4]
    lines += [f"<n{n}> <{RDF_TYPE}> <Site> .\n" for n in range(NODES)]
    lines += ["no triple\n" for _ in range(2 * MOST_ROWS)]
    path.write_text("".join(lines))
    path.with_name("more.nt").write_text(COMING)


def fill(change: Transaction, path: Path) -> None:
    """Have rules, and the facts of a file."""
    change.add_rules(LARGE)
    change.load(str(path))


def other_rules(change: Transaction) -> None:
    """Have a rule more and one less."""
    change.add_rules(BUSY)
    change.remove_rules("v")


def both(kbs: tuple[KnowledgeBase, KnowledgeBase], make: Callable[[Transaction], object]) -> ChangeReport:
    """Make a change on both engines; check that they tell the same, and return Spark's report."""
    told = []
    for kb in kbs:
        with kb.change() as change:
            make(change)
        told.append(change.report)
    assert told[1].net_counts() == told[0].net_counts()
    assert {(node.rules, node.counted()) for node in told[1].nodes} == {
        (node.rules, node.counted()) for node in told[0].nodes
    }
    assert str(told[1])
    return told[1]


def test_no_relation_ever_comes_to_the_driver(
    tmp_path: Path, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that can be done is done under a cap, but for what a user asks for by its nature.

    That is listing facts (`kb.facts()`, `kb.explicit`), a query with many answers, a subscription to what
    changes much, an export and a quarantine of many lines: whoever asks for rows gets them.
    """
    path, place = tmp_path / "data.nt", tmp_path / "farm.zodiac"
    write_data(path)
    options = Options(gather_rows=0, driver_rows=MOST_ROWS, split_bytes=1 << 16, whole_rows=10)
    engine = make_engine(options)
    reached = cap(monkeypatch)
    expected, found = ze.open(), on(engine, place)

    # Loading, and full evaluation; the change is logged in files that tasks write.
    report = both((expected, found), lambda c: fill(c, path))
    assert report.net_counts()[0]["two"] == expected.derived()["two"] > 10 * MOST_ROWS
    assert found.derived() == expected.derived()
    found.flush()
    # Rules that come and go, tried before; who subscribed to one class gets no members of another.
    heard: list[ze.Notice] = []
    found.subscribe("Heavy/1", heard.append)
    assert found.dry_run(add_rules=BUSY, remove_rules="v").net_counts() == ({"Busy": NODES}, {})
    both((expected, found), other_rules)
    derived, facts = expected.derived(), expected.facts()
    # Small changes of facts: what they concern is looked up by key, and is little.
    assert not reached.looked_up
    visited = set()
    for make in (
        lambda c: c.remove_facts(GOING),
        lambda c: c.load(str(tmp_path / "more.nt"), quarantine=tmp_path / "bad"),
    ):
        report = both((expected, found), make)
        assert all("looked up by key" in node.strategy for node in report.nodes)
        visited |= {rule for node in report.nodes for rule in node.rules}
    assert visited == set("jukrcngb")
    assert 0 < max(reached.looked_up) <= MOST_ROWS
    assert [(len(one.inserted), len(one.deleted)) for one in heard] == [(0, 1), (1, 0)]
    # Queries with values, written in them or given later.
    for text, values in (("?- two(<n4>, Y) .", {}), ("?- two(X, Y) .", {"X": ze.iri("n4")})):
        rows = [kb.prepare(text, *values)(**values).rows for kb in (found, expected)]
        assert rows[0] == rows[1]
        assert len(rows[0]) == 2
    # What is kept is opened and replayed, compared with an evaluation from nothing, and taken back.
    abandon(found)
    found = on(engine, place)
    assert found.derived() == expected.derived()
    verified = found.verify()
    assert verified.ok, verified
    assert (verified.facts, verified.digest) == (len(expected.facts()), expected.verify().digest)
    found.rollback(2)
    assert found.derived() == derived
    # Whoever asks for all facts gets them, a batch at a time.
    monkeypatch.undo()
    assert found.facts() == facts
    abandon(found)
