"""What we want to reach, and whether a report reaches it.

A speed target is a factor: how many times our time a peer takes for the same workload in the same run. A
change is held against evaluating the program after it from scratch, in the same run too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.embedded import NO_MODULES, OURS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge_bench.changes.changes import ChangeFigure
    from zodiacedge_bench.measure.embedded import Memory
    from zodiacedge_bench.measure.latency import Latencies
    from zodiacedge_bench.report.report import Figure

SCRATCH = "from scratch"
_MOST_TIMES = 1.1
_MOST_MORE = 0.005
_LEAF = "r18"
# A leaf rule may take this share of from scratch, or so many seconds where that is more.
_LEAF_IN = (1 / 50, 0.005)
_LEAF_OUT = (1 / 500, 0.001)
# Percentiles in seconds, of a fact that little follows from, and of a rule among thousands.
_FACT = {50: 0.001, 99: 0.005}
_RULE = {50: 0.005, 99: 0.01}


@dataclass(frozen=True, slots=True)
class Unit:
    """How numbers of a kind are written, and which side of the limit is the good one."""

    wanted: str
    shown: str
    more_is_better: bool = False


TIMES = Unit("at least {:g}x", "{:,.1f}x", more_is_better=True)
BYTES_PER_ROW = Unit("at most {:g} bytes per row", "{:.1f}")
SECONDS = Unit("at most {:.4f} s", "{:.4f} s")
MILLISECONDS = Unit("at most {:g} ms", "{:.2f} ms")


@dataclass(frozen=True, slots=True)
class Target:
    """A number to reach: a factor over a peer, bytes or seconds not to exceed."""

    text: str
    """What is compared."""
    workload: str
    engine: str
    limit: float
    unit: Unit
    peer: str = ""

    @property
    def wanted(self) -> str:
        """The limit, as people read it."""
        return self.unit.wanted.format(self.limit)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was measured."""

    target: Target
    measured: float

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        if self.target.unit.more_is_better:
            return self.measured >= self.target.limit
        return self.measured <= self.target.limit

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return word(met=self.met)

    @property
    def shown(self) -> str:
        """The number, as people read it."""
        return self.target.unit.shown.format(self.measured)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "target": self.target.text,
            "workload": self.target.workload,
            "engine": self.target.engine,
            "peer": self.target.peer,
            "wanted": self.target.wanted,
            "limit": self.target.limit,
            "measured": self.measured,
            "met": self.met,
        }


def word(*, met: bool) -> str:
    """Return a verdict in a word."""
    return "met" if met else "missed"


def _against(peer: str, engine: str, limits: dict[str, float]) -> tuple[Target, ...]:
    return tuple(
        Target(f"{workload}: {engine} against {peer}", workload, engine, limit, TIMES, peer)
        for workload, limit in limits.items()
    )


_CLOSURES = ("closure-dense", "closure-sparse")
_GENERAL = ("same-generation", "points-to")
SPEED = (
    *_against("clingo", OURS, {"rs1 n=400": 300, "rs2 n=200": 20, "rs3 n=200": 20}),
    *_against("nemo", OURS, {"rs2 n=200": 70}),
    *_against("clingo", NO_MODULES, {"rs1 n=400": 15, "rs2 n=200": 6, "rs3 n=200": 6}),
    *_against("clingo", OURS, dict.fromkeys(_CLOSURES, 50)),
    *_against("nemo", OURS, dict.fromkeys(_CLOSURES, 50)),
    *_against("duckdb", OURS, dict.fromkeys(_CLOSURES, 5)),
    *_against("clingo", NO_MODULES, dict.fromkeys(_CLOSURES, 10)),
    *_against("clingo", OURS, dict.fromkeys(_GENERAL, 10)),
    *_against("nemo", OURS, dict.fromkeys(_GENERAL, 10)),
    *_against("duckdb", OURS, dict.fromkeys(_GENERAL, 1)),
    *_against("clingo", OURS, {"lubm-1": 5, "lubm-10": 5}),
)
MEMORY = tuple(
    Target(f"{workload}: memory", workload, OURS, 40, BYTES_PER_ROW)
    for workload in ("rs2 n=200", "lubm-1", "lubm-10")
)


def speed_verdicts(figures: Iterable[Figure]) -> tuple[Verdict, ...]:
    """Return a verdict for each target whose two figures are there."""
    seconds = {(figure.workload, figure.engine): figure.seconds for figure in figures}
    return tuple(
        Verdict(target, seconds[peer] / seconds[ours])
        for target in SPEED
        if (ours := (target.workload, target.engine)) in seconds
        and (peer := (target.workload, target.peer)) in seconds
    )


def memory_verdicts(sizes: Iterable[Memory]) -> tuple[Verdict, ...]:
    """Return a verdict for each workload that has a target."""
    found = {one.workload: one.bytes_per_row for one in sizes}
    return tuple(Verdict(target, found[target.workload]) for target in MEMORY if target.workload in found)


def bar(figure: ChangeFigure) -> float:
    """Return the seconds that a change may take: little more than its result takes from scratch."""
    scratch = figure.scratch.best.seconds
    return max(_MOST_TIMES * scratch, scratch + _MOST_MORE)


def change_verdicts(figures: Iterable[ChangeFigure]) -> tuple[Verdict, ...]:
    """Return a verdict for each experiment, on its worst change, and for the leaf rule."""
    every = list(figures)
    found: list[Verdict] = []
    for experiment in dict.fromkeys(figure.experiment for figure in every):
        own = [figure for figure in every if figure.experiment == experiment]
        worst = max(own, key=lambda figure: figure.seconds / bar(figure))
        missed = sum(figure.seconds > bar(figure) for figure in own)
        text = f"{experiment}: {missed} of {len(own)} miss, worst is {worst.change} on {worst.workload}"
        found.append(_seconds(text, worst, bar(worst)))
    for figure in every:
        if (figure.experiment, figure.change) == ("insertion", f"{_LEAF} in"):
            found.append(_seconds(f"leaf rule: {figure.change}", figure, _leaf_limit(figure, *_LEAF_IN)))
        if (figure.experiment, figure.change) == ("deletion", f"{_LEAF} out"):
            found.append(_seconds(f"leaf rule: {figure.change}", figure, _leaf_limit(figure, *_LEAF_OUT)))
    return tuple(found)


def _seconds(text: str, figure: ChangeFigure, limit: float) -> Verdict:
    return Verdict(Target(text, figure.workload, figure.engine, limit, SECONDS, SCRATCH), figure.seconds)


def _leaf_limit(figure: ChangeFigure, share: float, seconds: float) -> float:
    return max(share * figure.scratch.best.seconds, seconds)


def latency_verdicts(latencies: Iterable[Latencies]) -> tuple[Verdict, ...]:
    """Return two verdicts for each kind of change; those right after loading have no target."""
    return tuple(
        Verdict(
            Target(
                f"{one.workload}: {one.change}, p{percent}", one.workload, OURS, 1e3 * limit, MILLISECONDS
            ),
            1e3 * one.percentile(percent),
        )
        for one in latencies
        if not one.first
        for percent, limit in (_FACT if one.change.startswith("fact") else _RULE).items()
    )
