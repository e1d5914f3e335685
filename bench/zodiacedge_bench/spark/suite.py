"""`zodiac bench spark`: from options to a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge_bench.changes.paper import SMALL_TURBINES
from zodiacedge_bench.measure.embedded import EmbeddedTrial
from zodiacedge_bench.measure.harness import Expected, measure
from zodiacedge_bench.measure.machine import this_machine
from zodiacedge_bench.measure.task import PAPER_SIZES, Task, graph_tasks, lubm_task, paper_task
from zodiacedge_bench.spark.growth import Growth
from zodiacedge_bench.spark.leaf import Leaves
from zodiacedge_bench.spark.loops import (
    NAIVE,
    TUNED,
    Edges,
    NaiveLoop,
    TunedLoop,
    session_settings,
    tuned_settings,
)
from zodiacedge_bench.spark.measured import SparkFigure, measure_on_spark
from zodiacedge_bench.spark.report import SparkReport
from zodiacedge_bench.spark.rounds import Rounds
from zodiacedge_bench.spark.session import bench_session
from zodiacedge_bench.spark.targets import SPARK
from zodiacedge_bench.spark.trial import SparkTrial, strategies_text
from zodiacedge_bench.workloads import graphs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from zodiacedge_bench.measure.harness import Measurement, Trial
    from zodiacedge_bench.spark.clock import Window
    from zodiacedge_bench.spark.session import BenchSession
    from zodiacedge_bench.suites import Options

EMBEDDED = "zodiac embedded"
# The strategies for closures that are shown beside the chosen one.
_STRATEGIES = {"partitioned": f"{SPARK}, partitioned"}
_CLOSURES = ("closure-dense", "closure-sparse", "closure")


def spark(options: Options, master: str = "local[*]", universities: int = 10, start: int = 10) -> SparkReport:
    """Measure the engine `spark`, all in one session.

    Args:
        options: The options of every benchmark.
        master: The URL of the Spark master.
        universities: The size of LUBM, from scratch and for leaf rules.
        start: The smallest size of LUBM for growing data.
    """
    machine = this_machine()
    departments = 1 if options.small else None
    with bench_session(master, modules=options.modules is not False) as session:
        bench = _Bench(session, options)
        settings = {
            f"session, {NAIVE}": session_settings(session.spark),
            TUNED: tuned_settings(session.spark),
        }
        report = SparkReport(machine, settings)
        for figure in bench.figures(universities):
            report = replace(report, figures=(*report.figures, figure))
            options.save(report.to_dict())
        if options.wants("rounds"):
            for figures, changes in Rounds(session, options.runs, options.progress, options.small).measure():
                report = replace(
                    report,
                    figures=(*report.figures, *figures),
                    changes=(*report.changes, *changes),
                )
                options.save(report.to_dict())
        if options.wants("leaf"):
            task = lubm_task(1 if options.small else universities, departments=departments)
            for change in Leaves(session, task, options.runs, options.progress).measure():
                report = replace(report, changes=(*report.changes, change))
                options.save(report.to_dict())
        if options.wants("growth"):
            growth = Growth(session, options.runs, options.progress, departments)
            for size in growth.measure(1 if options.small else start):
                report = replace(report, growth=(*report.growth, size))
                options.save(report.to_dict())
        return replace(report, events=session.events())


class _Bench:
    """Measures workloads from scratch."""

    def __init__(self, session: BenchSession, options: Options) -> None:
        self._session = session
        self._options = options

    def figures(self, universities: int) -> Iterator[SparkFigure]:
        small, wants = self._options.small, self._options.wants
        for name, task in graph_tasks(small=small).items():
            if name in _CLOSURES and wants(name):
                chosen, *alternatives = self._own(task, _STRATEGIES)
                yield chosen
                yield from self._loops(name, task)
                yield from alternatives
        for number, turbines in PAPER_SIZES.items():
            if wants(f"rs{number}"):
                yield from self._own(paper_task(number, SMALL_TURBINES if small else turbines[-1]))
        if wants("lubm"):
            for count in (1,) if small else dict.fromkeys((1, universities)):
                yield from self._own(lubm_task(count, departments=1 if small else None))

    def _own(self, task: Task, strategies: Iterable[str] = ()) -> Iterator[SparkFigure]:
        """Measure our engines: on Spark, embedded, and on Spark with other strategies."""
        self._options.progress(f"{task.name}: {EMBEDDED}")
        embedded = measure(
            f"{EMBEDDED} on {task.name}",
            lambda: EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=self._session.modules),
            task.expected,
            self._options.runs,
        )
        expected = Expected(embedded.counts)
        yield self._on_spark(task, expected, SPARK)
        yield SparkFigure(task.name, EMBEDDED, embedded)
        for strategy in strategies:
            yield self._on_spark(task, expected, _STRATEGIES[strategy], strategy)

    def _on_spark(self, task: Task, expected: Expected, engine: str, strategy: str = "choose") -> SparkFigure:
        base = self._session.base(task, strategy).state
        last = SparkTrial(base, task)

        def fresh() -> SparkTrial:
            nonlocal last
            last = SparkTrial(base, task)
            return last

        measurement, windows = self._measured(task, engine, fresh, expected)
        return SparkFigure(task.name, engine, measurement, windows=windows, how=strategies_text(last.how))

    def _loops(self, name: str, task: Task) -> Iterator[SparkFigure]:
        workloads = graphs.SMALL if self._options.small else graphs.WORKLOADS
        edges = Edges.cached(self._session.spark, workloads[name]().relations["edge"])
        loops: dict[str, Callable[[], Trial]] = {
            NAIVE: lambda: NaiveLoop(edges),
            TUNED: lambda: TunedLoop(edges, self._session.cores),
        }
        for engine, fresh in loops.items():
            measurement, windows = self._measured(task, engine, fresh, task.expected)
            yield SparkFigure(task.name, engine, measurement, windows=windows)
        edges.release()

    def _measured(
        self, task: Task, engine: str, fresh: Callable[[], Trial], expected: Expected
    ) -> tuple[Measurement, tuple[Window, ...]]:
        self._options.progress(f"{task.name}: {engine}")
        return measure_on_spark(f"{engine} on {task.name}", fresh, expected, self._options.runs)
