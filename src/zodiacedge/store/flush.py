"""Flushes the log into the table: at once, or in a background thread while changes go on.

The log stays bounded: a change that makes it long again while the thread is at work waits for the thread.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from zodiacedge.errors import StoreProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.store.store import DurableStore
    from zodiacedge.store.table.pending_flush import PendingFlush


class Flusher:
    """Flushes at once, or in at most one background thread."""

    def __init__(self) -> None:
        """Start without a thread."""
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def flush(self, store: DurableStore, capture: Callable[[], PendingFlush | None]) -> None:
        """Flush at once; `capture` returns what the table lacks by then."""
        self.wait()
        pending = capture()
        # In a shared location, another process may flush meanwhile.
        while pending and not store.flush(pending):
            pending = capture()

    def flush_in_background(self, store: DurableStore, capture: Callable[[], PendingFlush | None]) -> None:
        """Flush while changes go on; wait for the last flush first if the log became too long meanwhile."""
        if self.busy and not store.is_too_long:
            return
        self.wait()
        # The log has all of it: if the table cannot be written, closing the store raises.
        with suppress(StoreProblem):
            pending = capture()
            if pending and pending.captured:
                self._start(store, pending)
            elif pending:
                store.flush(pending)

    def _start(self, store: DurableStore, pending: PendingFlush) -> None:
        def work() -> None:
            # As above.
            with suppress(StoreProblem):
                store.flush(pending)

        self._thread = threading.Thread(target=work, name="zodiac-flush")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the thread. It needs the turn in the engine, so the caller must not have it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
