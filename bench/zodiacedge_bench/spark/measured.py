"""A trial measured in a session of Spark: what it took, and when each run was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.harness import Expected, Measurement, fewest, measure
from zodiacedge_bench.report.report import Figure
from zodiacedge_bench.spark.clock import TimedTrial, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge_bench.measure.harness import Trial

# What takes longer runs once, unless more runs are asked for.
LONG = 120.0


@dataclass(frozen=True, slots=True)
class SparkFigure(Figure):
    """How long something takes on Spark, when each run was, and by which ways nodes were evaluated."""

    windows: tuple[Window, ...] = ()
    how: str = ""

    @property
    def first(self) -> float:
        """The wall time of the first run, for which workers start and load what they need."""
        return self.measurement.runs[0].seconds

    @property
    def window(self) -> Window | None:
        """When the best run was; nothing where it was not on Spark."""
        if not self.windows:
            return None
        return self.windows[self.measurement.runs.index(self.measurement.best)]

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return Figure.to_dict(self) | {"first_seconds": self.first, "how": self.how}


def measure_on_spark(
    what: str, fresh: Callable[[], Trial], expected: Expected, runs: int | None
) -> tuple[Measurement, tuple[Window, ...]]:
    """Run a trial several times, a very long one once."""
    windows: list[Window] = []

    def trial() -> TimedTrial:
        return TimedTrial(fresh(), windows)

    found = measure(what, trial, expected, 1)
    more = (runs or (1 if found.best.seconds > LONG else fewest(found.runs))) - 1
    if more:
        again = measure(what, trial, Expected(found.counts), more)
        found = Measurement((*found.runs, *again.runs), found.counts)
    return found, tuple(windows)
