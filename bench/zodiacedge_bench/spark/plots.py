"""Draws the figures of the Spark benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zodiacedge_bench.report.plots import new_plot, paired_bars, save, stacked_bars, times

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from zodiacedge_bench.spark.events import Profile
    from zodiacedge_bench.spark.growth import GrowthFigure
    from zodiacedge_bench.spark.leaf import LeafFigure
    from zodiacedge_bench.spark.report import SparkReport


def plot(report: SparkReport, folder: Path) -> list[Path]:
    """Draw a plot for each part of a report, and return the files."""
    written: list[Path] = []
    if report.figures:
        written += save(times(report.bench, report.machine, report.figures), folder / report.bench)
    if report.changes:
        written += save(_leaves(report.changes), folder / f"{report.bench}-leaf")
    if report.growth:
        written += save(_growth(report.growth), folder / f"{report.bench}-growth")
    if report.profiles:
        written += save(_profiles(report.profiles), folder / f"{report.bench}-where")
    return written


def _leaves(changes: Sequence[LeafFigure]) -> Any:  # noqa: ANN401 - matplotlib is imported by name
    bars = {
        "change": [change.best.seconds for change in changes],
        "materialising again": [change.again.best.seconds for change in changes],
    }
    title = f"{changes[0].workload}: a leaf rule, and materialising again on Spark"
    figure, _ = paired_bars(title, [change.change for change in changes], bars)
    return figure


def _growth(sizes: Sequence[GrowthFigure]) -> Any:  # noqa: ANN401 - as above
    figure, axes = new_plot(f"growing data, from {sizes[0].workload} on")
    factors = [size.factor for size in sizes]
    curves = {
        "Spark: materialising": [size.seconds for size in sizes],
        "Spark: loading": [size.load.seconds for size in sizes],
        "embedded: materialising": [size.embedded for size in sizes],
        "embedded: loading": [size.embedded_load for size in sizes],
    }
    for label, seconds in curves.items():
        axes.plot(factors, seconds, marker="o", label=label)
    in_proportion = [sizes[0].seconds * factor for factor in factors]
    axes.plot(factors, in_proportion, color="black", linestyle="--", label="in proportion to the data")
    axes.set_xscale("log", base=2)
    axes.set_xticks(factors, [f"x{factor}" for factor in factors])
    axes.set_yscale("log")
    axes.set_ylabel("seconds, best run")
    return figure


def _profiles(profiles: Sequence[tuple[str, str, Profile]]) -> Any:  # noqa: ANN401 - as above
    figure, axes = new_plot("where time goes: shares of the driver's time and of that of tasks")
    times_by_kind = {
        "no task runs": [profile.driver for _, _, profile in profiles],
        "at work in Java": [profile.cpu for _, _, profile in profiles],
        "garbage": [profile.collecting for _, _, profile in profiles],
        "Python or waiting": [profile.waiting for _, _, profile in profiles],
        "around tasks": [profile.around for _, _, profile in profiles],
    }
    totals = [max(sum(column), 1e-9) for column in zip(*times_by_kind.values(), strict=True)]
    shares = {
        label: [100 * value / total for value, total in zip(seconds, totals, strict=True)]
        for label, seconds in times_by_kind.items()
    }
    stacked_bars(axes, shares)
    names = [f"{name}, {engine}" for name, engine, _ in profiles]
    axes.set_xticks(range(len(profiles)), names, rotation=60, ha="right", fontsize="x-small")
    axes.set_ylabel("percent")
    return figure
