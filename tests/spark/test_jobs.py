"""What a change costs: jobs, rows that reach the driver, rounds, files."""

from __future__ import annotations

import gc
import threading
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.core.rdd import RDD
from pyspark.sql.classic.dataframe import DataFrame

from spark.conftest import CLUSTER
from strategies.waiting import until
from zodiacedge.engine.api import Progress, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.handover import ALONE
from zodiacedge.engine.spark import attempt, columns, scratch, slices, small_change, vocabulary
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.jobs import Jobs
from zodiacedge.engine.spark.lookup import Lookup
from zodiacedge.engine.spark.place import Options
from zodiacedge.engine.spark.region import Region
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.errors import ZodiacError
from zodiacedge.knowledge import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.transaction import Transaction

RULES = "a: p(X, Y) :- e(X, Y) . b: p(X, Y) :- p(X, Z), e(Z, Y) . c: q(X) :- f(X, Y) .\n"
MOST_ROWS = 60


def changed(kb: KnowledgeBase, engine: SparkEngine, text: str) -> tuple[list[str], int]:
    """Make a change; return the rules of the nodes that were visited, and how many jobs it took."""
    before = engine.jobs.count()
    with kb.change() as change:
        change.add_rules(text)
    return [rule for node in change.report.nodes for rule in node.rules], engine.jobs.count() - before


def test_what_a_change_does_not_reach_costs_no_job(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options())
    kb = KnowledgeBase(engine, Settings())
    # The first facts have nothing to be compared with: the rules are one job.
    assert changed(kb, engine, RULES + "e(a, b) . e(b, c) . f(a, 1) .") == (["a", "b", "c"], 1)
    # A fact that nobody reads is compared with those there are, and that is all.
    assert changed(kb, engine, "z(a, 1) .") == ([], 1)
    assert changed(kb, engine, "z(a, 1) .") == ([], 1)
    # One that a rule reads is two jobs, however many other rules there are.
    assert changed(kb, engine, "f(b, 2) .") == (["c"], 2)
    # A rule alone is one, and no other rule is looked at.
    assert changed(kb, engine, "d: r(X) :- q(X), p(X, Y) .") == (["d"], 1)
    before = engine.jobs.count()
    assert kb.derived() == {"p": 3, "q": 2, "r": 2}
    assert len(kb.facts()) == 12
    assert engine.jobs.count() == before


def carried(result: object) -> int:
    """Return how many rows a result brings along, in whatever it is wrapped."""
    match result:
        case np.ndarray():
            return len(result)
        case list() | tuple() if result and all(isinstance(one, np.ndarray) for one in result):
            return max(map(len, result))
        case list() | tuple():
            return sum(map(carried, result))
        case dict():
            return sum(map(carried, result.values()))
        case _:
            return 0


def cap_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let nothing bring more than a few rows to the driver; the list gets what look-ups by key brought."""
    looked_up: list[int] = []

    def capped(call: Callable[..., Any], rows: Callable[[Any], int]) -> Callable[..., Any]:
        def checked(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - stands for any call
            result = call(*args, **options)
            assert rows(result) <= MOST_ROWS, call
            return result

        return checked

    def noted(result: object) -> int:
        looked_up.append(carried(result))
        return looked_up[-1]

    for home, name, rows in (
        (RDD, "collect", lambda found: max(len(found), carried(found))),
        (DataFrame, "collect", len),
        (DataFrame, "toArrow", len),
        (DataFrame, "toPandas", len),
        (DataFrame, "toLocalIterator", lambda _: MOST_ROWS + 1),
        # Nor is a relation listed, were it a batch at a time.
        (Lookup, "_streamed", lambda _: MOST_ROWS + 1),
        (columns, "read_part", lambda found: len(found[0])),
        (scratch, "read_table", len),
        (vocabulary, "read_table", len),
        # Tasks are other processes: these are what the driver reads itself, and what tasks found for it.
        (slices, "matching", noted),
        (small_change, "matching", noted),
    ):
        monkeypatch.setattr(home, name, capped(getattr(home, name), rows))
    each = Jobs.each

    def listened(self: Jobs, work: Callable[..., Any], *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        found = each(self, work, *rest, **options)
        if work is slices.look:
            noted(found)
        return found

    monkeypatch.setattr(Jobs, "each", listened)
    return looked_up


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
SMALL_CHANGES = (
    ("add", "<e>(n3, n100) . <s>(n4, n200) ."),
    ("remove", "<e>(n3, n100) . <s>(n5, n6) ."),
    ("add", '<w>(n7, "8") . <s>(n5, n6) . <e>(new, n3) .'),
    ("remove", '<w>(n8, "8") . <s>(n4, n200) . <e>(n11, n77) .'),
)


def test_no_relation_ever_comes_to_the_driver(
    tmp_path: Path, make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "edges.nt"
    lines = [f'<n{n}> <e> <n{n * 7 % 400}> .\n<n{n}> <w> "{n % 9}" .\n' for n in range(400)]
    lines += [f"<n{n}> <s> <n{n + 1}> .\n" for n in range(400) if n % 5 != 4]
    path.write_text("".join(lines))
    options = Options(gather_rows=0, driver_rows=MOST_ROWS, split_bytes=4096, whole_rows=10)
    engine = make_engine(options)
    expected, found = KnowledgeBase(EmbeddedEngine(), Settings()), KnowledgeBase(engine, Settings())
    looked_up = cap_rows(monkeypatch)
    for kb in (expected, found):
        with kb.change() as change:
            change.add_rules(LARGE)
            change.load(str(path))
    assert found.derived() == expected.derived()
    assert change.report.net_counts()[0]["two"] == expected.derived()["two"] > MOST_ROWS
    assert found.query("?- two(<n3>, X) .").rows == expected.query("?- two(<n3>, X) .").rows
    assert not looked_up
    visited = set()
    for kind, text in SMALL_CHANGES:
        told = []
        for kb in (expected, found):
            with kb.change() as change:
                (change.add_facts if kind == "add" else change.remove_facts)(text)
            told.append(change.report.net_counts())
        assert told[0] == told[1], text
        by_key = {
            rule for node in change.report.nodes if "looked up by key" in node.means for rule in node.rules
        }
        assert by_key == {rule for node in change.report.nodes for rule in node.rules}, text
        visited |= by_key
    assert visited == set("jukrcngv")
    # It is by key that rows were looked up, and few of them.
    assert 0 < max(looked_up) <= MOST_ROWS
    assert len(looked_up) >= 2 * len(SMALL_CHANGES)
    # All of it is evaluated once more and compared, and the digest is that of every engine.
    verified = found.verify()
    assert verified.ok, verified
    assert (verified.facts, verified.digest) == (len(expected.facts()), expected.verify().digest)
    assert verified.facts > 10 * MOST_ROWS
    # Whoever asks for all facts gets them, a batch at a time.
    monkeypatch.undo()
    assert found.facts() == expected.facts()


def test_sixty_rounds_take_the_same_time_each(make_engine: Callable[[Options], SparkEngine]) -> None:
    moments: list[float] = []

    def note(progress: Progress) -> None:
        if progress.round:
            moments.append(time.perf_counter())

    engine = make_engine(Options(way="rounds"))
    kb = KnowledgeBase(engine, Settings(progress=note))
    with kb.change() as change:
        change.add_rules("r: At(Y) :- At(X), e(X, Y) . At(n0) .")
        change.add_facts(" ".join(f"e(n{n}, n{n + 1}) ." for n in range(60)))
    assert [node.rounds for node in change.report.nodes] == [60]
    seconds = [after - before for before, after in pairwise(moments)]
    assert len(seconds) >= 55
    assert median(seconds[-15:]) < 2.5 * median(seconds[10:25])


def test_files_go_when_nobody_needs_them(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options())
    kb = KnowledgeBase(engine, Settings())
    changed(kb, engine, RULES + "e(a, b) . e(b, c) . f(a, 1) .")
    for n in range(8):
        changed(kb, engine, f"e(c, x{n}) .")
        kb.dry_run(remove_facts="e(a, b) .")
    folder = Path(engine.empty().place.scratch.folder.uri)
    gc.collect()
    held = files_of(kb.state)
    assert {str(path) for path in folder.iterdir()} == held
    assert len(held) < 40
    del kb
    gc.collect()
    assert not list(folder.iterdir())


def test_rounds_leave_nothing_behind_but_what_they_found(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    engine = make_engine(Options(way="rounds"))
    context = engine.jobs.session.sparkContext
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_rules("r: At(Y) :- At(X), e(X, Y) . At(a) . e(a, b) . e(b, c) . e(c, d) . e(d, e) .")
    assert [node.rounds for node in change.report.nodes] == [4]
    assert kb.derived() == {"At": 4}
    assert context._jsc.getPersistentRDDs().isEmpty()
    del change
    gc.collect()
    folder = Path(engine.empty().place.scratch.folder.uri)
    assert {str(path) for path in folder.iterdir()} == files_of(kb.state)


def files_of(state: object) -> set[str]:
    """Return the files that a version has."""
    assert isinstance(state, SparkState)
    parts = [part for one in (state.stated, *state.segments.values()) for part in one.parts]
    return {part.path for part in (*parts, *state.terms.parts)}


def test_how_far_a_job_is_has_nothing_to_do_with_others(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    one, other = (make_engine(Options()).jobs for _ in range(2))
    # The last task of the other job goes on while ours runs. Spark does not tell of tasks that end together.
    done: list[int] = []
    work = (time.sleep, [0.3] * 6 + [6.0], "waiting", ALONE, done.append)
    beside = threading.Thread(target=other.each, args=work)
    beside.start()
    until(lambda: max(done, default=0) > 1)
    told: list[int] = []
    one.each(time.sleep, [1.5], "waiting", watch=told.append)
    beside.join()
    assert told
    assert max(told) <= 1


def fill(text: str) -> Callable[[Transaction, Path], object]:
    return lambda change, _: change.add_rules(text)


def load(*names: str, **options: Any) -> Callable[[Transaction, Path], object]:  # noqa: ANN401 - of any kind
    return lambda change, folder: change.load(*(folder / name for name in names), **options)


NUMBERS = " ".join(f"q(n{n}, {n}) ." for n in range(20))
MANY = " ".join(f"q(m{n}, {n}) ." for n in range(400))


@pytest.mark.parametrize(
    ("way", "bits", "fails"),
    [
        # In one task of several, or in the only one, or where nobody but the driver is at work.
        ("partitioned", 63, fill("p(X, Y) :- q(X, N), Y := 1 / N .")),
        ("rounds", 63, fill("p(X, Y) :- q(X, N), Y := 1 / N .")),
        ("choose", 63, load("good.nt", "bad.ttl")),
        ("choose", 63, load("lines.nt", "good.nt", quarantine="/dev/null/nowhere")),
        ("choose", 15, fill(MANY)),
        ("rounds", 15, fill("p(X, M) :- q(X, A), q(Y, B), M := A * 1000 + B .")),
        ("choose", 15, load("many.nt")),
    ],
)
def test_a_change_that_fails_leaves_no_file(
    way: str,
    bits: int,
    fails: Callable[[Transaction, Path], object],
    tmp_path: Path,
    java: None,  # noqa: ARG001 - needed, not used
) -> None:
    lines = [f"<m{n}> <q> <m{n + 1}> .\n" for n in range(12_000)]
    (tmp_path / "many.nt").write_text("".join(lines))
    (tmp_path / "good.nt").write_text("".join(lines[:10]))
    (tmp_path / "lines.nt").write_text("".join([*lines[:10], "bad\n"]))
    (tmp_path / "bad.ttl").write_text("<a> <b> .")
    options = Options(way=way, gather_rows=4000)
    kb = KnowledgeBase(SparkEngine(cluster=CLUSTER, bits=bits, options=options), Settings(strict=True))
    with kb.change() as change:
        change.add_facts(NUMBERS)
    state = kb.state
    assert isinstance(state, SparkState)
    folder = Path(state.place.scratch.folder.uri)
    gc.collect()
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(ZodiacError), kb.change() as change:
        fails(change, tmp_path)
    del change
    gc.collect()
    assert {path.name for path in folder.iterdir()} == before


def test_jobs_are_told_in_plain_words(make_engine: Callable[[Options], SparkEngine]) -> None:
    told: list[str] = []
    kb = KnowledgeBase(make_engine(Options()), Settings(progress=lambda one: told.append(one.stage)))
    with kb.change() as change:
        change.add_rules("p(X) :- q(X) .")
        change.add_facts("q(a) .")
    del told[:]
    with kb.change() as change:
        change.add_facts("q(a) . q(b) .")
    assert [stage for stage in told if stage] == [
        "comparing facts with those that are there",
        "bringing rules up to date in one task",
    ]


def test_what_is_derived_is_written_once_and_told_without_a_job(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    engine = make_engine(Options())
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_rules("x: pair(X, Y) :- f(X), g(Y) .")
        change.add_facts(
            "\n".join([*(f"f(n{n}) ." for n in range(400)), *(f"g(m{n}) ." for n in range(300))])
        )
    folder = Path(engine.empty().place.scratch.folder.uri)
    # More came than is told at once: that would be all of it a second time.
    written = sum(pq.ParquetFile(path).metadata.num_rows for path in folder.glob("rows-*.parquet"))
    assert written == 400 + 300 + 400 * 300
    before = engine.jobs.count()
    assert change.report.net_counts() == ({"f": 400, "g": 300, "pair": 120_000}, {})
    assert engine.jobs.count() == before


def listen_to_regions(monkeypatch: pytest.MonkeyPatch) -> list[Region]:
    """Return a list that gets what tasks are given that bring nodes up to date together."""
    found: list[Region] = []
    one = Jobs.one

    def listened(self: Jobs, work: Callable[..., Any], given: Any, *rest: Any) -> Any:  # noqa: ANN401
        found.extend([given] if isinstance(given, Region) else [])
        return one(self, work, given, *rest)

    monkeypatch.setattr(Jobs, "one", listened)
    return found


def test_what_nobody_has_any_more_counts_for_what_one_task_reads(
    make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = KnowledgeBase(make_engine(Options(gather_rows=100)), Settings())
    facts = " ".join(f"e(n{n}, a) ." for n in range(20))
    with found.change() as change:
        change.add_rules(f"a: big(X, Y) :- e(X, _), e(Y, _) . b: s(X) :- big(X, n1), f(X) . f(n2) . {facts}")
    regions = listen_to_regions(monkeypatch)
    with found.change() as change:
        change.remove_rules("a")
    assert change.report.net_counts() == ({}, {"big": 400, "s": 1})
    # What they need was looked up; they do not read all that was there.
    assert [one.rows is not None for one in regions if one.rules] == [True]


def test_what_is_told_at_once_leaves_out_no_relation_that_moved(
    make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "_TOLD_AT_ONCE", 20)
    kb = KnowledgeBase(make_engine(Options()), Settings())
    with kb.change() as change:
        change.add_rules("c: q(X, Y) :- f(X, Y) . f(a, b) . z(a, b) .")
    regions = listen_to_regions(monkeypatch)
    with kb.change() as change:
        change.add_facts("f(b, c) . " + " ".join(f"z(n{n}, a) ." for n in range(30)))
    # Nobody reads what most of the facts are of.
    assert [one.relation.name for region in regions for one in region.inputs] == ["f"]
    assert change.report.net_counts() == ({"f": 1, "q": 1, "z": 30}, {})
