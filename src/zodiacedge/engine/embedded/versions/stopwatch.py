"""The processing time of a change, and the deadline of a node: in thread time, not in wall time.

Other processes do not stretch thread time, but some systems need microseconds to read it. Wall time is cheap
to read and never less than thread time, so a stopwatch reads wall time first, and thread time only when the
deadline has passed by wall time.
"""

from __future__ import annotations

import math
import time


class Stopwatch:
    """The time of one change, and the deadline of the current node."""

    __slots__ = ("_started", "_thread_started", "deadline", "looks")

    def __init__(self) -> None:
        """Start, with no deadline."""
        self._started = time.perf_counter()
        self._thread_started = time.thread_time()
        self.deadline = math.inf
        """Thread time since the start at which the current node is given up."""
        self.looks = 0
        """How often the deadline may be looked at before it counts; tests give up at any point so."""

    def at_most(self) -> float:
        """Return the wall time since the start, in seconds: an upper bound of the thread time."""
        return time.perf_counter() - self._started

    def worked(self) -> float:
        """Return the thread time since the start, in seconds."""
        return time.thread_time() - self._thread_started

    @property
    def is_set(self) -> bool:
        """Whether there is a deadline."""
        return self.deadline < math.inf

    def left(self) -> float:
        """Return a lower bound of the seconds left to the deadline."""
        if not self.is_set or self.looks:
            return math.inf
        left = self.deadline - self.at_most()
        return left if left > 0 else self.deadline - self.worked()

    def is_up(self) -> bool:
        """Whether the deadline has passed."""
        if self.looks:
            self.looks -= 1
            return False
        return self.is_set and self.left() < 0
