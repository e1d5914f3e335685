"""Yield points: points where a long computation of an engine lets waiting threads run.

One thread at a time runs in an engine. The knowledge base's lock selects the next one.
"""

from __future__ import annotations

from typing import Protocol


class YieldPoint(Protocol):
    """A point where threads that wait for the engine may run."""

    @property
    def wanted(self) -> bool:
        """Whether a thread is waiting."""

    def yield_to_waiters(self) -> None:
        """Let all waiting threads run; return at once if there are none."""


class _Alone:
    @property
    def wanted(self) -> bool:
        return False

    def yield_to_waiters(self) -> None:
        pass


ALONE: YieldPoint = _Alone()
