"""How long a change has worked, and when to give up a node: by the time of the thread, not of the wall.

The thread's own time is what a busy machine does not stretch, but some systems take microseconds to tell it.
It is never more than the wall's, which costs next to nothing. So the wall's is asked first, and the thread's
only when that is up.
"""

from __future__ import annotations

import math
import time


class Clock:
    """The time of one change; the deadline is that of the node at hand."""

    __slots__ = ("_started", "_thread_started", "deadline")

    def __init__(self) -> None:
        """Start, with no deadline."""
        self._started = time.perf_counter()
        self._thread_started = time.thread_time()
        self.deadline = math.inf
        """Seconds since the start that the thread may have worked; what came before may count for more."""

    def at_most(self) -> float:
        """Return how many seconds the change has worked at most."""
        return time.perf_counter() - self._started

    def worked(self) -> float:
        """Return how many seconds the change has worked."""
        return time.thread_time() - self._thread_started

    @property
    def is_set(self) -> bool:
        """Whether there is a deadline."""
        return self.deadline < math.inf

    def left(self) -> float:
        """Return how many seconds are left to the deadline, at least."""
        if not self.is_set:
            return math.inf
        left = self.deadline - self.at_most()
        return left if left > 0 else self.deadline - self.worked()

    def is_up(self) -> bool:
        """Whether the deadline is past."""
        return self.is_set and self.left() < 0
