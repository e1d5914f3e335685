"""Tables, JSON and verdicts of a soak and of a footprint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.life.windows import OURS
from zodiacedge_bench.report.tables import TextTable, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zodiacedge_bench.life.footprint import Footprint, Installed
    from zodiacedge_bench.life.idle_agent import IdleAgent
    from zodiacedge_bench.life.soak import Size, Tenth
    from zodiacedge_bench.life.windows import WindowFigure
    from zodiacedge_bench.measure.costs import Cost
    from zodiacedge_bench.measure.machine import Machine

# How much more the last tenth may hold than the first.
FLAT = 1.1
MOST_TICK = 1e-3
# The readings of a second must take no longer than a second of one core.
MOST_STREAM = 1.0
MOST_INSTALLED = 350e6
MOST_RESIDENT = 120e6
_LEAST_SHOWN = 100_000
_MIB = 2**20
_FLAT_FIGURES = (
    "resident_bytes",
    "open_files",
    "disk_bytes",
    "disk_files",
    "terms",
    "dictionary_bytes",
    "p50_seconds",
    "p99_seconds",
    "p50_cpu_seconds",
    "p99_cpu_seconds",
    "cpu_seconds",
)


@dataclass(frozen=True, slots=True)
class SoakReport:
    """The tenths of a soak."""

    machine: Machine
    size: Size
    tenths: tuple[Tenth, ...]
    bench: str = "soak"
    not_installed: tuple[str, ...] = ()

    def growth(self) -> dict[str, float]:
        """Return, for each figure, the last tenth as a multiple of the first."""
        first, last = self.tenths[0].to_dict(), self.tenths[-1].to_dict()
        return {name: _quotient(last[name], first[name]) for name in _FLAT_FIGURES}

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        size = asdict(self.size) | {"kept": self.size.kept.total_seconds()}
        return {
            "bench": self.bench,
            "machine": self.machine.to_dict(),
            "size": size,
            "tenths": [tenth.to_dict() for tenth in self.tenths],
            "growth": self.growth(),
        }

    def tables(self) -> list[TextTable]:
        """Return the tenths, and how much each figure grew."""
        columns = "readings, MiB, handles, disk MiB, files, terms, dictionary MiB"
        columns += ", p50 ms, p99 ms, p50 CPU ms, p99 CPU ms, CPU s, s, checks"
        rows = [
            (
                f"{tenth.readings:,}",
                f"{tenth.resident_bytes / _MIB:.1f}",
                f"{tenth.open_files:.1f}",
                f"{tenth.disk_bytes / _MIB:.1f}",
                f"{tenth.disk_files:.0f}",
                f"{tenth.terms:,.0f}",
                f"{tenth.dictionary_bytes / _MIB:.2f}",
                f"{1e3 * tenth.p50_seconds:.2f}",
                f"{1e3 * tenth.p99_seconds:.2f}",
                f"{1e3 * tenth.p50_cpu_seconds:.2f}",
                f"{1e3 * tenth.p99_cpu_seconds:.2f}",
                f"{tenth.cpu_seconds:.1f}",
                f"{tenth.seconds:.0f}",
                str(tenth.checks),
            )
            for tenth in self.tenths
        ]
        growth = tuple(
            (name.replace("_", " "), f"{times:.2f}", "flat" if times <= FLAT else "grown")
            for name, times in self.growth().items()
        )
        return [
            TextTable(tuple(columns.split(", ")), tuple(rows)),
            TextTable(("figure", "last tenth / first", "verdict"), growth),
        ]

    def draw(self, _folder: Path) -> list[Path]:
        """Draw nothing."""
        return []


@dataclass(frozen=True, slots=True)
class WindowsReport:
    """The times of ticks."""

    machine: Machine
    figures: tuple[WindowFigure, ...]
    costs: tuple[Cost, ...] = ()
    bench: str = "windows"
    not_installed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "bench": self.bench,
            "machine": self.machine.to_dict(),
            "figures": [figure.to_dict() for figure in self.figures],
            "costs": [cost.to_dict() for cost in self.costs],
        }

    def tables(self) -> list[TextTable]:
        """Return the times of ticks, and the targets."""
        columns = ("workload", "system", "rows", "due", "ticks", "p50 ms", "p99 ms", "CPU ms, p50", "mean")
        rows = tuple(
            (
                one.workload,
                one.system,
                f"{one.rows:,}",
                f"{one.due:,}",
                str(one.ticks),
                f"{1e3 * one.p50_seconds:.2f}",
                f"{1e3 * one.p99_seconds:.2f}",
                f"{1e3 * one.p50_cpu_seconds:.2f}",
                f"{1e3 * one.cpu_seconds:.2f}",
            )
            for one in self.figures
        )
        tables = (
            TextTable(columns, rows),
            read_table(self.costs),
            TextTable(("target, by processor time, p50", "ms", "verdict"), tuple(self._verdicts())),
        )
        return [table for table in tables if table.rows]

    def _verdicts(self) -> Iterator[tuple[str, str, str]]:
        for one in self.figures:
            if one.system == OURS:
                most = MOST_TICK if one.due == 1 else MOST_STREAM
                spent = one.p50_cpu_seconds
                met = "met" if spent <= most else "missed"
                yield f"{one.workload}: at most {1e3 * most:.0f} ms", f"{1e3 * spent:.2f}", met

    def draw(self, _folder: Path) -> list[Path]:
        """Draw nothing."""
        return []


@dataclass(frozen=True, slots=True)
class EdgeReport:
    """The costs of a device."""

    machine: Machine
    footprints: tuple[Footprint, ...]
    installed: tuple[Installed, ...]
    agent: IdleAgent
    bench: str = "edge"
    not_installed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "bench": self.bench,
            "machine": self.machine.to_dict(),
            "footprints": [footprint.to_dict() for footprint in self.footprints],
            "installed": [installed.to_dict() for installed in self.installed],
            "agent": self.agent.to_dict(),
        }

    def tables(self) -> list[TextTable]:
        """Return the processes, the installations, and the targets."""
        processes = tuple(
            (
                one.program,
                f"{one.python_bytes / 1e6:.0f}",
                f"{one.opened_bytes / 1e6:.0f}",
                f"{one.answered_bytes / 1e6:.0f}",
                f"{one.seconds:.2f}",
                f"{one.answers:,}",
            )
            for one in self.footprints
        )
        sizes = tuple(
            (
                f"+ [{one.extra}]" if one.extra else "zodiacedge",
                f"{one.bytes / 1e6:.0f}",
                ", ".join(f"{name} {size / 1e6:.0f}" for name, size in one.largest),
            )
            for one in self.installed
        )
        return [
            TextTable(("process", "Python MB", "opened MB", "answered MB", "s to answer", "rows"), processes),
            TextTable(("memory of an idle agent", "MB"), tuple(self._parts())),
            TextTable(("installation", "MB", "the largest"), sizes),
            TextTable(("target", "MB", "verdict"), tuple(self._verdicts())),
        ]

    def _parts(self) -> Iterator[tuple[str, str]]:
        yield "resident", f"{self.agent.resident_bytes / 1e6:.1f}"
        yield "its own (anonymous)", f"{self.agent.anonymous_bytes / 1e6:.1f}"
        for name, size in self.agent.libraries:
            if size >= _LEAST_SHOWN:
                yield f"pages of files: {name}", f"{size / 1e6:.1f}"

    def _verdicts(self) -> Iterator[tuple[str, str, str]]:
        (alone,) = [one.bytes for one in self.installed if not one.extra]
        yield _verdict("installed, the package alone", alone, MOST_INSTALLED)
        for one in self.footprints:
            if one.program in {"empty program", "empty store"}:
                yield _verdict(f"resident, {one.program}", one.opened_bytes, MOST_RESIDENT)
        yield _verdict("resident, idle agent", self.agent.resident_bytes, MOST_RESIDENT)

    def draw(self, _folder: Path) -> list[Path]:
        """Draw nothing."""
        return []


def _verdict(target: str, found: int, most: float) -> tuple[str, str, str]:
    met = "met" if found <= most else "missed"
    return f"{target}: at most {most / 1e6:.0f}", f"{found / 1e6:.0f}", met


def _quotient(last: object, first: object) -> float:
    if not isinstance(last, int | float) or not isinstance(first, int | float):
        raise TypeError(last, first)
    return last / first if first else float(bool(last)) + 1
