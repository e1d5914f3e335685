"""Where a piece of work can wait: it lets others work in the engine and goes on behind them.

An engine is no place for two threads at once. Work that takes long asks now and then; who is served, and in
which order, is left to whoever hands out the turns.
"""

from __future__ import annotations

from typing import Protocol


class YieldPoint(Protocol):
    """Lets those work in the engine who wait for it."""

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""

    def yield_to_waiters(self) -> None:
        """Let all work who wait, and come back behind them; at once if nobody waits."""


class _Alone:
    @property
    def wanted(self) -> bool:
        return False

    def yield_to_waiters(self) -> None:
        pass


ALONE: YieldPoint = _Alone()
