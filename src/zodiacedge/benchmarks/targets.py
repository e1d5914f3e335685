"""What we want to reach, and whether a report reaches it.

A speed target is a factor: how many times our time a peer takes for the same workload in the same run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from zodiacedge.benchmarks.report import NO_MODULES, OURS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.benchmarks.embedded import Memory
    from zodiacedge.benchmarks.report import Figure


@dataclass(frozen=True, slots=True)
class Target:
    """A number to reach: a factor over a peer, or bytes not to exceed."""

    workload: str
    engine: str
    peer: str
    limit: float

    @property
    def text(self) -> str:
        """What is compared."""
        return (
            f"{self.workload}: {self.engine} against {self.peer}" if self.peer else f"{self.workload}: memory"
        )

    @property
    def wanted(self) -> str:
        """The limit, as people read it."""
        return f"at least {self.limit:g}x" if self.peer else f"at most {self.limit:g} bytes per row"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was measured."""

    target: Target
    measured: float

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        if self.target.peer:
            return self.measured >= self.target.limit
        return self.measured <= self.target.limit

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return "met" if self.met else "missed"

    @property
    def shown(self) -> str:
        """The number, as people read it."""
        return f"{self.measured:,.1f}x" if self.target.peer else f"{self.measured:.1f}"

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self.target) | {"measured": self.measured, "met": self.met}


def _against(peer: str, engine: str, limits: dict[str, float]) -> tuple[Target, ...]:
    return tuple(Target(workload, engine, peer, limit) for workload, limit in limits.items())


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
MEMORY = tuple(Target(workload, OURS, "", 40) for workload in ("rs2 n=200", "lubm-1", "lubm-10"))


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
