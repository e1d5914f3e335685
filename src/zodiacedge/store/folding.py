"""Bringing the table up to the log beside the work: a thread writes what was captured while changes go on.

The log stays bounded: whoever makes it long again while the thread is still at work waits for it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.errors import StoreProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge.engine.parts import PartKey
    from zodiacedge.store.snapshot import Snapshot
    from zodiacedge.store.table import Renewed


@dataclass(frozen=True, slots=True)
class Folding:
    """What the table lacks of a version, taken hold of."""

    snapshot: Snapshot
    signatures: Mapping[PartKey, object]
    parts: Iterator[Renewed]
    """Those that are gone, and those that changed."""
    beside: int
    """Bytes of facts beside the log that go into it."""
    captured: bool
    """Whether the state may change while they are written."""
    whole: bool
    """Whether these are all parts that there are."""


class FoldingThread:
    """At most one thread that folds."""

    def __init__(self) -> None:
        """Start with none."""
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether it is at work."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, fold: Callable[[Folding], object], folding: Folding) -> None:
        """Fold beside the work; who starts it must not have left another one at work."""

        def work() -> None:
            # The log has all of it: if the table cannot be written now, closing tells.
            with suppress(StoreProblem):
                fold(folding)

        self._thread = threading.Thread(target=work, name="zodiac-fold")
        self._thread.start()

    def wait(self) -> None:
        """Wait until it is done. It needs the turn in the engine, so nobody may wait who has it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
