"""Recursion that no task may hold, in rounds: beside the loop that people write, and under change.

The loops are semi-naive: each round joins the delta of the last one, drops duplicates, removes what is known
by an anti-join, and checkpoints. One that takes many times as long as ours is broken off.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import inf
from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.kb.change import Change
from zodiacedge.terms import integer
from zodiacedge_bench.measure.embedded import EmbeddedTrial
from zodiacedge_bench.measure.harness import Expected, Measurement, fewest
from zodiacedge_bench.measure.task import Task
from zodiacedge_bench.spark.leaf import LeafFigure, Series
from zodiacedge_bench.spark.loops import NAIVE
from zodiacedge_bench.spark.measured import SparkFigure, measure_on_spark
from zodiacedge_bench.spark.targets import SPARK
from zodiacedge_bench.spark.trial import SparkTrial, strategies_text
from zodiacedge_bench.workloads import graphs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge_bench.spark.session import BenchSession
    from zodiacedge_bench.workloads.graphs import Workload

    Frames = dict[str, DataFrame]
    # From what is known and the last delta of each predicate to the rows that may be new.
    Step = Callable[[Frames, Frames, Frames], Frames]

# How many times faster than materialising again a fact goes out or in.
_WANTED = 10
# A loop is broken off after so many times the seconds that ours takes, but not before so many seconds.
_LOOP_TIMES = 6
_LEAST_LOOP = 60.0
# The relations of which one fact is deleted and inserted.
_CHANGED = {
    "same-generation": ("parent",),
    "points-to": ("alloc", "assign"),
    "side-closure": ("edge",),
}


@dataclass(frozen=True)
class Loop:
    """The start of a semi-naive loop, and its step: from stated and known rows and deltas to new rows."""

    start: Callable[[Frames], Frames]
    step: Step


def _same_generation(stated: Frames, known: Frames, delta: Frames) -> Frames:
    del known
    left, right = stated["parent"].toDF("p", "x"), stated["parent"].toDF("q", "y")
    joined = delta["sameGeneration"].toDF("p", "q").join(left, "p").join(right, "q")
    return {"sameGeneration": joined.select("x", "y")}


def _points_to(stated: Frames, known: Frames, delta: Frames) -> Frames:
    assign, load, store = (stated[name].toDF("v", "w") for name in ("assign", "load", "store"))
    points, new_points = (side["pointsTo"].toDF("w", "o") for side in (known, delta))
    holds, new_holds = (side["holds"].toDF("o", "p") for side in (known, delta))
    loaded = [load.join(a, "w").join(b, "o") for a, b in ((new_points, holds), (points, new_holds))]
    stored = [
        store.join(a.toDF("v", "o"), "v").join(b.toDF("w", "p"), "w")
        for a, b in ((new_points, points), (points, new_points))
    ]
    return {
        "pointsTo": reduce(
            lambda a, b: a.unionByName(b),
            [assign.join(new_points, "w").selectExpr("v as x", "o as y")]
            + [rows.selectExpr("v as x", "p as y") for rows in loaded],
        ),
        "holds": stored[0].select("o", "p").union(stored[1].select("o", "p")).toDF("x", "y"),
    }


def _side_closure(stated: Frames, known: Frames, delta: Frames) -> Frames:
    closed = stated["closed"].toDF("y")
    paths, new = known["path"], delta["path"]
    joined = [
        a.toDF("x", "y").join(closed, "y", "left_anti").join(b.toDF("y", "z"), "y").select("x", "z")
        for a, b in ((new, paths), (paths, new))
    ]
    return {"path": joined[0].union(joined[1]).toDF("x", "y")}


def _siblings(stated: Frames) -> Frames:
    parent = stated["parent"]
    return {"sameGeneration": parent.toDF("p", "x").join(parent.toDF("p", "y"), "p").select("x", "y")}


def _allocated(stated: Frames) -> Frames:
    return {"pointsTo": stated["alloc"].toDF("x", "y"), "holds": stated["alloc"].toDF("x", "y").limit(0)}


LOOPS = {
    "same-generation": Loop(_siblings, _same_generation),
    "points-to": Loop(_allocated, _points_to),
    "side-closure": Loop(lambda stated: {"path": stated["edge"].toDF("x", "y")}, _side_closure),
}


class LoopTrial:
    """One run of a loop, from cached rows to counts, or until it is broken off."""

    def __init__(self, loop: Loop, stated: Frames, most: float = inf) -> None:
        """Take a loop, cached rows, and the seconds after which the loop is broken off."""
        self._loop = loop
        self._stated = stated
        self._most = most
        self._counts: dict[str, int] = {}
        self.broken_off = ""
        """Where the loop was broken off."""

    def evaluate(self) -> None:
        """Run the loop and count."""
        end, rounds = time.perf_counter() + self._most, 0
        known = delta = {
            name: rows.distinct().localCheckpoint() for name, rows in self._loop.start(self._stated).items()
        }
        while not self.broken_off:
            rounds += 1
            new = self._loop.step(self._stated, known, delta)
            delta = {
                name: rows.distinct().join(known[name], ["x", "y"], "left_anti").localCheckpoint()
                for name, rows in new.items()
            }
            if all(rows.isEmpty() for rows in delta.values()):
                break
            known = {name: rows.union(delta[name]) for name, rows in known.items()}
            if time.perf_counter() > end:
                self.broken_off = f"broken off after round {rounds}"
        self._counts = {name: rows.count() for name, rows in known.items()}

    def counts(self) -> Mapping[str, int]:
        """Return the number of rows per predicate."""
        return {name: count for name, count in self._counts.items() if count}


@dataclass(frozen=True)
class Rounds:
    """Measures recursion in rounds, with nothing gathered in one task."""

    session: BenchSession
    runs: int | None
    progress: Callable[[str], None]
    small: bool = False

    def measure(self) -> Iterator[tuple[list[SparkFigure], list[LeafFigure]]]:
        """Yield the figures of each workload from scratch, and those of a fact out and in."""
        for name, make in (graphs.SMALL_ROUNDS if self.small else graphs.ROUNDS).items():
            self._warm_up(name)
            workload = make()
            expected = Expected(workload.derived)
            shown = f"{name} (small)" if self.small else f"{name} in rounds"
            task = Task(shown, workload.rules, workload.facts, expected)
            self.progress(f"{task.name}: zodiac embedded")
            embedded = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=True)
            embedded.evaluate()
            expected.check(task.name, embedded.counts())
            ours = self._ours(task, Expected(embedded.counts()))
            yield [ours], list(self._changes(name, task, workload, ours.measurement))
            most = max(_LEAST_LOOP, _LOOP_TIMES * ours.measurement.best.seconds)
            yield [self._loop(name, task, workload, Expected(embedded.counts()), most)], []

    def _warm_up(self, name: str) -> None:
        """Run the small workload once, so that workers run and Java has compiled the loop."""
        workload = graphs.SMALL_ROUNDS[name]()
        task = Task(name, workload.rules, workload.facts, Expected(workload.derived))
        SparkTrial(self.session.base(task, gather_rows=0).state, task).evaluate()
        LoopTrial(LOOPS[name], _cached(self.session.spark, workload)).evaluate()

    def _ours(self, task: Task, expected: Expected) -> SparkFigure:
        self.progress(f"{task.name}: {SPARK}")
        base = self.session.base(task, gather_rows=0).state
        last = SparkTrial(base, task)

        def fresh() -> SparkTrial:
            nonlocal last
            last = SparkTrial(base, task)
            return last

        measurement, windows = measure_on_spark(f"{SPARK} on {task.name}", fresh, expected, self.runs)
        return SparkFigure(task.name, SPARK, measurement, windows=windows, how=strategies_text(last.how))

    def _loop(
        self, name: str, task: Task, workload: Workload, expected: Expected, most: float
    ) -> SparkFigure:
        """Measure the loop; one that is broken off counts what it has derived."""
        self.progress(f"{task.name}: {NAIVE}")
        stated = _cached(self.session.spark, workload)
        last = LoopTrial(LOOPS[name], stated, most)

        def fresh() -> LoopTrial:
            nonlocal last
            last = LoopTrial(LOOPS[name], stated, most)
            return last

        engine = f"{NAIVE} on {task.name}"
        measurement, windows = measure_on_spark(engine, fresh, Expected(), self.runs)
        if not last.broken_off:
            expected.check(engine, last.counts())
        for frame in stated.values():
            frame.unpersist()
        return SparkFigure(task.name, NAIVE, measurement, windows=windows, how=last.broken_off)

    def _changes(self, name: str, task: Task, workload: Workload, again: Measurement) -> Iterator[LeafFigure]:
        """Delete a fact and insert it again."""
        kb = self.session.base(task, gather_rows=0)
        kb.apply(Change(add_rules=task.program))
        before = kb.derived()
        for relation in _CHANGED[name]:
            rows = workload.relations[relation]
            fact = (relation, *map(integer, rows[len(rows) * 2 // 3].tolist()))
            deletion = Series(f"{name}: {relation} out", partial(_delete, fact=fact))
            insertion = Series(f"{name}: {relation} in", partial(_insert, fact=fact))
            while not deletion.runs or len(deletion.runs) < (self.runs or fewest(deletion.runs)):
                for series in (deletion, insertion):
                    self.progress(f"{task.name}: {series.change}")
                    series.run(kb)
                Expected(before).check(f"{task.name} after {insertion.change}", kb.derived())
            for series in (deletion, insertion):
                yield replace(series.figure(task.name, again), wanted=_WANTED)


def _cached(session: SparkSession, workload: Workload) -> Frames:
    frames = {}
    for name, rows in workload.relations.items():
        columns: Sequence[pa.Array] = [pa.array(rows[:, n]) for n in range(rows.shape[1])]
        frame = session.createDataFrame(pa.table(list(columns), names=["a", "b"][: len(columns)])).cache()
        frame.count()
        frames[name] = frame
    return frames


def _delete(kb: KnowledgeBase, fact: tuple[object, ...]) -> ChangeReport:
    with kb.change() as change:
        change.remove_facts([fact])
    return change.report


def _insert(kb: KnowledgeBase, fact: tuple[object, ...]) -> ChangeReport:
    with kb.change() as change:
        change.add_facts([fact])
    return change.report
