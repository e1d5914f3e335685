"""A new run beside the committed results.

Machines differ, so seconds are not compared: each of our times is divided by that of a peer in the same run,
and the quotient by that of the committed run. Changes are divided by the peer's evaluation of the same
rule set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.evaluation.markdown import milliseconds
from zodiacedge_bench.measure.embedded import NO_MODULES, OURS
from zodiacedge_bench.report.tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from zodiacedge_bench.evaluation.baseline import Document
    from zodiacedge_bench.measure.machine import Machine
    from zodiacedge_bench.report.report import Report

PEER = "duckdb"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A time of ours and the peer's in the same run, and their quotient in the committed results."""

    name: str
    cpu_seconds: float
    peer_cpu_seconds: float
    committed: float
    """Our time divided by the peer's, in the committed results."""

    @property
    def slower(self) -> float:
        """How many times the committed quotient the new one is: above 1 is slower."""
        return self.cpu_seconds / self.peer_cpu_seconds / self.committed

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table."""
        return (
            self.name,
            milliseconds(self.cpu_seconds),
            milliseconds(self.peer_cpu_seconds),
            f"{self.cpu_seconds / self.peer_cpu_seconds:.4f}",
            f"{self.committed:.4f}",
            f"{self.slower:.2f}",
        )


COLUMNS = ("workload", "ours, CPU ms", f"{PEER}, CPU ms", "quotient", "committed", "times")


@dataclass(frozen=True, slots=True)
class ComparedReport:
    """A report with its comparison as its only table."""

    report: Report
    comparisons: tuple[Comparison, ...]

    @property
    def bench(self) -> str:
        """The name of the benchmark."""
        return self.report.bench

    @property
    def machine(self) -> Machine:
        """The machine of the new run."""
        return self.report.machine

    @property
    def not_installed(self) -> tuple[str, ...]:
        """The peers that are missing."""
        return self.report.not_installed

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        compared = [{"name": c.name, "committed": c.committed, "times": c.slower} for c in self.comparisons]
        return self.report.to_dict() | {"comparisons": compared}

    def tables(self) -> list[TextTable]:
        """Return the comparison, or what was measured if nothing is committed."""
        if not self.comparisons:
            return list(self.report.tables())
        mean = ("geometric mean", "", "", "", "", f"{geometric_mean(self.comparisons):.2f}")
        return [TextTable(COLUMNS, (*(comparison.cells() for comparison in self.comparisons), mean))]

    def draw(self, _folder: Path) -> list[Path]:
        """Draw nothing."""
        return []


def compare(new: Document, committed: Document) -> tuple[Comparison, ...]:
    """Return what both runs measured, the slowest in proportion first."""
    now, before = dict(_quotients(new)), dict(_quotients(committed))
    comparisons = (
        Comparison(name, ours, peer, before[name][0] / before[name][1])
        for name, (ours, peer) in now.items()
        if name in before
    )
    return tuple(sorted(comparisons, key=lambda comparison: -comparison.slower))


def geometric_mean(comparisons: Sequence[Comparison]) -> float:
    """Return the mean of the factors."""
    return math.exp(sum(math.log(comparison.slower) for comparison in comparisons) / len(comparisons))


def _quotients(result: Document) -> Iterator[tuple[str, tuple[float, float]]]:
    seconds = {(f["workload"], f["engine"]): f["cpu_seconds"] for f in result["figures"]}
    for (workload, engine), own in seconds.items():
        if engine in (OURS, NO_MODULES) and (workload, PEER) in seconds:
            yield f"{workload}, {engine}", (own, seconds[workload, PEER])
    for change in result["changes"]:
        peer = seconds.get((change["workload"], PEER))
        if peer is not None:
            yield f"{change['workload']}, {change['change']}", (change["cpu_seconds"], peer)
