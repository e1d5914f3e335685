"""Who is let into a knowledge base: changes one after the other, and into the engine only whose turn it is.

What runs inside the engine, registered functions and progress callbacks, is not let in a second time. How
threads wait for their turn is left to `turn`.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.kb.turn import FairLock

if TYPE_CHECKING:
    from collections.abc import Iterator


class WriterGate:
    """Two locks: one for changes, and within it the turn in the engine."""

    def __init__(self) -> None:
        """Start with nobody inside."""
        self.turn = FairLock()
        self._changing = threading.RLock()
        # The threads that are inside the engine, all but one of them waiting for their turn again.
        self._inside: set[int] = set()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Work in the engine, when it is this thread's turn."""
        me = threading.get_ident()
        with self.turn:
            if me in self._inside:
                raise _nested()
            try:
                self._inside.add(me)
                yield
            finally:
                self._inside.discard(me)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other changes out. The turn comes second, or two threads could wait for each other."""
        if self.turn.mine:
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
