"""Text tables of the figures on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge_bench.report.tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge_bench.measure.harness import Run
    from zodiacedge_bench.spark.events import Profile
    from zodiacedge_bench.spark.growth import GrowthFigure
    from zodiacedge_bench.spark.leaf import LeafFigure
    from zodiacedge_bench.spark.measured import SparkFigure

    Profiles = Sequence[tuple[str, str, Profile]]
    """Name, engine and profile of each run."""

_MEGABYTE = 1e6
_MOST_PURPOSES = 4


def settings_table(by_loop: Mapping[str, Mapping[str, str]]) -> TextTable:
    """Return settings of Spark, a column for each loop."""
    names = dict.fromkeys(name for settings in by_loop.values() for name in settings)
    rows = tuple((name, *(settings.get(name, "") for settings in by_loop.values())) for name in names)
    return TextTable(("setting", *by_loop), rows)


def time_table(figures: Iterable[SparkFigure], ratios: Mapping[tuple[str, str], Run]) -> TextTable:
    """Return the times of each engine, and their ratios to those of the engine `spark`."""
    rows = tuple(
        (
            figure.workload,
            figure.engine,
            f"{figure.measurement.derived:,}",
            f"{figure.seconds:.3f}",
            f"{figure.measurement.best.cpu_seconds:.3f}",
            f"{figure.first:.3f}",
            str(len(figure.measurement.runs)),
            f"{ratios[figure.workload, figure.engine].cpu_seconds:,.2f}",
            f"{ratios[figure.workload, figure.engine].seconds:,.2f}",
            figure.how,
        )
        for figure in figures
    )
    columns = ("workload", "engine", "derived", "seconds", "CPU s", "first run s", "runs", "CPU ratio")
    return TextTable((*columns, "ratio", "nodes"), rows)


def leaf_table(figures: Iterable[LeafFigure], jobs: Mapping[str, int]) -> TextTable:
    """Return changes beside materialising again."""
    rows = tuple(
        (
            figure.workload,
            figure.change,
            f"{figure.grown:+,}",
            str(figure.nodes),
            str(jobs.get(figure.change, "")),
            f"{figure.best.seconds:.3f}",
            f"{figure.best.cpu_seconds:.3f}",
            f"{figure.again.best.seconds:.3f}",
            f"{figure.again.best.cpu_seconds:.3f}",
            f"{figure.factor:,.1f}",
        )
        for figure in figures
    )
    columns = ("workload", "change", "facts", "nodes", "jobs", "seconds", "CPU s", "again s", "its CPU s")
    return TextTable((*columns, "factor"), rows)


def growth_table(sizes: Sequence[GrowthFigure]) -> TextTable:
    """Return times on growing data, each with its ratio to the time of the smallest size."""
    rows = []
    for size in sizes:
        first = sizes[0]
        rows.append(
            (
                f"x{size.factor}",
                size.workload,
                f"{size.facts:,}",
                f"{size.measurement.derived:,}",
                _grown(size.load.seconds, first.load.seconds),
                _grown(size.seconds, first.seconds),
                _grown(size.measurement.best.cpu_seconds, first.measurement.best.cpu_seconds),
                _grown(size.embedded_load, first.embedded_load),
                _grown(size.embedded, first.embedded),
                size.how,
            )
        )
    columns = ("data", "workload", "facts", "derived", "load s", "seconds", "CPU s", "embedded load s")
    return TextTable((*columns, "embedded s", "nodes"), tuple(rows))


def profile_table(profiles: Profiles) -> TextTable:
    """Return profiles: seconds of wall time, then seconds of tasks over all cores."""
    rows = tuple(
        (
            name,
            engine,
            f"{profile.seconds:.2f}",
            f"{profile.driver:.2f}",
            f"{profile.run:.2f}",
            f"{profile.cpu:.2f}",
            f"{profile.collecting:.2f}",
            f"{profile.waiting:.2f}",
            f"{profile.around:.2f}",
            f"{profile.jobs:,}",
            f"{profile.stages:,}",
            f"{profile.tasks:,}",
            f"{profile.shuffled / _MEGABYTE:,.1f}",
            f"{profile.spilled / _MEGABYTE:,.1f}",
        )
        for name, engine, profile in profiles
    )
    times = ("seconds", "no task runs", "in tasks", "at work in Java", "garbage", "Python or waiting")
    counts = ("jobs", "stages", "tasks", "MB moved", "MB spilled")
    return TextTable(("where time goes", "engine", *times, "around tasks", *counts), rows)


def purpose_table(profiles: Profiles) -> TextTable:
    """Return the numbers of our jobs by description."""
    rows = []
    for name, engine, profile in profiles:
        named = [(purpose, count) for purpose, count in profile.purposes.items() if purpose]
        most = ", ".join(f"{count:,} {purpose}" for purpose, count in named[:_MOST_PURPOSES])
        rest = sum(count for _, count in named[_MOST_PURPOSES:])
        rows.append((name, engine, most + (f", {rest:,} for something else" if rest else "")))
    return TextTable(("jobs of", "engine", "how many for what"), tuple(rows))


def _grown(seconds: float, first: float) -> str:
    return f"{seconds:.2f} x{seconds / first:.1f}"
