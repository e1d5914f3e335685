"""Loading and materialising LUBM once, twice, four and eight times as large.

Both engines read the same files, and must derive equally many facts of every predicate.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge_bench.measure.embedded import EmbeddedTrial, copied
from zodiacedge_bench.measure.harness import Expected, Measurement, Run, clocked, measure
from zodiacedge_bench.measure.task import lubm_task
from zodiacedge_bench.spark.clock import Window, timed
from zodiacedge_bench.spark.measured import measure_on_spark
from zodiacedge_bench.spark.trial import SparkTrial, strategies_text
from zodiacedge_bench.workloads import lubm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from zodiacedge_bench.measure.task import Task
    from zodiacedge_bench.spark.session import BenchSession

FACTORS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class GrowthFigure:
    """The times for one size of the data."""

    factor: int
    workload: str
    facts: int
    load: Run
    load_window: Window
    measurement: Measurement
    windows: tuple[Window, ...]
    how: str
    embedded_load: float
    embedded: float
    """Seconds of the embedded engine for loading, and for materialising."""

    @property
    def seconds(self) -> float:
        """The wall time of the best materialisation."""
        return self.measurement.best.seconds

    @property
    def window(self) -> Window:
        """The window of the best materialisation."""
        return self.windows[self.measurement.runs.index(self.measurement.best)]

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "factor": self.factor,
            "workload": self.workload,
            "facts": self.facts,
            "derived_total": self.measurement.derived,
            "derived": dict(self.measurement.counts),
            "load_seconds": self.load.seconds,
            "load_cpu_seconds": self.load.cpu_seconds,
            "seconds": self.seconds,
            "cpu_seconds": self.measurement.best.cpu_seconds,
            "runs": [asdict(run) for run in self.measurement.runs],
            "how": self.how,
            "embedded_load_seconds": self.embedded_load,
            "embedded_seconds": self.embedded,
        }


@dataclass(frozen=True)
class Growth:
    """Measures LUBM on growing data."""

    session: BenchSession
    runs: int | None
    progress: Callable[[str], None]
    departments: int | None = None
    """The maximum of departments per university; 1 for tests."""

    def measure(self, start: int) -> Iterator[GrowthFigure]:
        """Yield the figures for `start` universities and its multiples."""
        for factor in FACTORS:
            universities = start * factor
            folder = self.session.folder / f"lubm-{universities}"
            self.progress(f"lubm-{universities}: writing its facts")
            lubm.write(folder, universities, form="nt", departments=self.departments)
            try:
                yield self._size(factor, universities, folder)
            finally:
                shutil.rmtree(folder)

    def _size(self, factor: int, universities: int, folder: Path) -> GrowthFigure:
        # The facts come from the folder; the task has the rules and the expected counts.
        task = lubm_task(universities, departments=self.departments)
        self.progress(f"{task.name}: embedded")
        embedded = _Embedded.of(task, folder, self.runs, modules=self.session.modules)
        self.progress(f"{task.name}: Spark")
        kb = KnowledgeBase(self.session.engine(), Settings())
        load = timed(lambda: _load(kb, folder))
        base, last = kb.state, [SparkTrial(kb.state, task)]
        loaded = {predicate.name: count for predicate, count in base.explicit_counts().items()}
        Expected(total=embedded.facts).check(f"loading {task.name} on Spark", loaded)

        def fresh() -> SparkTrial:
            last[:] = [SparkTrial(base, task)]
            return last[0]

        measured, windows = measure_on_spark(
            f"Spark on {task.name}", fresh, Expected(embedded.counts), self.runs
        )
        return GrowthFigure(
            factor,
            task.name,
            embedded.facts,
            load.run,
            load.window,
            measured,
            windows,
            strategies_text(last[0].how),
            embedded.load,
            embedded.seconds,
        )


@dataclass(frozen=True, slots=True)
class _Embedded:
    """The embedded engine on the same files: its times and counts."""

    facts: int
    counts: Mapping[str, int]
    load: float
    seconds: float

    @classmethod
    def of(cls, task: Task, folder: Path, runs: int | None, *, modules: bool) -> _Embedded:
        kb = KnowledgeBase(EmbeddedEngine(), Settings())
        load, _ = clocked(lambda: _load(kb, folder))
        state = kb.state
        if not isinstance(state, EmbeddedState):
            raise TypeError(state)

        def fresh() -> EmbeddedTrial:
            return EmbeddedTrial(copied(state.store), task.rules, task.graph, modules=modules)

        measured = measure(f"the embedded engine on {task.name}", fresh, task.expected, runs)
        facts = sum(kb.explicit_counts().values())
        return cls(facts, measured.counts, load.seconds, measured.best.seconds)


def _load(kb: KnowledgeBase, folder: Path) -> None:
    with kb.change() as change:
        change.load(str(folder))
