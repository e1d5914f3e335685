"""Yield points: where a long computation in the engine lets waiting threads in, and goes on behind them.

One thread at a time works in an engine. The knowledge base's lock decides which thread is next.
"""

from __future__ import annotations

from typing import Protocol


class YieldPoint(Protocol):
    """Lets threads in that wait for the engine."""

    @property
    def wanted(self) -> bool:
        """Whether a thread waits."""

    def yield_to_waiters(self) -> None:
        """Let all waiting threads in first; return at once if none waits."""


class _Alone:
    @property
    def wanted(self) -> bool:
        return False

    def yield_to_waiters(self) -> None:
        pass


ALONE: YieldPoint = _Alone()
