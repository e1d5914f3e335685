"""Figures as pictures, PNG and SVG, where matplotlib is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from zodiacedge_bench.report.tables import worth_showing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from zodiacedge_bench.changes.changes import ChangeFigure
    from zodiacedge_bench.measure.embedded import Memory
    from zodiacedge_bench.measure.latency import Latencies
    from zodiacedge_bench.measure.machine import Machine
    from zodiacedge_bench.report.report import Figure, Report

FORMATS = ("png", "svg")
_SCRATCH = "from scratch"


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def plot(report: Report, folder: Path) -> list[Path]:
    """Draw what a report holds, a picture for each of its parts, and return the files."""
    written: list[Path] = []
    if report.figures:
        written += saved(times(report.bench, report.machine, report.figures), folder / report.bench)
    if len(report.memory) > 1:
        written += saved(_memory(report.memory), folder / f"{report.bench}-memory")
    if report.latencies:
        written += saved(_latencies(report.latencies), folder / report.bench)
    for experiment in dict.fromkeys(one.experiment for one in report.changes):
        own = [one for one in report.changes if one.experiment == experiment]
        drawn = _curve(own) if own[0].axis else _bars(own)
        written += saved(drawn, folder / f"{report.bench}-{experiment}")
    return written


def times(bench: str, machine: Machine, figures: Sequence[Figure]) -> Any:  # noqa: ANN401 - matplotlib is imported by name
    """Draw how long each engine takes for each workload."""
    figure, axes = empty(f"zodiac bench {bench}: {machine.processor}, {machine.cores} cores")
    workloads = list(dict.fromkeys(one.workload for one in figures))
    engines = list(dict.fromkeys(one.engine for one in figures))
    width = 0.8 / max(len(engines), 1)
    for number, engine in enumerate(engines):
        own = [one for one in figures if one.engine == engine]
        places = [workloads.index(one.workload) + (number + 0.5) * width - 0.4 for one in own]
        axes.bar(places, [one.seconds for one in own], width, label=engine)
    axes.set_xticks(range(len(workloads)), workloads, rotation=20, ha="right")
    axes.set_yscale("log")
    axes.set_ylabel("seconds, best run")
    published = [(workloads.index(one.workload), one.published) for one in figures if one.published]
    if published:
        axes.scatter(
            *zip(*published, strict=True), color="black", marker="_", s=400, label="the paper's prototype"
        )
    return figure


def _bars(changes: Sequence[ChangeFigure]) -> Any:  # noqa: ANN401 - as above
    figure, axes = empty(f"{changes[0].experiment}: changes and the same from scratch")
    changes = worth_showing(changes)
    several = len({one.workload for one in changes}) > 1
    names = [f"{one.workload}: {one.change}" if several else one.change for one in changes]
    places = range(len(changes))
    axes.bar([at - 0.2 for at in places], [one.seconds for one in changes], 0.4, label="change")
    scratch = [one.scratch.best.seconds for one in changes]
    axes.bar([at + 0.2 for at in places], scratch, 0.4, label=_SCRATCH)
    published = [(at, one.published.seconds) for at, one in enumerate(changes) if one.published.seconds]
    if published:
        axes.scatter(
            *zip(*published, strict=True), color="black", marker="_", s=200, label="the paper's change"
        )
    axes.set_xticks(places, names, rotation=60, ha="right", fontsize="small")
    axes.set_yscale("log")
    axes.set_ylabel("seconds, best run")
    return figure


def _curve(changes: Sequence[ChangeFigure]) -> Any:  # noqa: ANN401 - as above
    figure, axes = empty(f"{changes[0].experiment}: changes and the same from scratch, on growing data")
    for change in dict.fromkeys(one.change for one in changes):
        own = [one for one in changes if one.change == change]
        axes.plot([one.at for one in own], [one.seconds for one in own], marker="o", label=change)
    places = sorted({one.at for one in changes})
    scratch = [max(one.scratch.best.seconds for one in changes if one.at == at) for at in places]
    axes.plot(places, scratch, color="black", linestyle="--", marker="s", label=_SCRATCH)
    axes.set_xticks(places, [f"{at:g}" for at in places])
    axes.set_xlabel(changes[0].axis)
    axes.set_yscale("log")
    axes.set_ylabel("seconds, best run")
    return figure


def _memory(sizes: Sequence[Memory]) -> Any:  # noqa: ANN401 - as above
    figure, axes = empty("memory of facts and of their indexes")
    parts = {
        "explicit facts": [one.explicit_row_bytes for one in sizes],
        "their indexes": [one.explicit_index_bytes for one in sizes],
        "segments": [one.segment_row_bytes for one in sizes],
        "their indexes, row-sets complete": [one.complete_index_bytes for one in sizes],
    }
    below = [0] * len(sizes)
    for label, heights in parts.items():
        axes.bar(range(len(sizes)), heights, 0.6, bottom=below, label=label)
        below = [low + high for low, high in zip(below, heights, strict=True)]
    axes.set_xticks(range(len(sizes)), [one.workload for one in sizes], rotation=20, ha="right")
    axes.set_ylabel("bytes")
    return figure


def _latencies(latencies: Sequence[Latencies]) -> Any:  # noqa: ANN401 - as above
    figure, axes = empty("how many changes take at most how long")
    for one in latencies:
        ordered = sorted(1e3 * run.seconds for run in one.runs)
        shares = [100 * (number + 1) / len(ordered) for number in range(len(ordered))]
        axes.step(ordered, shares, where="post", label=f"{one.workload}: {one.change}")
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.set_ylabel("percent of the changes")
    return figure


def empty(title: str) -> tuple[Any, Any]:
    """Return a picture with nothing in it, and its axes."""
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    axes.grid(axis="y", alpha=0.3)
    return figure, axes


def saved(figure: Any, path: Path) -> list[Path]:  # noqa: ANN401 - as above
    """Write a picture in all formats, and return the files."""
    figure.legend(loc="outside right upper")
    written = [path.with_name(f"{path.name}.{form}") for form in FORMATS]
    for form, file in zip(FORMATS, written, strict=True):
        figure.savefig(file, format=form)
    return written
