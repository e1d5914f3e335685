"""Freed memory: allocators keep it in their pools, and a process that runs for ever has to ask for it."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def give_back() -> None:
    """Return memory that Arrow and the C library have freed to the system, as far as they can.

    Threads that come and go leave pieces of it in many arenas, which grow with each of them.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    trim = _trim()
    if trim:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """Return the function of glibc that gives memory back; other C libraries have none."""
    if not sys.platform.startswith("linux"):
        return None
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim
