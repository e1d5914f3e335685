"""A small change of large relations looks up what it concerns, and is exact on that alone."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from spark.conftest import jobs_so_far
from spark.test_shared_suite import follow
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.lookup import by_key
from zodiacedge.engine.spark.lookup.by_key import RowSlice, TooManyError
from zodiacedge.engine.spark.lookup.matching import matching
from zodiacedge.engine.spark.storage.compaction import compacted
from zodiacedge.engine.spark.storage.files import Folder, Relation, SignedFiles, read_file
from zodiacedge.engine.spark.storage.workspace import Options, Workspace
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.engine.api import NodeRun
    from zodiacedge.engine.spark.engine import SparkEngine

# A join, a chain of nodes, recursion, negation with a witness, groups, computed values, and a class.
RULES = """
j: near(X, Z) :- road(X, Y), road(Y, Z) .
k: Hub(X) :- near(X, Y), lit(Y) .
t: up(X, Y) :- part(X, Y) .
u: up(X, Y) :- up(X, Z), part(Z, Y) .
n: Root(X) :- part(_, X), not part(X, _) .
g: degree(X, N, L) :- AGGREGATE(road(X, Y), long(Y, M)) ON X WITH COUNT(Y) AS N, MAX(M) AS L .
v: far(X, D) :- degree(X, N, L), D := L * 2, N > 1 .
w: Lone(X) :- degree(X, 1, L), not Hub(X) .
"""
# Some cities, each with roads to its neighbours, a forest of parts, and lengths.
CITIES = 3000


def facts(cities: int = CITIES) -> str:
    """Return what there is at first."""
    dice = random.Random(7)
    lines = [f"road(c{n}, c{dice.randrange(max(0, n - 5), n + 1)}) ." for n in range(cities)]
    lines += [f"road(c{n}, c{(n + 3) % cities}) ." for n in range(0, cities, 2)]
    lines += [f"part(p{n}, p{n // 3}) ." for n in range(1, cities)]
    lines += [f"long(c{n}, {n % 17}) ." for n in range(cities)]
    lines += [f"lit(c{n}) ." for n in range(0, cities, 50)]
    return "\n".join(lines)


def changes(cities: int = CITIES) -> tuple[tuple[str, str, int], ...]:
    """Return small changes, with the most jobs that each may take.

    Of many cities, parts stand seven deep, and every step along them is one to look up.
    """
    half, part = cities // 2, cities * 3 // 10
    return (
        ("add", f"road(c10, c{half + 500 * cities // CITIES}) .", 6),
        ("remove", f"road(c10, c{half + 500 * cities // CITIES}) . part(p{part}, p{part // 3}) .", 11),
        ("add", f"part(p{part}, p{part // 3}) . lit(c{half + 1}) . long(c7, 99) .", 11),
        ("remove", f"long(c7, 99) . lit(c{half}) . part(p8, p2) .", 6),
        ("add", "road(c1, x) . part(x, p5) . part(y, x) . long(x, 3) .", 7),
    )


def changed(kb: KnowledgeBase, kind: str, text: str) -> tuple[list[NodeRun], object]:
    with kb.change() as change:
        (change.add_facts if kind == "add" else change.remove_facts)(text)
    report = change.report
    return list(report.nodes), (report.inserted, report.deleted, report.net_counts())


def segments(kb: KnowledgeBase) -> list[frozenset[object]]:
    return [kb.state.segment(frozenset(node.rules)) for node in kb.graph().order]


def test_a_fact_more_or_less_costs_a_handful_of_jobs(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options(look_up_from=1000, whole_rows=100))
    found, expected = KnowledgeBase(engine, Settings()), KnowledgeBase(EmbeddedEngine(), Settings())
    for kb in (found, expected):
        with kb.change() as change:
            change.add_rules(RULES)
            change.add_facts(facts())
    assert found.facts() == expected.facts()
    visited = set()
    for kind, text, most in changes():
        before = jobs_so_far(engine)
        nodes, told = changed(found, kind, text)
        jobs = jobs_so_far(engine) - before
        assert told == changed(expected, kind, text)[1], text
        assert segments(found) == segments(expected), text
        assert jobs <= most, (text, jobs)
        for node in nodes:
            rows = re.search(r"maintained, in one task on ([\d,]+) rows, looked up by key", node.strategy)
            assert rows, node
            assert int(rows[1].replace(",", "")) < 2000, node
            assert node.facts == len(found.state.segment(key_of(found, node))), node
            visited |= set(node.rules)
    assert visited == set("jktungvw")


def key_of(kb: KnowledgeBase, run: NodeRun) -> frozenset[str]:
    labels = {key: rule.label for key, rule in kb.state.rules.items()}  # type: ignore[attr-defined]
    return next(
        frozenset(node.rules) for node in kb.graph().order if tuple(map(labels.get, node.rules)) == run.rules
    )


def test_what_leads_too_far_is_not_looked_up(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options(look_up_from=1000, whole_rows=100, driver_rows=2000))
    found, expected = KnowledgeBase(engine, Settings()), KnowledgeBase(EmbeddedEngine(), Settings())
    for kb in (found, expected):
        with kb.change() as change:
            change.add_rules(
                "t: up(X, Y) :- part(X, Y) . u: up(X, Y) :- up(X, Z), part(Z, Y) . k: P(X) :- part(X, Y) ."
            )
            change.add_facts(facts())
    # Half of all facts hang on this one; what reads it alone is still looked up.
    runs, told = changed(found, "remove", "part(p1, p0) .")
    assert told == changed(expected, "remove", "part(p1, p0) .")[1]
    assert segments(found) == segments(expected)
    strategy = {run.rules[0]: run.strategy for run in runs}
    assert "looked up by key" in strategy["t"]
    assert "looked up by key" not in strategy["u"]


@pytest.mark.parametrize("seed", range(100, 110))
def test_random_sessions_on_what_is_looked_up(
    seed: int, make_engine: Callable[[Options], SparkEngine]
) -> None:
    follow(seed, make_engine(Options(look_up_from=0, whole_rows=seed % 2 * 5)))


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 116 else pytest.mark.soak) for n in range(110, 150)]
)
def test_random_sessions_on_what_the_driver_looks_up(
    seed: int, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    # All files are small enough for it.
    monkeypatch.setattr(by_key, "_SCANNED", 1 << 20)
    follow(seed, make_engine(Options(look_up_from=0, whole_rows=1)))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200, 240))
def test_random_sessions_by_plans_and_on_what_is_looked_up(
    seed: int, make_engine: Callable[[Options], SparkEngine]
) -> None:
    follow(seed, make_engine(Options(gather_rows=0, whole_rows=seed % 2 * 5)))


# What is looked up.

PAIRS = Relation("p", 2)


def written(folder: Path, rows: list[tuple[int, int]]) -> SignedFiles:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return SignedFiles.of(Folder(str(folder)).write_rows(PAIRS, columns))


def test_rows_of_a_file_by_the_values_of_some_columns(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [(n, n % 5) for n in range(300_000)]).parts

    def found(wants: dict[tuple[int, ...], set[tuple[int, ...]]], most: int = 10) -> object:
        columns = matching(part, 2, wants, most)
        return columns if columns is None else list(zip(*(c.tolist() for c in columns), strict=True))

    assert found({(0,): {(7,), (299_999,), (300_000,)}}) == [(7, 2), (299_999, 4)]
    assert found({(0, 1): {(7, 3), (8, 3), (9, 2)}}) == [(8, 3)]
    assert found({(0,): {(1,)}, (0, 1): {(2, 2)}}) == [(1, 1), (2, 2)]
    assert found({(1,): {(9,)}}) == []
    assert found({(1,): {(3,)}}) is None
    assert found({(): {()}}, 300_000) == [(n, n % 5) for n in range(300_000)]


def test_a_slice_knows_what_it_was_asked_for(tmp_path: Path, spark: SparkEngine) -> None:
    place = Workspace(spark.jobs, options=Options(whole_rows=0, driver_rows=3))
    base = written(tmp_path, [(1, 1), (1, 2), (2, 1), (3, 3)])
    gone = written(tmp_path, [(1, 2)])
    content = base.then((), tuple(gone.parts))
    one = RowSlice(place, Settings().yield_point, lambda _: [content], lambda _: 2)
    assert not one.covers(PAIRS, (0,), (1,))
    one.fetch({PAIRS: {(0,): {(1,)}}})
    assert one.covers(PAIRS, (0,), (1,))
    assert one.covers(PAIRS, (0, 1), (1, 7))
    assert not one.covers(PAIRS, (1,), (1,))
    # It came, and went again.
    assert one.held(content) == {(1, 1)}
    assert one.held(base) == {(1, 1), (1, 2)}
    with pytest.raises(TooManyError):
        one.fetch({PAIRS: {(1,): {(1,), (3,)}}})
    assert not one.covers(PAIRS, (1,), (1,))
    assert one.held(content) == {(1, 1)}


def test_a_slice_takes_what_the_driver_looks_up_at_once(tmp_path: Path, spark: SparkEngine) -> None:
    place = Workspace(spark.jobs, options=Options(whole_rows=1, driver_rows=3))
    base = written(tmp_path, [(1, 1), (1, 2), (2, 1)])
    content = base.then((), tuple(written(tmp_path, [(1, 2)]).parts))
    one = RowSlice(place, Settings().yield_point, lambda _: [content], lambda _: 2)
    by_first = one.fetch_here(PAIRS, {(0,): {(1,)}})
    assert by_first
    assert by_first(content) == {(1, 1)}
    assert by_first(base) == {(1, 1), (1, 2)}
    assert one.covers(PAIRS, (0,), (1,))
    assert one.count == 3
    # Files of more rows take a job; a limit that is reached leaves everything as it was.
    two = RowSlice(
        place, Settings().yield_point, lambda _: [written(tmp_path, [(n, n) for n in range(9)])], lambda _: 2
    )
    assert two.fetch_here(PAIRS, {(0,): {(1,)}}) is None
    with pytest.raises(TooManyError):
        one.fetch_here(PAIRS, {(1,): {(1,)}})
    assert not one.covers(PAIRS, (1,), (1,))
    assert one.held(content) == {(1, 1)}
    (base_rows, gone_rows) = (one.rows[file.path] for file in content.parts)
    assert sorted(zip(*(column.tolist() for column in base_rows), strict=True)) == [(1, 1), (1, 2)]
    assert [column.tolist() for column in gone_rows] == [[1], [2]]


def test_many_small_files_come_to_what_moved_in_the_end(spark: SparkEngine) -> None:
    place = Workspace(spark.jobs)
    folder = place.scratch.folder
    dice, there = random.Random(3), {(n, n) for n in range(50)}
    columns = [np.array(column, np.int64) for column in zip(*there, strict=True)]
    content = SignedFiles.of(place.adopt(folder.write_rows(PAIRS, columns)))
    for _ in range(20):
        gone = set(dice.sample(sorted(there), 5))
        came = {(dice.randrange(60), dice.randrange(2)) for _ in range(5)} - there
        there = there - gone | came
        parts = [
            place.adopt(folder.write_rows(PAIRS, [np.array(c, np.int64) for c in zip(*rows, strict=True)]))
            for rows in (sorted(came), sorted(gone))
            if rows
        ]
        content = content.then(parts[: bool(came)], parts[bool(came) :])
    found = compacted(place, PAIRS, content, Settings().yield_point)
    assert len(found.layers) == 1
    (part,) = found.parts
    assert set(zip(*(c.tolist() for c in read_file(part, 2)), strict=True)) == there
    assert found.rows == len(there)
