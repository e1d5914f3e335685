"""The budget of an explanation: rule instances and seconds. It ends a search, and never an answer.

When the search for least heights ends, as much again may be spent on proofs of any height.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zodiacedge.errors import Diagnostic, UsageProblem

INSTANCES = 200_000
SECONDS = 10.0


@dataclass(slots=True)
class Budget:
    """What an explanation may spend, and what it has spent."""

    instances: int = INSTANCES
    """The most rule instances to look at."""
    seconds: float = SECONDS
    spent: int = 0
    ended: bool = False
    cut: bool = False
    """Whether some lookup had more rows than were looked at, without an end of the budget."""
    _deadline: float = 0.0

    def __post_init__(self) -> None:
        """Start the clock; refuse a budget that allows nothing."""
        for value, kind in ((self.instances, int), (self.seconds, int | float)):
            if not isinstance(value, kind) or isinstance(value, bool):
                note = "write the instances as an int, and the seconds as a number: Budget(seconds=60)"
                raise UsageProblem(Diagnostic("U013", f"expected a number, found {value!r}", note))
        if self.instances < 1 or not self.seconds > 0:
            raise UsageProblem(
                Diagnostic(
                    "X001",
                    "the budget of an explanation allows nothing",
                    "give at least one instance, and more than 0 seconds",
                )
            )
        self._deadline = time.monotonic() + self.seconds

    def spend(self, instances: int) -> None:
        """Count rule instances that were looked at."""
        self.spent += instances
        self.look()

    def look(self) -> bool:
        """Return whether the budget has ended."""
        if self.spent >= self.instances or time.monotonic() > self._deadline:
            self.ended = True
        return self.ended

    @property
    def left(self) -> int:
        """The instances that may still be looked at, at least 1."""
        return max(self.instances - self.spent, 1)
