"""Figures on Spark as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge_bench.report.tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge_bench.measure.harness import Run
    from zodiacedge_bench.spark.events import Profile
    from zodiacedge_bench.spark.growth import Size
    from zodiacedge_bench.spark.leaf import LeafFigure
    from zodiacedge_bench.spark.measured import SparkFigure

    Profiles = Sequence[tuple[str, str, Profile]]
    """Of what, by whom, and where its time went."""

_MEGABYTE = 1e6
_MOST_PURPOSES = 4


def settings_table(by_loop: Mapping[str, Mapping[str, str]]) -> TextTable:
    """Return settings of Spark, a column for each loop."""
    names = dict.fromkeys(name for one in by_loop.values() for name in one)
    rows = tuple((name, *(one.get(name, "") for one in by_loop.values())) for name in names)
    return TextTable(("setting", *by_loop), rows)


def time_table(figures: Iterable[SparkFigure], ratios: Mapping[tuple[str, str], Run]) -> TextTable:
    """Return how long each engine takes; the ratios are its times divided by ours on Spark."""
    rows = tuple(
        (
            one.workload,
            one.engine,
            f"{one.measurement.derived:,}",
            f"{one.seconds:.3f}",
            f"{one.measurement.best.cpu_seconds:.3f}",
            f"{one.first:.3f}",
            str(len(one.measurement.runs)),
            f"{ratios[one.workload, one.engine].cpu_seconds:,.2f}",
            f"{ratios[one.workload, one.engine].seconds:,.2f}",
            one.how,
        )
        for one in figures
    )
    columns = ("workload", "engine", "derived", "seconds", "CPU s", "first run s", "runs", "CPU ratio")
    return TextTable((*columns, "ratio", "nodes"), rows)


def leaf_table(figures: Iterable[LeafFigure], jobs: Mapping[str, int]) -> TextTable:
    """Return changes beside materialising again."""
    rows = tuple(
        (
            one.workload,
            one.change,
            f"{one.grown:+,}",
            str(one.nodes),
            str(jobs.get(one.change, "")),
            f"{one.best.seconds:.3f}",
            f"{one.best.cpu_seconds:.3f}",
            f"{one.again.best.seconds:.3f}",
            f"{one.again.best.cpu_seconds:.3f}",
            f"{one.factor:,.1f}",
        )
        for one in figures
    )
    columns = ("workload", "change", "facts", "nodes", "jobs", "seconds", "CPU s", "again s", "its CPU s")
    return TextTable((*columns, "factor"), rows)


def growth_table(sizes: Sequence[Size]) -> TextTable:
    """Return times on growing data; what stands behind a time is how many times the first one it is."""
    rows = []
    for one in sizes:
        first = sizes[0]
        rows.append(
            (
                f"x{one.factor}",
                one.workload,
                f"{one.facts:,}",
                f"{one.measurement.derived:,}",
                _grown(one.load.seconds, first.load.seconds),
                _grown(one.seconds, first.seconds),
                _grown(one.measurement.best.cpu_seconds, first.measurement.best.cpu_seconds),
                _grown(one.embedded_load, first.embedded_load),
                _grown(one.embedded, first.embedded),
                one.how,
            )
        )
    columns = ("data", "workload", "facts", "derived", "load s", "seconds", "CPU s", "embedded load s")
    return TextTable((*columns, "embedded s", "nodes"), tuple(rows))


def profile_table(profiles: Profiles) -> TextTable:
    """Return where time went: seconds of wall time, then seconds of tasks over all cores."""
    rows = tuple(
        (
            what,
            who,
            f"{one.seconds:.2f}",
            f"{one.driver:.2f}",
            f"{one.run:.2f}",
            f"{one.cpu:.2f}",
            f"{one.collecting:.2f}",
            f"{one.waiting:.2f}",
            f"{one.around:.2f}",
            f"{one.jobs:,}",
            f"{one.stages:,}",
            f"{one.tasks:,}",
            f"{one.shuffled / _MEGABYTE:,.1f}",
            f"{one.spilled / _MEGABYTE:,.1f}",
        )
        for what, who, one in profiles
    )
    times = ("seconds", "no task runs", "in tasks", "at work in Java", "garbage", "Python or waiting")
    counts = ("jobs", "stages", "tasks", "MB moved", "MB spilled")
    return TextTable(("where time goes", "engine", *times, "around tasks", *counts), rows)


def purpose_table(profiles: Profiles) -> TextTable:
    """Return what our own jobs were for."""
    rows = []
    for what, who, one in profiles:
        named = [(why, count) for why, count in one.purposes.items() if why]
        most = ", ".join(f"{count:,} {why}" for why, count in named[:_MOST_PURPOSES])
        others = sum(count for _, count in named[_MOST_PURPOSES:])
        rows.append((what, who, most + (f", {others:,} for something else" if others else "")))
    return TextTable(("jobs of", "engine", "how many for what"), tuple(rows))


def _grown(seconds: float, first: float) -> str:
    return f"{seconds:.2f} x{seconds / first:.1f}"
