"""Figures on Spark as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zodiacedge_bench.report.plots import empty, saved, times

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from zodiacedge_bench.spark.events import Profile
    from zodiacedge_bench.spark.growth import Size
    from zodiacedge_bench.spark.leaf import LeafFigure
    from zodiacedge_bench.spark.report import SparkReport


def plot(report: SparkReport, folder: Path) -> list[Path]:
    """Draw what a report holds, a picture for each of its parts, and return the files."""
    written: list[Path] = []
    if report.figures:
        written += saved(times(report.bench, report.machine, report.figures), folder / report.bench)
    if report.changes:
        written += saved(_leaves(report.changes), folder / f"{report.bench}-leaf")
    if report.growth:
        written += saved(_growth(report.growth), folder / f"{report.bench}-growth")
    if report.profiles:
        written += saved(_profiles(report.profiles), folder / f"{report.bench}-where")
    return written


def _leaves(changes: Sequence[LeafFigure]) -> Any:  # noqa: ANN401 - matplotlib is imported by name
    figure, axes = empty(f"{changes[0].workload}: a leaf rule, and materialising again on Spark")
    places = range(len(changes))
    axes.bar([at - 0.2 for at in places], [one.best.seconds for one in changes], 0.4, label="change")
    again = [one.again.best.seconds for one in changes]
    axes.bar([at + 0.2 for at in places], again, 0.4, label="materialising again")
    axes.set_xticks(places, [one.change for one in changes])
    axes.set_yscale("log")
    axes.set_ylabel("seconds, best run")
    return figure


def _growth(sizes: Sequence[Size]) -> Any:  # noqa: ANN401 - as above
    figure, axes = empty(f"growing data, from {sizes[0].workload} on")
    factors = [one.factor for one in sizes]
    curves = {
        "Spark: materialising": [one.seconds for one in sizes],
        "Spark: loading": [one.load.seconds for one in sizes],
        "embedded: materialising": [one.embedded for one in sizes],
        "embedded: loading": [one.embedded_load for one in sizes],
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
    figure, axes = empty("where time goes: shares of the driver's time and of that of tasks")
    parts = {
        "no task runs": [one.driver for _, _, one in profiles],
        "at work in Java": [one.cpu for _, _, one in profiles],
        "garbage": [one.collecting for _, _, one in profiles],
        "Python or waiting": [one.waiting for _, _, one in profiles],
        "around tasks": [one.around for _, _, one in profiles],
    }
    totals = [max(sum(column), 1e-9) for column in zip(*parts.values(), strict=True)]
    below = [0.0] * len(profiles)
    for label, seconds in parts.items():
        shares = [100 * value / total for value, total in zip(seconds, totals, strict=True)]
        axes.bar(range(len(profiles)), shares, 0.7, bottom=below, label=label)
        below = [low + high for low, high in zip(below, shares, strict=True)]
    names = [f"{what}, {who}" for what, who, _ in profiles]
    axes.set_xticks(range(len(profiles)), names, rotation=60, ha="right", fontsize="x-small")
    axes.set_ylabel("percent")
    return figure
