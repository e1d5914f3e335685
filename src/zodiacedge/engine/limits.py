"""Limits on derived facts, rounds, wall time and memory, and the meter that watches them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from zodiacedge.engine.yield_point import ALONE, YieldPoint
from zodiacedge.errors import Diagnostic, LimitReached, Span, counted

_STATM = Path("/proc/self/statm")
_STEPS_BETWEEN_LOOKS = 4096
# Asking the system for the memory in use takes longer than many a change. So a small one looks only if it is
# a while since the last look of any, and all others soon after they began.
_SECONDS_TO_FIRST_LOOK = 0.005
_SECONDS_BETWEEN_LOOKS = 0.02


def _most_memory() -> int:
    # Leave a fifth of the machine to everything else.
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5
    except (ValueError, OSError, AttributeError):
        return 8 * 2**30


@dataclass(frozen=True, slots=True)
class Limits:
    """What a change may use up. The defaults protect a laptop; None is no limit."""

    facts: int | None = 50_000_000
    rounds: int | None = None
    seconds: float | None = 3600.0
    memory: int | None = field(default_factory=_most_memory)


class Meter:
    """Counts what one piece of work uses and ends it with an error when a limit is reached.

    The work is that of a rule, by its name, or of a query, which has none.
    """

    _last_look = 0.0

    def __init__(self, limits: Limits, turn: YieldPoint = ALONE) -> None:
        """Start the clock."""
        self._limits = limits
        self._turn = turn
        self._start = time.perf_counter()
        self._steps = 0
        self._next_look = _SECONDS_TO_FIRST_LOOK

    def step(self, rule: str, span: Span | None) -> None:
        """Count a step of a rule; now and then look at the clock and the memory, and let others work."""
        self._steps += 1
        if self._steps % _STEPS_BETWEEN_LOOKS == 0:
            self.look(rule, span)
            self._turn.yield_to_waiters()

    def look(self, rule: str, span: Span | None) -> None:
        """Compare wall time and memory with their limits."""
        limits = self._limits
        elapsed = time.perf_counter() - self._start
        if limits.seconds is not None and elapsed > limits.seconds:
            raise _reached(f"{limits.seconds:g} s", "seconds", rule, span)
        if limits.memory is not None and self._is_time(elapsed) and _resident() > limits.memory:
            raise _reached(f"{counted(limits.memory, 'byte')} of memory", "memory", rule, span)

    def _is_time(self, elapsed: float) -> bool:
        now = self._start + elapsed
        if elapsed < self._next_look and now < Meter._last_look + _SECONDS_BETWEEN_LOOKS:
            return False
        self._next_look = elapsed + _SECONDS_BETWEEN_LOOKS
        Meter._last_look = now
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
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _reached(what: str, limit: str, rule: str, span: Span | None) -> LimitReached:
    where, advice = "the query", "ask for less"
    if rule:
        where, advice = f"rule {rule}; nothing was changed", "narrow its body or load fewer facts"
        if limit in {"facts", "rounds"}:
            advice = "if it is recursive and computes values, bound them (X < 1000)"
    message = f"the limit of {what} was reached in {where}"
    return LimitReached(Diagnostic("E001", message, f"{advice}; or raise the limit ({limit})", span))
