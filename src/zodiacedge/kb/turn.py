"""The turn: who works in the engine of a knowledge base.

One thread has it at a time, and those who wait get it in the order they came. Who works long passes it on
now and then and queues up behind those who waited, so a reader waits for a slice of a change, not for all of
it.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class FairLock:
    """A lock: fair, re-entrant, and one that its holder can pass on."""

    def __init__(self) -> None:
        """Start with nobody's turn."""
        self._lock = threading.Lock()
        self._holder = 0
        self._depth = 0
        # Whoever waits, and what wakes them: the holder releases it.
        self._queue: deque[tuple[int, threading.Lock]] = deque()

    @property
    def mine(self) -> bool:
        """Whether this thread has the turn."""
        return self._holder == threading.get_ident()

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return bool(self._queue)

    def __enter__(self) -> Self:
        """Take the turn, when it comes."""
        me = threading.get_ident()
        if self._holder == me:
            self._depth += 1
            return self
        with self._lock:
            if not self._holder:
                self._holder, self._depth = me, 1
                return self
            place = self._queue_up(me)
        try:
            place[1].acquire()
        except BaseException:
            self._leave(place)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the turn to who waits longest, unless the holder took it more than once."""
        self._depth -= 1
        if not self._depth:
            with self._lock:
                self._hand_over()

    def yield_to_waiters(self) -> None:
        """Let all who wait have their turn first; they are those who came before this call."""
        if not self._queue:
            return
        me, depth = threading.get_ident(), self._depth
        with self._lock:
            _, wake = self._queue_up(me)
            self._hand_over()
        interruption: BaseException | None = None
        # Whoever took the turn will give it back, so an interruption waits until it is ours again.
        while self._holder != me:
            try:
                wake.acquire()
            except BaseException as problem:  # noqa: BLE001 - it is raised below
                interruption = problem
        self._depth = depth
        if interruption:
            raise interruption

    def _queue_up(self, me: int) -> tuple[int, threading.Lock]:
        place = (me, threading.Lock())
        place[1].acquire()
        self._queue.append(place)
        return place

    def _hand_over(self) -> None:
        if self._queue:
            self._holder, wake = self._queue.popleft()
            self._depth = 1
            wake.release()
        else:
            self._holder = self._depth = 0

    def _leave(self, place: tuple[int, threading.Lock]) -> None:
        with self._lock:
            if place in self._queue:
                self._queue.remove(place)
            else:
                self._hand_over()
