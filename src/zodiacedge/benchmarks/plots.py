"""Figures as pictures, PNG and SVG, where matplotlib is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.benchmarks.report import Report

FORMATS = ("png", "svg")


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def plot(report: Report, folder: Path) -> list[Path]:
    """Draw the times of a report, a group of bars per workload, and return the files."""
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots()
    workloads = list(dict.fromkeys(one.workload for one in report.figures))
    engines = list(dict.fromkeys(one.engine for one in report.figures))
    width = 0.8 / max(len(engines), 1)
    for number, engine in enumerate(engines):
        own = [one for one in report.figures if one.engine == engine]
        places = [workloads.index(one.workload) + (number + 0.5) * width - 0.4 for one in own]
        axes.bar(places, [one.seconds for one in own], width, label=engine)
    axes.set_xticks(range(len(workloads)), workloads, rotation=20, ha="right")
    axes.set_yscale("log")
    axes.set_ylabel("seconds, best run")
    axes.set_title(f"zodiac bench {report.bench}: {report.machine.processor}, {report.machine.cores} cores")
    axes.grid(axis="y", alpha=0.3)
    published = [(workloads.index(one.workload), one.published) for one in report.figures if one.published]
    if published:
        axes.scatter(
            *zip(*published, strict=True), color="black", marker="_", s=400, label="the paper's prototype"
        )
    if engines:
        figure.legend(loc="outside right upper")
    written = []
    for form in FORMATS:
        path = folder / f"{report.bench}.{form}"
        figure.savefig(path, format=form)
        written.append(path)
    return written
