"""Targets on Spark, and verdicts on whether figures reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge_bench.report.targets import TIMES, Target, Unit, Verdict, against
from zodiacedge_bench.spark.loops import NAIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zodiacedge_bench.spark.growth import GrowthFigure
    from zodiacedge_bench.spark.leaf import LeafFigure

SPARK = "zodiac on Spark"
AGAIN = "materialising again"
_IN_ROUNDS = ("same-generation in rounds", "points-to in rounds", "side-closure in rounds")
LOOPS = against(NAIVE, SPARK, {"closure-dense": 40, **dict.fromkeys(_IN_ROUNDS, 3)})
GROWTH = Unit("at most {:g}x", "{:,.1f}x")
_MOST_GROWTH = 10


def leaf_verdicts(figures: Iterable[LeafFigure]) -> tuple[Verdict, ...]:
    """Return verdicts on changes of leaf rules and facts, beside materialising again."""
    return tuple(
        Verdict(
            Target(
                f"{figure.workload}: {figure.change} against {AGAIN}",
                figure.workload,
                SPARK,
                figure.wanted,
                TIMES,
                AGAIN,
            ),
            figure.factor,
        )
        for figure in figures
    )


def growth_verdicts(sizes: Sequence[GrowthFigure]) -> tuple[Verdict, ...]:
    """Return verdicts on the growth of times from the smallest to the largest data, on Spark and embedded."""
    if len(sizes) < 2:
        return ()
    first, last = sizes[0], sizes[-1]
    ratios = {
        f"loading, {SPARK}": last.load.seconds / first.load.seconds,
        f"materialising, {SPARK}": last.seconds / first.seconds,
        "materialising, embedded": last.embedded / first.embedded,
    }
    return tuple(
        Verdict(
            Target(
                f"{last.workload} after {first.workload}: {task}", last.workload, SPARK, _MOST_GROWTH, GROWTH
            ),
            times,
        )
        for task, times in ratios.items()
    )
