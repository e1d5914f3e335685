"""Limits on derived facts, rounds, wall time and memory, and the meter that enforces them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from zodiacedge.engine.yield_point import ALONE, YieldPoint
from zodiacedge.errors import Diagnostic, LimitReached, Span, counted

_STATM = "/proc/self/statm"
_STEPS_BETWEEN_CHECKS = 4096
# Reading the memory in use takes longer than many changes. So a short change checks it only if no change has
# checked it recently, and a longer change soon after its start.
_SECONDS_TO_FIRST_CHECK = 0.005
_SECONDS_BETWEEN_CHECKS = 0.02


def _default_memory() -> int:
    # Leave a fifth of the memory to other processes.
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5
    except (ValueError, OSError, AttributeError):
        return 8 * 2**30


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a change. The defaults protect a laptop; None is no limit."""

    facts: int | None = 50_000_000
    rounds: int | None = None
    seconds: float | None = 3600.0
    memory: int | None = field(default_factory=_default_memory)


class Meter:
    """Meter of one change or query: raises when a limit is reached.

    `rule` is the name of the current rule, empty for a query.
    """

    _last_check = 0.0

    def __init__(self, limits: Limits, yield_point: YieldPoint = ALONE) -> None:
        """Start the clock."""
        self._limits = limits
        self._yield_point = yield_point
        self._start = time.perf_counter()
        self._steps = 0
        self._next_check = _SECONDS_TO_FIRST_CHECK

    def step(self, rule: str, span: Span | None) -> None:
        """Count a step of a rule; regularly check time and memory, and let waiting threads run."""
        self._steps += 1
        if self._steps % _STEPS_BETWEEN_CHECKS == 0:
            self.look(rule, span)
            self._yield_point.yield_to_waiters()

    def look(self, rule: str, span: Span | None) -> None:
        """Compare wall time and memory with their limits."""
        limits = self._limits
        elapsed = time.perf_counter() - self._start
        if limits.seconds is not None and elapsed > limits.seconds:
            raise _reached(f"{limits.seconds:g} s", "seconds", rule, span)
        if limits.memory is not None and self._is_due(elapsed) and _resident() > limits.memory:
            raise _reached(f"{counted(limits.memory, 'byte')} of memory", "memory", rule, span)

    def _is_due(self, elapsed: float) -> bool:
        now = self._start + elapsed
        if elapsed < self._next_check and now < Meter._last_check + _SECONDS_BETWEEN_CHECKS:
            return False
        self._next_check = elapsed + _SECONDS_BETWEEN_CHECKS
        Meter._last_check = now
        return True

    def count(self, facts: int, rounds: int, rule: str, span: Span | None) -> None:
        """Compare derived facts and rounds with their limits."""
        limits = self._limits
        if limits.facts is not None and facts > limits.facts:
            raise _reached(counted(limits.facts, "derived fact"), "facts", rule, span)
        if limits.rounds is not None and rounds > limits.rounds:
            raise _reached(counted(limits.rounds, "round"), "rounds", rule, span)


def _resident() -> int:
    try:
        with open(_STATM, "rb", buffering=0) as statm:  # noqa: PTH123 - a third of the time of a Path
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _reached(quantity: str, limit: str, rule: str, span: Span | None) -> LimitReached:
    where, advice = "the query", "ask for less"
    if rule:
        where, advice = f"rule {rule}; nothing was changed", "narrow its body or load fewer facts"
        if limit in {"facts", "rounds"}:
            advice = "if it is recursive and computes values, bound them (X < 1000)"
    message = f"the limit of {quantity} was reached in {where}"
    return LimitReached(Diagnostic("E001", message, f"{advice}; or raise the limit ({limit})", span))
