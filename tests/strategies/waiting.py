"""Waiting for another thread, without hanging for ever where it never comes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A machine that other work keeps busy is no reason to fail.
SECONDS = 120.0


def until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Return when a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.0005)
