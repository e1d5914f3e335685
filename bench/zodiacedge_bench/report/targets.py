"""Targets, and verdicts on whether figures reach them.

A speed target is a factor: the time of a peer divided by ours, for the same workload in the same run. A
change is compared with evaluating the program after it from scratch, in the same run too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.embedded import NO_MODULES, ON_ONE_CORE, OURS
from zodiacedge_bench.measure.tables import NTRIPLES
from zodiacedge_bench.peers.reference import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge_bench.changes.experiment import ChangeFigure
    from zodiacedge_bench.measure.embedded import Memory
    from zodiacedge_bench.measure.harness import Measurement
    from zodiacedge_bench.measure.latency import Latencies
    from zodiacedge_bench.measure.tables import TableFigure
    from zodiacedge_bench.report.report import Figure

SCRATCH = "from scratch"
_MOST_TIMES = 1.1
_MOST_MORE = 0.005
# The processor time of a change, and for each fact that a segment gains or loses; how many times as much a
# change may take that is the first of its kind.
_LEAST_COST = 0.001
_COST_PER_FACT = 0.5e-6
_FIRST_TIMES = 3
_LEAF = "r18"
# A leaf rule may take this share of the time from scratch, or these seconds if that is more.
_LEAF_IN = (1 / 50, 0.005)
_LEAF_OUT = (1 / 500, 0.001)
# The speed of tables and answers per row, as a share of that of N-Triples.
_TABLE_SPEED = 0.5
# Percentiles in seconds of processor time, of a fact with few consequences, and of a rule among thousands.
_FACT = {50: 0.001, 99: 0.005}
_RULE = {50: 0.005, 99: 0.01}
# The processor time of the first change after loading, in medians of later changes.
_FIRST_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Unit:
    """The format of numbers of a kind, and whether more is better."""

    wanted: str
    shown: str
    more_is_better: bool = False


TIMES = Unit("at least {:g}x", "{:,.1f}x", more_is_better=True)
SHARE = Unit("at least {:g} of N-Triples", "{:.2f}", more_is_better=True)
BYTES_PER_ROW = Unit("at most {:g} bytes per row", "{:.1f}")
BYTES_PER_TERM = Unit("under {:g} bytes per term", "{:.1f}")
SECONDS = Unit("at most {:.4f} s", "{:.4f} s")
MILLISECONDS = Unit("at most {:,.4g} ms", "{:.2f} ms")


@dataclass(frozen=True, slots=True)
class Target:
    """A number to reach: a factor over a peer, or a limit of bytes or seconds."""

    text: str
    """A description of the comparison."""
    workload: str
    engine: str
    limit: float
    unit: Unit
    peer: str = ""
    cpu: bool = False
    """Whether processor time is compared, not wall time."""

    @property
    def wanted(self) -> str:
        """The limit as text."""
        return self.unit.wanted.format(self.limit)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and the measured number."""

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
        """The number as text."""
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


def against(peer: str, engine: str, limits: dict[str, float], *, cpu: bool = False) -> tuple[Target, ...]:
    """Return a target of speed over a peer for each workload."""
    by = " by CPU" if cpu else ""
    return tuple(
        Target(f"{workload}: {engine} against {peer}{by}", workload, engine, limit, TIMES, peer, cpu)
        for workload, limit in limits.items()
    )


_CLOSURES = ("closure-dense", "closure-sparse")
_GENERAL = ("same-generation", "points-to")
_LUBM = ("lubm-1", "lubm-10")
_DUCKDB, _SOUFFLE = "duckdb", "souffle"
_NOT_LUBM = ("rs1 n=400", "rs2 n=200", "rs3 n=200", *_CLOSURES, *_GENERAL)
SPEED = (
    *against("clingo", OURS, {"rs1 n=400": 300, "rs2 n=200": 20, "rs3 n=200": 20}),
    *against("nemo", OURS, {"rs2 n=200": 70}),
    *against("clingo", NO_MODULES, {"rs1 n=400": 15, "rs2 n=200": 6, "rs3 n=200": 6}),
    *against("clingo", OURS, dict.fromkeys(_CLOSURES, 50)),
    *against("nemo", OURS, dict.fromkeys(_CLOSURES, 50)),
    *against("duckdb", OURS, dict.fromkeys(_CLOSURES, 5)),
    *against("clingo", NO_MODULES, dict.fromkeys(_CLOSURES, 10)),
    *against("clingo", OURS, dict.fromkeys(_GENERAL, 10)),
    *against("nemo", OURS, dict.fromkeys(_GENERAL, 10)),
    *against("duckdb", OURS, dict.fromkeys(_GENERAL, 1)),
    *against("clingo", OURS, dict.fromkeys(_LUBM, 5)),
    *against("souffle", OURS, dict.fromkeys(_NOT_LUBM, 5), cpu=True),
    *against("souffle", NO_MODULES, dict.fromkeys(_NOT_LUBM, 3), cpu=True),
    *against("souffle", OURS, dict.fromkeys(_LUBM, 2), cpu=True),
)
# What no argument is handed down in, so that two threads need rounds; without modules, which do not use them.
CORES = tuple(
    Target(
        f"{workload}: {NO_MODULES}, two cores against one",
        workload,
        NO_MODULES,
        limit=1,
        unit=TIMES,
        peer=ON_ONE_CORE[NO_MODULES],
    )
    for workload in _GENERAL
)
MEMORY = tuple(
    Target(f"{workload}: memory", workload, OURS, 40, BYTES_PER_ROW)
    for workload in ("rs2 n=200", "lubm-1", "lubm-10")
)
DICTIONARY = (Target("lubm-10: dictionary", "lubm-10", OURS, 45, BYTES_PER_TERM),)


def speed_verdicts(
    figures: Iterable[Figure], targets: Iterable[Target] = (*SPEED, *CORES)
) -> tuple[Verdict, ...]:
    """Return a verdict for each target with both of its figures.

    Where Soufflé is not among them, its processor time is estimated by DuckDB's.
    """
    done = {(figure.workload, figure.engine): figure.measurement for figure in figures}
    verdicts: list[Verdict] = []
    for target in targets:
        ours = done.get((target.workload, target.engine))
        peer = done.get((target.workload, target.peer))
        beside = done.get((target.workload, _DUCKDB))
        if ours and peer:
            verdicts.append(Verdict(target, _factor(peer, ours, cpu=target.cpu)))
        elif ours and beside and target.peer == _SOUFFLE and target.workload in REFERENCES:
            estimated = REFERENCES[target.workload].seconds(beside.cpu_seconds)
            text = f"{target.text}, estimated"
            verdicts.append(Verdict(replace(target, text=text), estimated / ours.cpu_seconds))
    return tuple(verdicts)


def _factor(peer: Measurement, ours: Measurement, *, cpu: bool) -> float:
    return peer.cpu_seconds / ours.cpu_seconds if cpu else peer.best.seconds / ours.best.seconds


def memory_verdicts(sizes: Iterable[Memory]) -> tuple[Verdict, ...]:
    """Return a verdict for each workload that has a target: bytes per row, and bytes per term."""
    measured = {size.workload: size for size in sizes}
    return (
        *(Verdict(t, measured[t.workload].bytes_per_row) for t in MEMORY if t.workload in measured),
        *(Verdict(t, measured[t.workload].bytes_per_term) for t in DICTIONARY if t.workload in measured),
    )


def limit_seconds(figure: ChangeFigure) -> float:
    """Return the seconds that a change may take: little more than its result takes from scratch."""
    scratch = figure.scratch.best.seconds
    return max(_MOST_TIMES * scratch, scratch + _MOST_MORE)


def cost_limit(figure: ChangeFigure) -> float:
    """Return the processor time that a change may take by the facts that it changes, in seconds."""
    by_facts = _LEAST_COST + _COST_PER_FACT * figure.moved
    times = _FIRST_TIMES if figure.first else 1
    return min(times * by_facts, _MOST_TIMES * figure.scratch.best.cpu_seconds)


def change_verdicts(figures: Iterable[ChangeFigure]) -> tuple[Verdict, ...]:
    """Return a verdict for each experiment, on its worst change, and for the leaf rule."""
    every = list(figures)
    verdicts: list[Verdict] = []
    for experiment in dict.fromkeys(figure.experiment for figure in every):
        own = [figure for figure in every if figure.experiment == experiment]
        worst = max(own, key=lambda figure: figure.seconds / limit_seconds(figure))
        missed = sum(figure.seconds > limit_seconds(figure) for figure in own)
        text = f"{experiment}: {missed} of {len(own)} miss, worst is {worst.change} on {worst.workload}"
        verdicts.append(_seconds(text, worst, limit_seconds(worst)))
        verdicts.append(_cost_verdict(experiment, own))
    for figure in every:
        if (figure.experiment, figure.change) == ("insertion", f"{_LEAF} in"):
            verdicts.append(_seconds(f"leaf rule: {figure.change}", figure, _leaf_limit(figure, *_LEAF_IN)))
        if (figure.experiment, figure.change) == ("deletion", f"{_LEAF} out"):
            verdicts.append(_seconds(f"leaf rule: {figure.change}", figure, _leaf_limit(figure, *_LEAF_OUT)))
    return tuple(verdicts)


def _cost_verdict(experiment: str, figures: list[ChangeFigure]) -> Verdict:
    """Return the verdict on the change that costs most beside what the facts that it changes may cost."""
    worst = max(figures, key=lambda figure: figure.cpu_seconds / cost_limit(figure))
    missed = sum(figure.cpu_seconds > cost_limit(figure) for figure in figures)
    text = f"{experiment}, CPU by facts moved: {missed} of {len(figures)} miss, worst is {worst.change}"
    limit = 1e3 * cost_limit(worst)
    target = Target(f"{text} on {worst.workload}", worst.workload, worst.engine, limit, MILLISECONDS)
    return Verdict(target, 1e3 * worst.cpu_seconds)


def _seconds(text: str, figure: ChangeFigure, limit: float) -> Verdict:
    return Verdict(Target(text, figure.workload, figure.engine, limit, SECONDS, SCRATCH), figure.seconds)


def _leaf_limit(figure: ChangeFigure, share: float, seconds: float) -> float:
    return max(share * figure.scratch.best.seconds, seconds)


def latency_verdicts(latencies: Iterable[Latencies]) -> tuple[Verdict, ...]:
    """Return two verdicts for each kind of change, and one for the very first change after loading.

    They judge processor time: the 99th percentile of wall times tells how busy the machine is.
    """
    every = list(latencies)
    later = {(kind.workload, kind.change): kind for kind in every if not kind.first}
    first = tuple(
        Verdict(
            Target(f"{kind.workload}: {kind.opening}", kind.workload, OURS, limit, MILLISECONDS),
            1e3 * kind.runs[0].cpu_seconds,
        )
        for kind in every
        if kind.first
        for limit in [_FIRST_FACTOR * 1e3 * later[kind.workload, kind.kind].cpu_percentile(50)]
    )
    return first + tuple(
        Verdict(
            Target(
                f"{kind.workload}: {kind.change}, p{percent}", kind.workload, OURS, 1e3 * limit, MILLISECONDS
            ),
            1e3 * kind.cpu_percentile(percent),
        )
        for kind in every
        if not kind.first
        for percent, limit in (_FACT if kind.change.startswith("fact") else _RULE).items()
    )


def table_verdicts(figures: Iterable[TableFigure]) -> tuple[Verdict, ...]:
    """Return a verdict for each way in or out, beside N-Triples."""
    return tuple(
        Verdict(
            Target(f"{figure.way}: rows per second", "tables", OURS, _TABLE_SPEED, SHARE, NTRIPLES),
            figure.speed,
        )
        for figure in figures
        if figure.way != NTRIPLES
    )
