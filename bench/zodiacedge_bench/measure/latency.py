"""Percentiles of the times of many small changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zodiacedge_bench.measure.harness import Run

PERCENTILES = (50, 95, 99)
# The first changes after loading build indexes and assemble programs that all others use.
FIRST = 100
_ENOUGH = 5 * FIRST
_AMONG_FIRST = f", first {FIRST}"


@dataclass(frozen=True, slots=True)
class Latencies:
    """The changes of one kind, in the order in which they were made."""

    workload: str
    change: str
    runs: tuple[Run, ...]
    left_out: int = 0
    """Changes that do not count, because they have too many consequences."""
    first: bool = False
    """Whether these are the first changes after loading, of which only the very first has a target."""

    def by_age(self) -> tuple[Latencies, ...]:
        """Separate the first changes from the later ones, if there are enough."""
        if len(self.runs) < _ENOUGH:
            return (self,)
        first = replace(self, change=f"{self.change}{_AMONG_FIRST}", runs=self.runs[:FIRST], first=True)
        return first, replace(self, runs=self.runs[FIRST:])

    @property
    def kind(self) -> str:
        """The change, whether these are the first or later ones."""
        return self.change.removesuffix(_AMONG_FIRST)

    @property
    def opening(self) -> str:
        """The name of the very first of these changes."""
        return f"{self.kind}, the first"

    def percentile(self, percent: int) -> float:
        """Return a percentile of the wall times."""
        return _percentile([run.seconds for run in self.runs], percent)

    def cpu_percentile(self, percent: int) -> float:
        """Return a percentile of the processor times."""
        return _percentile([run.cpu_seconds for run in self.runs], percent)

    @property
    def worst(self) -> float:
        """The longest wall time."""
        return max(run.seconds for run in self.runs)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "workload": self.workload,
            "change": self.change,
            "changes": len(self.runs),
            "left_out": self.left_out,
            **{f"p{percent}_seconds": self.percentile(percent) for percent in PERCENTILES},
            "worst_seconds": self.worst,
            **{f"p{percent}_cpu_seconds": self.cpu_percentile(percent) for percent in PERCENTILES},
            "seconds": [run.seconds for run in self.runs],
            "cpu_seconds": [run.cpu_seconds for run in self.runs],
        }


def _percentile(seconds: list[float], percent: int) -> float:
    # The nearest rank: one of the measured times.
    return sorted(seconds)[ceil(len(seconds) * percent / 100) - 1]
