"""Bringing the table up to the log: at once, or beside the work in a thread, while changes go on.

The log stays bounded: whoever makes it long again while the thread is still at work waits for it.
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
    """Folds: at once, or beside the work in a thread, of which there is at most one."""

    def __init__(self) -> None:
        """Start with none."""
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether it is at work."""
        return self._thread is not None and self._thread.is_alive()

    def flush(self, store: DurableStore, take_hold: Callable[[], PendingFlush | None]) -> None:
        """Fold, and be done when this returns; `take_hold` says what the table lacks by then."""
        self.wait()
        folding = take_hold()
        # Where others write, too, they may fold meanwhile.
        while folding and not store.flush(folding):
            folding = take_hold()

    def flush_in_background(self, store: DurableStore, take_hold: Callable[[], PendingFlush | None]) -> None:
        """Fold while changes go on; wait first if the log became long again before the last time was done."""
        if self.busy and not store.is_too_long:
            return
        self.wait()
        # The log has all of it: if the table cannot be written now, closing tells.
        with suppress(StoreProblem):
            folding = take_hold()
            if folding and folding.captured:
                self._start(store, folding)
            elif folding:
                store.flush(folding)

    def _start(self, store: DurableStore, folding: PendingFlush) -> None:
        def work() -> None:
            # As above.
            with suppress(StoreProblem):
                store.flush(folding)

        self._thread = threading.Thread(target=work, name="zodiac-fold")
        self._thread.start()

    def wait(self) -> None:
        """Wait until it is done. It needs the turn in the engine, so nobody may wait who has it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
