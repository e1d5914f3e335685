"""The locks of a knowledge base: changes one after the other, and one thread at a time in the engine.

`FairLock` is held by the thread that works in the engine; waiting threads get it in the order of their
arrival. A long computation yields to the waiting threads now and then and queues up behind them, so a reader
waits for a slice of a change, not for all of it. `WriterGate` lets one change at a time begin, and refuses
calls from inside the engine: from registered functions and progress callbacks.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


class FairLock:
    """A first-in, first-out, re-entrant lock whose holder can yield to the waiting threads."""

    def __init__(self) -> None:
        """Start without a holder."""
        self._lock = threading.Lock()
        self._holder = 0
        self._depth = 0
        # The waiting threads, each with a lock that the holder releases to wake it.
        self._queue: deque[tuple[int, threading.Lock]] = deque()

    @property
    def is_held_by_caller(self) -> bool:
        """Whether this thread holds the lock."""
        return self._holder == threading.get_ident()

    @property
    def wanted(self) -> bool:
        """Whether a thread waits."""
        return bool(self._queue)

    def __enter__(self) -> Self:
        """Acquire the lock."""
        me = threading.get_ident()
        if self._holder == me:
            self._depth += 1
            return self
        with self._lock:
            if not self._holder:
                self._holder, self._depth = me, 1
                return self
            waiter = self._queue_up(me)
        try:
            waiter[1].acquire()
        except BaseException:
            self._leave(waiter)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock to the thread that waits longest, once the holder has left every block."""
        self._depth -= 1
        if not self._depth:
            with self._lock:
                self._release()

    def yield_to_waiters(self) -> None:
        """Let all threads that wait by now hold the lock first, then acquire it again."""
        if not self._queue:
            return
        me, depth = threading.get_ident(), self._depth
        with self._lock:
            _, wake = self._queue_up(me)
            self._release()
        interruption: BaseException | None = None
        # The lock comes back for certain, so an interruption waits until this thread holds it again.
        while self._holder != me:
            try:
                wake.acquire()
            except BaseException as problem:  # noqa: BLE001 - it is raised below
                interruption = problem
        self._depth = depth
        if interruption:
            raise interruption

    def _queue_up(self, me: int) -> tuple[int, threading.Lock]:
        waiter = (me, threading.Lock())
        waiter[1].acquire()
        self._queue.append(waiter)
        return waiter

    def _release(self) -> None:
        if self._queue:
            self._holder, wake = self._queue.popleft()
            self._depth = 1
            wake.release()
        else:
            self._holder = self._depth = 0

    def _leave(self, waiter: tuple[int, threading.Lock]) -> None:
        with self._lock:
            if waiter in self._queue:
                self._queue.remove(waiter)
            else:
                self._release()


class WriterGate:
    """Two locks: one for changes, and within it the lock of the engine."""

    def __init__(self) -> None:
        """Start with both locks free."""
        self.engine_lock = FairLock()
        self._changing = threading.RLock()
        # The threads that are inside the engine, all but one of them waiting for its lock again.
        self._inside: set[int] = set()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Hold the lock of the engine."""
        me = threading.get_ident()
        with self.engine_lock:
            if me in self._inside:
                raise _nested()
            try:
                self._inside.add(me)
                yield
            finally:
                self._inside.discard(me)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other changes out. The engine's lock is acquired second, or two threads could deadlock."""
        if self.engine_lock.is_held_by_caller:
            raise _nested()
        with self._changing:
            yield


def _nested() -> UsageProblem:
    return UsageProblem(
        Diagnostic(
            "U011",
            "the knowledge base is at work in this thread, and must not be called from inside",
            "functions and progress callbacks ask nothing; nothing is changed within reading()",
        )
    )
