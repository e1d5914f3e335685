"""Jobs and rows read: facts explained one by one, and ticks with one row due; and what indexes take.

A fact of each of some predicates is explained in a session that has asked nothing, then another one. Ticks
move windows with ten readings of each sensor, so that what follows from a tick is the same in a small window
and in a large one.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.cluster.task_files import rows_read
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage.files import parquet_file
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Fact
from zodiacedge_bench.measure.costs import Cost, StateSize
from zodiacedge_bench.measure.harness import WrongCountError
from zodiacedge_bench.measure.proofs import WrongProofError
from zodiacedge_bench.measure.task import lubm_task
from zodiacedge_bench.spark.clock import timed
from zodiacedge_bench.spark.session import bench_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zodiacedge_bench.measure.task import Task
    from zodiacedge_bench.spark.session import BenchSession
    from zodiacedge_bench.suites import Options

_Result = TypeVar("_Result")
_START = datetime(2026, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_EACH = 10
_HOT = 100
_TICKS = 3
_RULES = """
@time reading 3 .
hot: hot(S, T) :- reading(S, V, T) within {0} s, V > 99.0 .
silent: silent(S) :- sensor(S), not reading(S, _, _) within {0} s .
"""
_WINDOWS = (10_000, 1_000_000)
_SMALL = (1000, 4000)
# More rows than a file has.
_NO_BLOCKS = 1 << 40
# Facts of so many predicates are explained, those with the most among them.
_KINDS = 12


class Reads(NamedTuple):
    """Measures what is read in a session."""

    session: BenchSession
    options: Options

    def of_proofs(self, universities: int) -> Iterator[Cost | StateSize]:
        """Measure a state of LUBM without indexes and one with them, and explain facts of the latter."""
        task = lubm_task(1, departments=1) if self.options.small else lubm_task(universities)
        return _explained(self.session, task, self.options.progress)

    def of_ticks(self) -> Iterator[Cost]:
        """Tick in a small window and in a large one."""
        return _ticked(self.session, _SMALL if self.options.small else _WINDOWS, self.options.progress)


@contextmanager
def reading_session(options: Options) -> Iterator[Reads]:
    """Start a session of two cores; end it at the end of a block."""
    with bench_session("local[2]", modules=True) as session:
        yield Reads(session, options)


def _explained(
    session: BenchSession, task: Task, progress: Callable[[str], None]
) -> Iterator[Cost | StateSize]:
    """Explain two facts of each of some predicates, with nothing asked before."""
    progress("a small knowledge base on Spark, so that all is compiled")
    loaded(session.engine(), lubm_task(1), indexed=True)
    progress(f"{task.name} on Spark: loading without indexes")
    yield loaded(session.engine(), task, indexed=False)[1]
    progress(f"{task.name} on Spark: loading")
    kb, size = loaded(session.engine(), task, indexed=True)
    yield size
    for first, second in _derived(kb):
        for asked, when in ((first, "first question"), (second, "later")):
            progress(f"{task.name} on Spark: {asked.predicate.name}, {when}")
            name = asked.args[-1] if asked.predicate.arity == 1 else asked.relation
            cost, proof = _cost(kb, lambda asked=asked: kb.explain(asked))  # type: ignore[misc]
            if not proof.least or not proof.complete:
                raise WrongProofError(asked)
            yield cost(task.name, f"{name}, {when}")


def loaded(engine: SparkEngine, task: Task, *, indexed: bool) -> tuple[KnowledgeBase, StateSize]:
    """Return a knowledge base with the facts and the rules of a task, and its size."""
    kb = KnowledgeBase(engine, Settings())
    state = _state(kb)
    scratch = state.workspace.scratch
    if not indexed:
        # Files of one block have no index.
        scratch.folder = scratch.folder._replace(block=_NO_BLOCKS)
    batch = state.batch()
    batch.add(task.make_facts())
    loading = timed(lambda: kb.apply(Change(loaded=(batch,)))).run
    rules = timed(lambda: kb.apply(Change(add_rules=task.program))).run
    state = _state(kb)
    files = [file for segment in state.owners.values() for file in segment.parts]
    size = StateSize(
        task.name,
        "with indexes" if indexed else "without indexes",
        sum(segment.rows for segment in state.owners.values()),
        sum(Path(file.path).stat().st_size for file in files),
        sum(Path(file.index.path).stat().st_size for file in (*files, *state.terms.parts) if file.index),
        sum(Path(file.path).stat().st_size for file in state.terms.parts),
        loading.cpu_seconds,
        rules.cpu_seconds,
    )
    return kb, size


def _ticked(
    session: BenchSession, windows: tuple[int, ...], progress: Callable[[str], None]
) -> Iterator[Cost]:
    """Tick with one reading due, beside the embedded engine, which must find the same."""
    for rows in windows:
        progress(f"a window of {rows:,} readings on Spark")
        engines = session.engine(), EmbeddedEngine()
        ours, expected = (KnowledgeBase(engine, Settings()) for engine in engines)
        for kb in (ours, expected):
            with kb.change() as change:
                change.add_rules(_RULES.format(rows))
                change.add_facts(pa.table({"s": np.arange(rows // _EACH + 1)}), "sensor")
                change.add_facts(_readings(rows), "reading")
                change.tick(_START + rows * _SECOND)
        for n in range(1, _TICKS + 1):
            moment = _START + (rows + n) * _SECOND
            cost, report = _cost(ours, lambda kb=ours, moment=moment: kb.tick(moment))  # type: ignore[misc]
            told = expected.tick(moment)
            if (report.inserted, report.deleted) != (told.inserted, told.deleted):
                raise WrongCountError(f"a tick with {rows:,} readings in the window")
            yield cost(f"a window of {rows:,}", "a tick, one due" + ", the first" * (n == 1))


def _readings(rows: int) -> pa.Table:
    numbers = np.arange(1, rows + 1)
    start = np.datetime64(_START.replace(tzinfo=None), "us")
    return pa.table(
        {
            "s": numbers % (rows // _EACH),
            # As many of them are hot in a large window as in a small one.
            "v": np.where(numbers % (rows // _HOT) == 3, 100.0, 70.0),
            "t": pa.array(start + numbers * np.timedelta64(_SECOND), pa.timestamp("us", "UTC")),
        }
    )


def _derived(kb: KnowledgeBase) -> Iterator[tuple[Fact, Fact]]:
    """Yield two derived facts of relations and of classes: read from a row group of a file."""
    state = _state(kb)
    decoder = Decoder(state.workspace, state.terms)
    seen: dict[tuple[object, ...], tuple[Fact, Fact]] = {}
    segments = sorted(state.segments.values(), key=lambda segment: -segment.rows)
    for segment in segments:
        for relation, content in segment.contents.items():
            if not content.layers or not relation.arity or content.stored < 2:
                continue
            with parquet_file(max(content.plus, key=lambda file: file.rows).path) as file:
                batch = next(file.iter_batches(1000))
            rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            pair = rows[len(rows) // 3], rows[-1]
            key = (relation, pair[0][1] if relation.typed else None)
            if key in seen or (relation.typed and pair[0][1] != pair[1][1]):
                continue
            terms = decoder.decode(key for row in pair for key in row)
            first, second = (Fact(relation.name, tuple(terms[key] for key in row)) for row in pair)
            seen[key] = first, second
    yield from islice(seen.values(), _KINDS)


def _state(kb: KnowledgeBase) -> SparkState:
    if not isinstance(kb.state, SparkState):
        raise TypeError(kb.state)
    return kb.state


def _cost(kb: KnowledgeBase, call: Callable[[], _Result]) -> tuple[Callable[[str, str], Cost], _Result]:
    engine = kb._engine  # noqa: SLF001 - its jobs are what is counted
    if not isinstance(engine, SparkEngine):
        raise TypeError(engine)
    before = engine.jobs.count()
    with rows_read() as read:
        done = timed(call)
    jobs = engine.jobs.count() - before

    def cost(workload: str, what: str) -> Cost:
        return Cost(workload, what, jobs, read.rows, done.run.seconds, done.run.cpu_seconds)

    return cost, done.result
