"""Measures trials in a Spark session, with the window of each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.harness import Expected, Measurement, fewest, measure
from zodiacedge_bench.report.report import Figure
from zodiacedge_bench.spark.clock import TimedTrial, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge_bench.measure.harness import Trial

# A longer trial runs once, unless the number of runs is prescribed.
LONG = 120.0


@dataclass(frozen=True, slots=True)
class SparkFigure(Figure):
    """The times of an engine, the windows of its runs, and the strategies of the nodes."""

    windows: tuple[Window, ...] = ()
    how: str = ""

    @property
    def first(self) -> float:
        """The wall time of the first run, in which workers start and import modules."""
        return self.measurement.runs[0].seconds

    @property
    def window(self) -> Window | None:
        """The window of the best run; None where it was not on Spark."""
        if not self.windows:
            return None
        return self.windows[self.measurement.runs.index(self.measurement.best)]

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return Figure.to_dict(self) | {"first_seconds": self.first, "how": self.how}


def measure_on_spark(
    name: str, fresh: Callable[[], Trial], expected: Expected, runs: int | None
) -> tuple[Measurement, tuple[Window, ...]]:
    """Run a trial several times, a very long trial once."""
    windows: list[Window] = []

    def trial() -> TimedTrial:
        return TimedTrial(fresh(), windows)

    measurement = measure(name, trial, expected, 1)
    more = (runs or (1 if measurement.best.seconds > LONG else fewest(measurement.runs))) - 1
    if more:
        again = measure(name, trial, Expected(measurement.counts), more)
        measurement = Measurement((*measurement.runs, *again.runs), measurement.counts)
    return measurement, tuple(windows)
