"""Freed memory: allocators keep it in their pools, and a process that runs for ever has to ask for it."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


# The parameter of glibc's `mallopt` for the most arenas.
_ARENA_MAX = -8


def hold_little() -> None:
    """Let this process keep little of what it frees: one arena for all threads, and no pool of Arrow's own.

    A command that runs for ever calls it first, as arenas that exist stay. It is for whole processes, so the
    library leaves it to its user. What the environment says of either holds.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        mallopt = _of_glibc("mallopt")
        if mallopt:
            mallopt(_ARENA_MAX, 1)
    if "ARROW_DEFAULT_MEMORY_POOL" in os.environ:
        return
    if "pyarrow" in sys.modules:
        pyarrow = sys.modules["pyarrow"]
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    else:
        # Arrow reads it when it is loaded, which may be never.
        os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"


def give_back() -> None:
    """Return memory that Arrow and the C library have freed to the system, as far as they can.

    Threads that come and go leave pieces of it in many arenas, which grow with each of them.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    trim = _of_glibc("malloc_trim")
    if trim:
        trim(0)


@cache
def _of_glibc(name: str) -> Callable[..., int] | None:
    """Return a function of glibc; other C libraries have none of that name."""
    if not sys.platform.startswith("linux"):
        return None
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return function
