"""What windows cost: a tick with one row due, and many readings a second through windowed rules.

Beside each figure stand two others of the same run: the knowledge base that evaluates every rule that a tick
concerns anew, and DuckDB, which is asked the same in SQL after each tick. What all three find is counted and
compared before a time is printed.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge_bench.measure.harness import WrongCountError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OURS, ANEW, DUCKDB = "zodiac", "evaluated anew", "DuckDB"
_START = datetime(2026, 1, 1, tzinfo=UTC)
# One more than these says nothing.
_SENSORS = 1000
_TICK_RULES = """
@time reading 3 .
@keep reading {0} s .
hot: hot(S, T) :- reading(S, V, T) within {0} s, V > 99.0 .
silent: silent(S) :- sensor(S), not reading(S, _, _) within {0} s .
"""
# What DuckDB is asked instead.
_TICK_QUERIES = (
    "SELECT count(*) FROM (SELECT DISTINCT s, t FROM reading WHERE t > $1 AND t <= $2 AND v > 99.0)",
    "SELECT count(*) FROM sensor WHERE s NOT IN (SELECT s FROM reading WHERE t > $1 AND t <= $2)",
)
# Four kinds of rules, each over five lengths.
_LENGTHS = (1, 2, 3, 5, 10)
_STREAM_RULES = """
median{0}: median{0}(S, M) :- AGGREGATE(reading(S, V, T) within {0} s) ON S WITH MED(V) AS M .
silent{0}: silent{0}(S) :- sensor(S), not reading(S, _, _) within {0} s .
change{0}: change{0}(S, D) :- D := L - F,
    AGGREGATE(reading(S, V, T) within {0} s) ON S WITH ARGMAX(V, T) AS L, ARGMIN(V, T) AS F .
hot{0}: hot{0}(S) :- reading(S, V, _) within {0} s, V > 99.0 .
"""
_STREAM_QUERIES = (
    "SELECT count(*) FROM (SELECT s, median(v) FROM reading WHERE t > $1 AND t <= $2 GROUP BY s)",
    "SELECT count(*) FROM sensor WHERE s NOT IN (SELECT s FROM reading WHERE t > $1 AND t <= $2)",
    (
        "SELECT count(*) FROM (SELECT s, arg_max(v, t) - arg_min(v, t) FROM reading "
        "WHERE t > $1 AND t <= $2 GROUP BY s)"
    ),
    "SELECT count(*) FROM (SELECT DISTINCT s FROM reading WHERE t > $1 AND t <= $2 AND v > 99.0)",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    windows: tuple[int, ...] = (10_000, 10_000_000)
    ticks: int = 200
    a_second: int = 100_000
    seconds: int = 20


SMALL = Size((1000,), 10, 2000, 12)


@dataclass(frozen=True, slots=True)
class WindowFigure:
    """The times of the ticks of one workload in one system."""

    workload: str
    system: str
    rows: int
    """The readings in the longest window."""
    due: int
    """The readings that enter and leave with a tick."""
    ticks: int
    p50_seconds: float
    p99_seconds: float
    p50_cpu_seconds: float
    cpu_seconds: float
    """The mean processor time of a tick."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


def windows(size: Size, progress: Callable[[str], None] = lambda _text: None) -> Iterator[WindowFigure]:
    """Measure ticks with one row due, then readings that come every second."""
    for rows in size.windows:
        progress(f"a window of {rows:,} readings")
        yield from _ticks(rows, size.ticks)
    if size.seconds:
        progress(f"{size.a_second:,} readings a second")
        yield from _stream(size.a_second, size.seconds)


def _readings(first: int, count: int, apart: timedelta) -> pa.Table:
    """Return readings from a number on, each so much later than the one before."""
    numbers = np.arange(first, first + count)
    start, step = np.datetime64(_START.replace(tzinfo=None), "us"), np.timedelta64(apart)
    draw = np.random.default_rng(first)
    return pa.table(
        {
            "s": numbers % _SENSORS,
            # Sixteen bits of value, so that values repeat as those of sensors do.
            "v": np.round(draw.normal(70, 10, count) * 256) / 256,
            "t": pa.array(start + numbers * step, pa.timestamp("us", "UTC")),
        }
    )


def _ticks(rows: int, count: int) -> Iterator[WindowFigure]:
    second = timedelta(seconds=1)
    # The last of them has come at the first moment; then one leaves with every second.
    table, begin = _readings(1, rows, second), _START + rows * second
    found: dict[str, list[tuple[int, ...]]] = {}

    def of(system: str, times: _Times) -> WindowFigure:
        return times.figure(f"a tick, one of {rows:,} due", system, rows, 1)

    for system, strategy, ticks in ((OURS, "choose", count), (ANEW, "recompute", max(count // 40, 2))):
        kb = KnowledgeBase(EmbeddedEngine(strategy=strategy), Settings())
        with kb.change() as change:
            change.add_rules(_TICK_RULES.format(rows))
            change.add_facts([("sensor", n) for n in range(_SENSORS + 1)])
            change.tick(begin)
            change.add_facts(table, "reading")
        # The first ticks assemble what later ones use.
        kb.tick(begin + second / 2)
        times, found[system] = _Times(), []
        for n in range(1, ticks + 1):
            times.measure(partial(kb.tick, begin + n * second))
            if n <= 2:
                found[system].append((len(kb.query("hot(S, T)")), len(kb.query("silent(S)"))))
        yield of(system, times)
        del kb
    asked = _Asked(table)
    times, found[DUCKDB] = _Times(), []
    for n in range(1, max(count // 40, 2) + 1):
        now = begin + n * second
        bounds = [(now - rows * second, now)]
        times.measure(partial(asked.answer, _TICK_QUERIES, bounds))
        if n <= 2:
            found[DUCKDB].append(asked.counts)
    yield of(DUCKDB, times)
    _compare(f"a window of {rows:,}", found)


def _stream(a_second: int, seconds: int) -> Iterator[WindowFigure]:
    second, longest = timedelta(seconds=1), max(_LENGTHS)
    apart = second / a_second
    batches = [_readings(1 + n * a_second, a_second, apart) for n in range(longest + seconds)]
    rules = "".join(map(_STREAM_RULES.format, _LENGTHS))
    found: dict[str, list[tuple[int, ...]]] = {}

    def of(system: str, times: _Times) -> WindowFigure:
        workload = f"{a_second:,} readings a second, {4 * len(_LENGTHS)} rules"
        return times.figure(workload, system, longest * a_second, 2 * a_second)

    for system, strategy in ((OURS, "choose"), (ANEW, "recompute")):
        kb = KnowledgeBase(EmbeddedEngine(strategy=strategy), Settings())
        with kb.change() as change:
            change.add_rules(f"@time reading 3 . @keep reading {longest} s . {rules}")
            change.add_facts([("sensor", n) for n in range(_SENSORS + 1)])
            change.tick(_START)

        def step(n: int, kb: KnowledgeBase = kb) -> None:
            with kb.change() as change:
                change.tick(_START + (n + 1) * second)
                change.add_facts(batches[n], "reading")

        times = _Times()
        last = len(batches) if system == OURS else longest + 3
        for n in range(last):
            # The window is full before the clock starts.
            if n < longest:
                step(n)
            else:
                times.measure(partial(step, n))
            if n == longest + 2:
                kinds = ("median{}(S, M)", "silent{}(S)", "change{}(S, D)", "hot{}(S)")
                queries = [kind.format(length) for length in _LENGTHS for kind in kinds]
                found[system] = [tuple(len(kb.query(query)) for query in queries)]
        yield of(system, times)
        del kb
    asked = _Asked(batches[0])
    times = _Times()
    for n in range(1, longest + 3):
        now = _START + (n + 1) * second
        bounds = [(now - length * second, now) for length in _LENGTHS]

        def ask(n: int = n, now: datetime = now, bounds: list[tuple[datetime, datetime]] = bounds) -> None:
            asked.take(batches[n], now - longest * second)
            asked.answer(_STREAM_QUERIES, bounds)

        if n < longest:
            asked.take(batches[n], now - longest * second)
        else:
            times.measure(ask)
    found[DUCKDB] = [asked.counts]
    yield of(DUCKDB, times)
    _compare("readings a second", found)


class _Asked:
    # DuckDB with the same readings, on one thread.

    def __init__(self, table: pa.Table) -> None:
        self._database: Any = import_module("duckdb").connect()
        self._database.execute("SET threads = 1; SET TimeZone = 'UTC'")
        self._database.register("came", table)
        self._database.execute("CREATE TABLE reading AS SELECT * FROM came")
        self._database.execute("CREATE TABLE sensor AS SELECT range AS s FROM range($1)", [_SENSORS + 1])
        self.counts: tuple[int, ...] = ()

    def take(self, table: pa.Table, oldest: datetime) -> None:
        self._database.register("came", table)
        self._database.execute("INSERT INTO reading SELECT * FROM came")
        self._database.execute("DELETE FROM reading WHERE t < $1", [oldest])

    def answer(self, queries: tuple[str, ...], bounds: list[tuple[datetime, datetime]]) -> None:
        counts = [
            self._database.execute(query, list(pair)).fetchall()[0][0] for pair in bounds for query in queries
        ]
        self.counts = tuple(counts)


class _Times:
    # Wall and processor seconds of ticks.

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._spent: list[float] = []

    def measure(self, step: Callable[[], object]) -> None:
        started, begun = time.perf_counter(), time.process_time()
        step()
        self._spent.append(time.process_time() - begun)
        self._seconds.append(time.perf_counter() - started)

    def figure(self, workload: str, system: str, rows: int, due: int) -> WindowFigure:
        ordered = sorted(self._seconds)
        p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
        spent = median(self._spent), fmean(self._spent)
        return WindowFigure(workload, system, rows, due, len(ordered), p50, p99, *spent)


def _compare(workload: str, found: dict[str, list[tuple[int, ...]]]) -> None:
    """Raise if the systems have found different numbers."""
    if any(counts != found[OURS] for counts in found.values()):
        raise WrongCountError(f"{workload}: {found}")
