"""What a change costs: jobs, rows that reach the driver, rounds, files."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.classic.dataframe import DataFrame

import zodiacedge as ze
from spark.conftest import CLUSTER, jobs_so_far
from strategies.waiting import until
from zodiacedge.engine.api import Progress, Settings
from zodiacedge.engine.spark.cluster.jobs import Jobs
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.evaluate.embedded_task import RegionTask
from zodiacedge.engine.spark.maintain import propagate
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage.dataframes import Frames
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Row

    from zodiacedge.kb.transaction import Transaction

RULES = "a: p(X, Y) :- e(X, Y) . b: p(X, Y) :- p(X, Z), e(Z, Y) . c: q(X) :- f(X, Y) .\n"


def changed(kb: KnowledgeBase, engine: SparkEngine, text: str) -> tuple[list[str], int]:
    """Make a change; return the rules of the nodes that were visited, and how many jobs it took."""
    before = jobs_so_far(engine)
    with kb.change() as change:
        change.add_rules(text)
    return [rule for node in change.report.nodes for rule in node.rules], jobs_so_far(engine) - before


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
    before = jobs_so_far(engine)
    assert kb.derived() == {"p": 3, "q": 2, "r": 2}
    assert len(kb.facts()) == 12
    assert jobs_so_far(engine) == before


@pytest.mark.parametrize("way", ["rounds", "partitioned"])
def test_a_change_costs_no_more_jobs_where_there_are_rules_that_it_does_not_reach(
    way: str, make_engine: Callable[[Options], SparkEngine]
) -> None:
    alone, beside, costs = RULES.partition("c:")[2], RULES, []
    for rules in ("c:" + alone, beside):
        engine = make_engine(Options(strategy=way))
        kb = KnowledgeBase(engine, Settings())
        changed(kb, engine, rules + "e(a, b) . e(b, c) . f(a, 1) .")
        assert changed(kb, engine, "z(a, 1) .") == ([], 1)
        costs.append(changed(kb, engine, "f(b, 2) ."))
        assert kb.derived()["q"] == 2
    assert costs[0] == costs[1]
    assert costs[1][0] == ["c"]


@dataclass
class Planned:
    """What Spark had to plan for the rounds of a node: nodes of plans, and files that they read."""

    nodes: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)


def listen_to_plans(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Return what gets Spark's own figures of each job that derives facts."""
    found = Planned()
    write, collect = Frames.write, DataFrame.collect
    reasons: list[str] = []

    def told(self: Frames, rows: Any, why: str) -> Any:  # noqa: ANN401
        reasons.append(why)
        return write(self, rows, why)

    def noted(self: DataFrame) -> list[Row]:
        rows = collect(self)
        if reasons[-1:] == ["deriving facts"]:
            query = self._jdf.queryExecution()
            found.nodes.append(query.optimizedPlan().treeString().count("\n"))
            found.files.append(len(self.inputFiles()))
        return rows

    monkeypatch.setattr(Frames, "write", told)
    monkeypatch.setattr(DataFrame, "collect", noted)
    return found


def test_plans_of_sixty_rounds_do_not_grow_and_leave_nothing_behind(
    make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = listen_to_plans(monkeypatch)
    engine = make_engine(Options(strategy="rounds"))
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        # A sum may have no value, so its rounds are plans.
        change.add_rules("r: At(M) :- At(N), e(N), M = N + 1 . At(0) .")
        change.add_facts(" ".join(f"e({n}) ." for n in range(60)))
    assert [node.rounds for node in change.report.nodes] == [60]
    assert len(planned.nodes) >= 60
    assert max(planned.nodes[-15:]) <= 1.3 * max(planned.nodes[10:25])
    assert max(planned.files[-15:]) <= 1.3 * max(planned.files[10:25])
    assert kb.derived() == {"At": 60}
    assert engine.jobs.session.sparkContext._jsc.getPersistentRDDs().isEmpty()
    del change
    gc.collect()
    folder = Path(engine.empty().workspace.scratch.folder.uri)
    assert {str(path) for path in folder.iterdir()} == files_of(kb.state)


def test_files_go_when_nobody_needs_them(make_engine: Callable[[Options], SparkEngine]) -> None:
    engine = make_engine(Options())
    kb = KnowledgeBase(engine, Settings())
    changed(kb, engine, RULES + "e(a, b) . e(b, c) . f(a, 1) .")
    for n in range(8):
        changed(kb, engine, f"e(c, x{n}) .")
        kb.dry_run(remove_facts="e(a, b) .")
    folder = Path(engine.empty().workspace.scratch.folder.uri)
    gc.collect()
    held = files_of(kb.state)
    assert {str(path) for path in folder.iterdir()} == held
    assert len(held) < 40
    del kb
    gc.collect()
    assert not list(folder.iterdir())


def files_of(state: object) -> set[str]:
    """Return the files that a version has."""
    assert isinstance(state, SparkState)
    parts = [part for one in (state.explicit_files, *state.segments.values()) for part in one.parts]
    return {part.path for part in (*parts, *state.terms.parts)}


def test_how_far_a_job_is_has_nothing_to_do_with_others(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    one, other = (make_engine(Options()).jobs for _ in range(2))
    # The last task of the other job goes on while ours runs.
    done: list[int] = []
    work = (time.sleep, [0.3] * 6 + [3.5], "waiting", ALONE, done.append)
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
    options = Options(strategy=way, gather_rows=4000)
    kb = KnowledgeBase(SparkEngine(cluster=CLUSTER, bits=bits, options=options), Settings(strict=True))
    with kb.change() as change:
        change.add_facts(NUMBERS)
    state = kb.state
    assert isinstance(state, SparkState)
    folder = Path(state.workspace.scratch.folder.uri)
    gc.collect()
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(ZodiacError), kb.change() as change:
        fails(change, tmp_path)
    del change
    gc.collect()
    assert {path.name for path in folder.iterdir()} == before


def test_jobs_are_told_in_plain_words(make_engine: Callable[[Options], SparkEngine]) -> None:
    told: list[Progress] = []
    kb = KnowledgeBase(make_engine(Options()), Settings(progress=told.append))
    with kb.change() as change:
        change.add_rules("p(X) :- q(X) .")
        change.add_facts("q(a) .")
    del told[:]
    with kb.change() as change:
        change.add_facts("q(a) . q(b) .")
    assert [one.stage for one in told if one.stage and not one.total] == [
        "comparing facts with those that are there",
        "bringing rules up to date in one task",
    ]


def test_questions_tell_their_jobs_too(spark: SparkEngine) -> None:
    assert spark.jobs.cores == 2
    told: list[Progress] = []
    kb = ze.open(engine="spark", progress=told.append)
    with kb.change() as change:
        change.add_rules("p(X, Y) :- q(Y, X) . q(a, b) .")
    del told[:]
    kb.query("?- p(X, Y) .")
    assert [one for one in told if not one.total] == [Progress.of_stage("answering a query")]


def test_a_long_job_tells_how_many_of_its_tasks_are_completed(spark: SparkEngine, tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    def wait_until_seen(path: str | None) -> bool:
        end = time.monotonic() + 60
        while path and not Path(path).exists() and time.monotonic() < end:
            time.sleep(0.05)
        return path is not None

    told: list[tuple[str, int, int]] = []

    def note(why: str, completed: int, tasks: int) -> None:
        told.append((why, completed, tasks))
        if completed == 3:
            seen.touch()

    with spark.jobs.telling(lambda _: None, note):
        # One task runs until three completed tasks were reported.
        inputs = [str(seen), None, None, None]
        assert spark.jobs.each(wait_until_seen, inputs, "waiting") == [True, False, False, False]
    assert ("waiting", 3, 4) in told
    assert {(why, tasks) for why, _, tasks in told} == {("waiting", 4)}


def test_verification_tells_its_jobs_too(make_engine: Callable[[Options], SparkEngine]) -> None:
    told: list[Progress] = []
    engine = make_engine(Options(driver_rows=0))
    engine.tell(told.append)
    kb = KnowledgeBase(engine, Settings(progress=told.append))
    with kb.change() as change:
        change.add_rules("p(X, Y) :- q(Y, X) . q(a, b) .")
    del told[:]
    assert kb.verify().ok
    # What is part of an evaluation is told once, with its node.
    assert [(one.nodes, one.stage) for one in told if one.stage and not one.total] == [
        (1, "bringing rules up to date in one task"),
        (0, "summing up what facts say"),
        (0, "comparing with another version"),
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
    folder = Path(engine.empty().workspace.scratch.folder.uri)
    # More came than is told at once: that would be all of it a second time.
    written = sum(pq.ParquetFile(path).metadata.num_rows for path in folder.glob("rows-*.parquet"))
    assert written == 400 + 300 + 400 * 300
    before = jobs_so_far(engine)
    assert change.report.net_counts() == ({"f": 400, "g": 300, "pair": 120_000}, {})
    assert jobs_so_far(engine) == before


def listen_to_regions(monkeypatch: pytest.MonkeyPatch) -> list[RegionTask]:
    """Return a list that gets what tasks are given that bring nodes up to date together."""
    found: list[RegionTask] = []
    one = Jobs.one

    def listened(self: Jobs, work: Callable[..., Any], given: Any, *rest: Any) -> Any:  # noqa: ANN401
        found.extend([given] if isinstance(given, RegionTask) else [])
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
    assert [one.inputs.slice_rows is not None for one in regions if one.program.rules] == [True]


def test_what_is_told_at_once_leaves_out_no_relation_that_moved(
    make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagate, "_NET_AT_ONCE", 20)
    kb = KnowledgeBase(make_engine(Options()), Settings())
    with kb.change() as change:
        change.add_rules("c: q(X, Y) :- f(X, Y) . f(a, b) . z(a, b) .")
    regions = listen_to_regions(monkeypatch)
    with kb.change() as change:
        change.add_facts("f(b, c) . " + " ".join(f"z(n{n}, a) ." for n in range(30)))
    # Nobody reads what most of the facts are of.
    assert [one.relation.name for region in regions for one in region.inputs.relations] == ["f"]
    assert change.report.net_counts() == ({"f": 1, "q": 1, "z": 30}, {})
