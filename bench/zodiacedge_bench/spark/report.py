"""The report of `zodiac bench spark`: all figures, as tables and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.harness import Run
from zodiacedge_bench.report.tables import target_table
from zodiacedge_bench.report.targets import speed_verdicts
from zodiacedge_bench.spark import plots
from zodiacedge_bench.spark.events import Events
from zodiacedge_bench.spark.loops import NAIVE, TUNED
from zodiacedge_bench.spark.tables import (
    growth_table,
    leaf_table,
    profile_table,
    purpose_table,
    settings_table,
    time_table,
)
from zodiacedge_bench.spark.targets import (
    AGAIN,
    LOOPS,
    SPARK,
    growth_verdicts,
    leaf_verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from zodiacedge_bench.measure.machine import Machine
    from zodiacedge_bench.report.tables import TextTable
    from zodiacedge_bench.report.targets import Verdict
    from zodiacedge_bench.spark.clock import Window
    from zodiacedge_bench.spark.events import Profile
    from zodiacedge_bench.spark.growth import GrowthFigure
    from zodiacedge_bench.spark.leaf import LeafFigure
    from zodiacedge_bench.spark.measured import SparkFigure

# The resolution of processor time.
_TICK = 0.01


@dataclass(frozen=True)
class SparkReport:
    """The figures of the benchmark."""

    machine: Machine
    settings: Mapping[str, Mapping[str, str]]
    """Settings of Spark, by loop."""
    figures: tuple[SparkFigure, ...] = ()
    changes: tuple[LeafFigure, ...] = ()
    growth: tuple[GrowthFigure, ...] = ()
    events: Events = field(default_factory=Events)
    bench: str = "spark"
    not_installed: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The targets, and whether they were reached."""
        return (
            *speed_verdicts(self.figures, LOOPS),
            *leaf_verdicts(self.changes),
            *growth_verdicts(self.growth),
        )

    @cached_property
    def ratios(self) -> dict[tuple[str, str], Run]:
        """The times of each engine divided by those of the engine `spark`: wall and processor time."""
        best = {(figure.workload, figure.engine): figure.measurement.best for figure in self.figures}
        return {
            (workload, engine): Run(
                run.seconds / best[workload, SPARK].seconds,
                run.cpu_seconds / max(best[workload, SPARK].cpu_seconds, _TICK),
            )
            for (workload, engine), run in best.items()
        }

    @cached_property
    def profiles(self) -> tuple[tuple[str, str, Profile], ...]:
        """The profile of the best run of each workload and engine."""
        if not self.events.jobs:
            return ()
        return tuple((name, engine, self.events.within(window)) for name, engine, window in self._windows())

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "bench": self.bench,
            "machine": self.machine.to_dict(),
            "settings": {name: dict(values) for name, values in self.settings.items()},
            "figures": [
                figure.to_dict() | {"ratio": ratio.seconds, "cpu_ratio": ratio.cpu_seconds}
                for figure in self.figures
                for ratio in (self.ratios[figure.workload, figure.engine],)
            ],
            "changes": [
                figure.to_dict() | {"jobs": self._jobs.get(figure.change)} for figure in self.changes
            ],
            "growth": [size.to_dict() for size in self.growth],
            "where_time_goes": [
                {"what": name, "engine": engine} | profile.to_dict()
                for name, engine, profile in self.profiles
            ],
            "targets": [verdict.to_dict() for verdict in self.verdicts],
        }

    def tables(self) -> Sequence[TextTable]:
        """Return the tables that have rows."""
        loops = {figure.engine for figure in self.figures} & {NAIVE, TUNED}
        tables = (
            *((settings_table(self.settings),) if loops else ()),
            time_table(self.figures, self.ratios),
            leaf_table(self.changes, self._jobs),
            growth_table(self.growth),
            profile_table(self.profiles),
            purpose_table([profile for profile in self.profiles if profile[1] not in loops]),
            target_table(self.verdicts),
        )
        return [table for table in tables if table.rows]

    def draw(self, folder: Path) -> list[Path]:
        """Draw pictures into a folder, and return their files."""
        return plots.plot(self, folder)

    @property
    def _jobs(self) -> dict[str, int]:
        if not self.events.jobs:
            return {}
        return {change.change: self.events.within(change.window).jobs for change in self.changes}

    def _windows(self) -> Iterator[tuple[str, str, Window]]:
        for figure in self.figures:
            if figure.window is not None:
                yield figure.workload, figure.engine, figure.window
        for change in self.changes:
            yield f"{change.workload}: {change.change}", SPARK, change.window
        for size in self.growth:
            yield f"{size.workload}: loading", SPARK, size.load_window
            yield f"{size.workload}: {AGAIN.removesuffix(' again')}", SPARK, size.window
