"""What we want to reach on Spark, and whether the figures reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge_bench.report.targets import TIMES, Target, Unit, Verdict
from zodiacedge_bench.spark.loops import NAIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zodiacedge_bench.report.report import Figure
    from zodiacedge_bench.spark.growth import Size
    from zodiacedge_bench.spark.leaf import LeafFigure

SPARK = "zodiac on Spark"
AGAIN = "materialising again"
GROWTH = Unit("at most {:g}x", "{:,.1f}x")
_CLOSURE = "closure-dense"
_LOOP_TIMES = 40
_LEAF_TIMES = 5
_MOST_GROWTH = 10


def loop_verdicts(figures: Iterable[Figure]) -> tuple[Verdict, ...]:
    """Return how we stand to the loop that most people write."""
    seconds = {(figure.workload, figure.engine): figure.seconds for figure in figures}
    ours, loop = seconds.get((_CLOSURE, SPARK)), seconds.get((_CLOSURE, NAIVE))
    if ours is None or loop is None:
        return ()
    target = Target(f"{_CLOSURE}: {SPARK} against the {NAIVE}", _CLOSURE, SPARK, _LOOP_TIMES, TIMES, NAIVE)
    return (Verdict(target, loop / ours),)


def leaf_verdicts(figures: Iterable[LeafFigure]) -> tuple[Verdict, ...]:
    """Return how changes of leaf rules stand to materialising again."""
    return tuple(
        Verdict(
            Target(
                f"{one.workload}: {one.change} against {AGAIN}",
                one.workload,
                SPARK,
                _LEAF_TIMES,
                TIMES,
                AGAIN,
            ),
            one.factor,
        )
        for one in figures
    )


def growth_verdicts(sizes: Sequence[Size]) -> tuple[Verdict, ...]:
    """Return how much longer the largest data takes than the smallest, on Spark and embedded."""
    if len(sizes) < 2:
        return ()
    first, last = sizes[0], sizes[-1]
    found = {
        f"loading, {SPARK}": last.load.seconds / first.load.seconds,
        f"materialising, {SPARK}": last.seconds / first.seconds,
        "materialising, embedded": last.embedded / first.embedded,
    }
    return tuple(
        Verdict(
            Target(
                f"{last.workload} after {first.workload}: {what}", last.workload, SPARK, _MOST_GROWTH, GROWTH
            ),
            times,
        )
        for what, times in found.items()
    )
