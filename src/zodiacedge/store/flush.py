"""Flushes the log into the table: in the foreground, or in a background thread while changes go on.

The log stays bounded: a change that makes it too long while the thread runs waits for the thread.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zodiacedge.errors import StoreProblem
from zodiacedge.util.freed_memory import give_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zodiacedge.store.store import DurableStore
    from zodiacedge.store.table.pending_flush import PendingFlush


_LOGGER = logging.getLogger(__name__)


class Flusher:
    """A flusher with at most one background thread."""

    def __init__(self) -> None:
        """Start without a thread."""
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def flush(self, store: DurableStore, capture: Callable[[], PendingFlush | None]) -> None:
        """Flush in the foreground; `capture` captures the changes that the table lacks."""
        self.wait()
        pending = capture()
        # In a shared location, another process may flush meanwhile.
        while pending and not store.flush(pending):
            pending = capture()

    def flush_in_background(self, store: DurableStore, capture: Callable[[], PendingFlush | None]) -> None:
        """Flush while changes go on; wait for the last flush first if the log is too long by now."""
        if self.busy and not store.is_too_long:
            return
        self.wait()
        with _logged(store):
            pending = capture()
            if pending and pending.captured:
                self._thread = threading.Thread(target=_flush, args=(store, pending), name="zodiac-flush")
                self._thread.start()
            elif pending:
                _flush(store, pending)

    def wait(self) -> None:
        """Wait for the thread. It acquires the engine's lock, so the caller must not hold it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _flush(store: DurableStore, pending: PendingFlush) -> None:
    with _logged(store):
        store.flush(pending)
        store.forget_old_versions()
        give_back()


@contextmanager
def _logged(store: DurableStore) -> Iterator[None]:
    """Log a failed flush: no change is lost, because the log has it, and closing the store raises."""
    try:
        yield
    except StoreProblem as problem:
        _LOGGER.warning("the log of %s is not flushed: %s", store.location, problem.diagnostics[0].message)
