"""The report of a benchmark: its figures as tables, plots and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from zodiacedge_bench.report.plots import plot
from zodiacedge_bench.report.tables import (
    TextTable,
    change_table,
    cost_table,
    latency_table,
    memory_table,
    read_table,
    size_table,
    target_table,
    way_table,
)
from zodiacedge_bench.report.targets import cost_limit, limit_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from zodiacedge_bench.changes.experiment import ChangeFigure
    from zodiacedge_bench.measure.costs import Cost, StateSize
    from zodiacedge_bench.measure.embedded import Memory
    from zodiacedge_bench.measure.harness import Measurement
    from zodiacedge_bench.measure.latency import Latencies
    from zodiacedge_bench.measure.machine import Machine
    from zodiacedge_bench.measure.tables import TableFigure
    from zodiacedge_bench.report.targets import Verdict


@dataclass(frozen=True, slots=True)
class Figure:
    """The time of an engine for a workload."""

    workload: str
    engine: str
    measurement: Measurement
    published: float | None = None
    """Seconds of the paper's prototype."""
    left_out: tuple[str, ...] = ()
    """Predicates that the engine cannot derive, with rules left out."""

    @property
    def seconds(self) -> float:
        """The wall time of the best run."""
        return self.measurement.best.seconds

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "workload": self.workload,
            "engine": self.engine,
            "seconds": self.seconds,
            "cpu_seconds": self.measurement.cpu_seconds,
            "runs": [asdict(run) for run in self.measurement.runs],
            "derived": dict(self.measurement.counts),
            "derived_total": self.measurement.derived,
            "published_seconds": self.published,
            "left_out": list(self.left_out),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a benchmark."""

    bench: str
    machine: Machine
    figures: tuple[Figure, ...]
    memory: tuple[Memory, ...] = ()
    changes: tuple[ChangeFigure, ...] = ()
    latencies: tuple[Latencies, ...] = ()
    ways: tuple[TableFigure, ...] = ()
    costs: tuple[Cost, ...] = ()
    sizes: tuple[StateSize, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    not_installed: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "bench": self.bench,
            "machine": self.machine.to_dict(),
            "figures": [figure.to_dict() | {"ratio": self._ratio(figure)} for figure in self.figures],
            "memory": [
                asdict(memory)
                | {"bytes_per_row": memory.bytes_per_row, "bytes_per_term": memory.bytes_per_term}
                for memory in self.memory
            ],
            "changes": [
                change.to_dict()
                | {"limit_seconds": limit_seconds(change), "met": change.seconds <= limit_seconds(change)}
                | {"cost_limit_seconds": cost_limit(change)}
                for change in self.changes
            ],
            "latencies": [latency.to_dict() for latency in self.latencies],
            "ways": [way.to_dict() for way in self.ways],
            "costs": [cost.to_dict() for cost in self.costs],
            "sizes": [size.to_dict() for size in self.sizes],
            "peers": dict(self.versions) | dict.fromkeys(self.not_installed, "not installed"),
            "targets": [verdict.to_dict() for verdict in self.verdicts],
        }

    def tables(self) -> Sequence[TextTable]:
        """Return the tables that are not empty: times, changes, memory, targets."""
        tables = (
            self._times(),
            change_table(self.changes),
            cost_table(self.changes),
            latency_table(self.latencies),
            memory_table(self.memory),
            way_table(self.ways),
            read_table(self.costs),
            size_table(self.sizes),
            target_table(self.verdicts),
        )
        return [table for table in tables if table.rows]

    def draw(self, folder: Path) -> list[Path]:
        """Draw plots into a folder, and return their files."""
        return plot(self, folder)

    def _times(self) -> TextTable:
        compared = any(self._ratio(figure) is not None for figure in self.figures)
        published = compared and not self.versions
        columns = ["workload", "engine", "derived", "seconds", "CPU s", "runs"]
        columns += ["prototype s"] * published + ["CPU ratio"] * bool(self.versions) + ["ratio"] * compared
        rows = []
        for figure in self.figures:
            best = figure.measurement.best
            row = [
                figure.workload,
                figure.engine,
                f"{figure.measurement.derived:,}",
                f"{best.seconds:.4f}",
                f"{figure.measurement.cpu_seconds:.4f}",
                str(len(figure.measurement.runs)),
            ]
            if published:
                row.append(f"{figure.published:g}" if figure.published else "")
            if self.versions:
                row.append(
                    f"{figure.measurement.cpu_seconds / self._ours(figure).measurement.cpu_seconds:,.1f}"
                )
            if compared:
                ratio = self._ratio(figure)
                row.append("" if ratio is None else f"{ratio:,.1f}")
            rows.append(tuple(row))
        return TextTable(tuple(columns), tuple(rows))

    def _ratio(self, figure: Figure) -> float | None:
        # How many times our time another engine takes, or the paper's prototype.
        if self.versions:
            return figure.seconds / self._ours(figure).seconds
        return figure.published / figure.seconds if figure.published else None

    def _ours(self, figure: Figure) -> Figure:
        # Our own figures come first, the one with modules, if measured, before the other.
        return next(own for own in self.figures if own.workload == figure.workload)
