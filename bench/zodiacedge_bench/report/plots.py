"""Draws figures as PNG and SVG, if matplotlib is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from zodiacedge_bench.report.tables import worst_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from zodiacedge_bench.changes.experiment import ChangeFigure
    from zodiacedge_bench.measure.embedded import Memory
    from zodiacedge_bench.measure.latency import Latencies
    from zodiacedge_bench.measure.machine import Machine
    from zodiacedge_bench.report.report import Figure, Report

FORMATS = ("png", "svg")
_SCRATCH = "from scratch"
_BEST_SECONDS = "seconds, best run"


def can_plot() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def plot(report: Report, folder: Path) -> list[Path]:
    """Draw a plot for each part of a report, and return the files."""
    written: list[Path] = []
    if report.figures:
        written += save(times(report.bench, report.machine, report.figures), folder / report.bench)
    if len(report.memory) > 1:
        written += save(_memory(report.memory), folder / f"{report.bench}-memory")
    if report.latencies:
        written += save(_latencies(report.latencies), folder / report.bench)
    for experiment in dict.fromkeys(change.experiment for change in report.changes):
        own = [change for change in report.changes if change.experiment == experiment]
        drawn = _curve(own) if own[0].axis else _bars(own)
        written += save(drawn, folder / f"{report.bench}-{experiment}")
    return written


def times(bench: str, machine: Machine, figures: Sequence[Figure]) -> Any:  # noqa: ANN401 - matplotlib is imported by name
    """Draw the time of each engine for each workload."""
    figure, axes = new_plot(f"zodiac bench {bench}: {machine.processor}, {machine.cores} cores")
    workloads = list(dict.fromkeys(f.workload for f in figures))
    engines = list(dict.fromkeys(f.engine for f in figures))
    width = 0.8 / max(len(engines), 1)
    for number, engine in enumerate(engines):
        own = [f for f in figures if f.engine == engine]
        positions = [workloads.index(f.workload) + (number + 0.5) * width - 0.4 for f in own]
        axes.bar(positions, [f.seconds for f in own], width, label=engine)
    axes.set_xticks(range(len(workloads)), workloads, rotation=20, ha="right")
    axes.set_yscale("log")
    axes.set_ylabel(_BEST_SECONDS)
    published = [(workloads.index(f.workload), f.published) for f in figures if f.published]
    if published:
        axes.scatter(
            *zip(*published, strict=True), color="black", marker="_", s=400, label="the paper's prototype"
        )
    return figure


def _bars(changes: Sequence[ChangeFigure]) -> Any:  # noqa: ANN401 - as above
    experiment = changes[0].experiment
    changes = worst_changes(changes)
    several = len({change.workload for change in changes}) > 1
    names = [f"{change.workload}: {change.change}" if several else change.change for change in changes]
    bars = {
        "change": [change.seconds for change in changes],
        _SCRATCH: [change.scratch.best.seconds for change in changes],
    }
    figure, axes = paired_bars(f"{experiment}: changes and the same from scratch", names, bars)
    published = [(at, change.published.seconds) for at, change in enumerate(changes)]
    published = [(at, seconds) for at, seconds in published if seconds]
    if published:
        axes.scatter(
            *zip(*published, strict=True), color="black", marker="_", s=200, label="the paper's change"
        )
    return figure


def paired_bars(title: str, names: Sequence[str], bars: Mapping[str, Sequence[float]]) -> tuple[Any, Any]:
    """Draw two bars of seconds side by side for each name; return the figure and its axes."""
    figure, axes = new_plot(title)
    positions = range(len(names))
    for (label, seconds), shift in zip(bars.items(), (-0.2, 0.2), strict=True):
        axes.bar([at + shift for at in positions], seconds, 0.4, label=label)
    axes.set_xticks(positions, names, rotation=60, ha="right", fontsize="small")
    axes.set_yscale("log")
    axes.set_ylabel(_BEST_SECONDS)
    return figure, axes


def stacked_bars(axes: Any, stacks: Mapping[str, Sequence[float]]) -> None:  # noqa: ANN401 - as above
    """Draw one stacked bar per column."""
    (columns,) = {len(heights) for heights in stacks.values()}
    below = [0.0] * columns
    for label, heights in stacks.items():
        axes.bar(range(columns), heights, 0.6, bottom=below, label=label)
        below = [low + high for low, high in zip(below, heights, strict=True)]


def _curve(changes: Sequence[ChangeFigure]) -> Any:  # noqa: ANN401 - as above
    figure, axes = new_plot(f"{changes[0].experiment}: changes and the same from scratch, on growing data")
    for change in dict.fromkeys(point.change for point in changes):
        own = [point for point in changes if point.change == change]
        axes.plot([point.at for point in own], [point.seconds for point in own], marker="o", label=change)
    positions = sorted({point.at for point in changes})
    scratch = [max(point.scratch.best.seconds for point in changes if point.at == at) for at in positions]
    axes.plot(positions, scratch, color="black", linestyle="--", marker="s", label=_SCRATCH)
    axes.set_xticks(positions, [f"{at:g}" for at in positions])
    axes.set_xlabel(changes[0].axis)
    axes.set_yscale("log")
    axes.set_ylabel(_BEST_SECONDS)
    return figure


def _memory(sizes: Sequence[Memory]) -> Any:  # noqa: ANN401 - as above
    figure, axes = new_plot("memory of facts and of their indexes")
    stacks = {
        "explicit facts": [size.explicit_row_bytes for size in sizes],
        "their indexes": [size.explicit_index_bytes for size in sizes],
        "segments": [size.segment_row_bytes for size in sizes],
        "their indexes, row-sets complete": [size.complete_index_bytes for size in sizes],
    }
    stacked_bars(axes, stacks)
    axes.set_xticks(range(len(sizes)), [size.workload for size in sizes], rotation=20, ha="right")
    axes.set_ylabel("bytes")
    return figure


def _latencies(latencies: Sequence[Latencies]) -> Any:  # noqa: ANN401 - as above
    figure, axes = new_plot("how many changes take at most how long")
    for kind in latencies:
        ordered = sorted(1e3 * run.seconds for run in kind.runs)
        shares = [100 * (number + 1) / len(ordered) for number in range(len(ordered))]
        axes.step(ordered, shares, where="post", label=f"{kind.workload}: {kind.change}")
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.set_ylabel("percent of the changes")
    return figure


def new_plot(title: str) -> tuple[Any, Any]:
    """Return an empty plot and its axes."""
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    axes.grid(axis="y", alpha=0.3)
    return figure, axes


def save(figure: Any, path: Path) -> list[Path]:  # noqa: ANN401 - as above
    """Write a plot in all formats, and return the files."""
    figure.legend(loc="outside right upper")
    written = [path.with_name(f"{path.name}.{form}") for form in FORMATS]
    for form, file in zip(FORMATS, written, strict=True):
        figure.savefig(file, format=form)
    return written
