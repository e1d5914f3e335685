"""Measured plans: the rows and seconds of a run beside the estimates. Running is left to engines."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.plan.algebra import AggregateRows, Match, Step

if TYPE_CHECKING:
    from zodiacedge.plan.algebra import Plan

_MUCH = 10


class StepCount(NamedTuple):
    """The rows after a step, and the seconds of a run from the first step up to this one."""

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """A plan that ran on the facts of a state: its counts, and the distinct heads."""

    plan: Plan
    steps: tuple[StepCount, ...]
    inner: tuple[StepCount, ...]
    """Counts of the aggregate's body."""
    facts: int
    seconds: float
    """The time of the whole plan, heads and aggregate included."""

    @property
    def rows(self) -> int:
        """The rows after the last step: how often a head was derived."""
        return self.steps[-1].rows if self.steps else 1

    @property
    def estimate(self) -> float | None:
        """The rows that the estimates of all steps come to; None if a match has none."""
        if any(isinstance(step, Match) and step.estimate is None for step in self.plan.steps):
            return None
        return prod(estimate for step in self.plan.steps if (estimate := estimate_of(step)) is not None)


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A step with its estimate and what happened, both for each row of the step before."""

    step: Step
    estimate: float | None
    """None for a step that has no estimate: a test, a negation, a binding, a match of an unknown size."""
    actual: float | None
    """None if no row reached the step."""
    count: StepCount

    @property
    def factor(self) -> float:
        """How far the estimate is off: 10 if ten times as many rows came, 0.1 if a tenth; 1 if unknown."""
        if self.estimate is None or self.actual is None:
            return 1.0
        # Below a row each, estimates decide nothing.
        return max(self.actual, 1.0) / max(self.estimate, 1.0)

    @property
    def is_off(self) -> bool:
        """Whether the estimate is off by an order of magnitude."""
        return not 1 / _MUCH < self.factor < _MUCH


def estimate_of(step: Step) -> float | None:
    """Return the rows that a step expects for each row before it; None if it has no estimate."""
    match step:
        case Match(once=True, estimate=float(estimate)):
            return min(estimate, 1.0)
        case Match(estimate=estimate) | AggregateRows(estimate=estimate):
            return estimate
        case _:
            return None


def measured_steps(steps: tuple[Step, ...], counts: tuple[StepCount, ...]) -> tuple[MeasuredStep, ...]:
    """Return the steps of a body with their counts."""
    measured = []
    before = 1
    for step, count in zip(steps, counts, strict=True):
        measured.append(MeasuredStep(step, estimate_of(step), count.rows / before if before else None, count))
        before = count.rows
    return tuple(measured)
