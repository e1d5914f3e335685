"""A writer gives memory that its flushes have freed back to the system."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import zodiacedge as ze
from zodiacedge.store import flush
from zodiacedge.util.freed_memory import give_back

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_each_background_flush_gives_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(flush, "give_back", lambda: given.append(1))
    with ze.open(tmp_path / "s", create=True) as kb:
        kb.store.flush_bytes = 2000
        for number in range(60):
            with kb.change() as c:
                c.add_facts([("p", number, "x" * 100)])
        kb._flusher.wait()
        assert given


def test_giving_back_leaves_what_is_in_use() -> None:
    import pyarrow as pa  # noqa: PLC0415 - the test is of its pool

    kept = pa.array(range(100_000))
    freed = pa.array(range(1_000_000))
    del freed
    give_back()
    give_back()
    assert kept[99_999].as_py() == 99_999


def test_a_command_that_runs_for_ever_keeps_one_arena_and_no_pool_of_arrows() -> None:
    held = """
import ctypes, threading
from zodiacedge.util.freed_memory import hold_little
hold_little()
import pyarrow

def fill():
    # Far below the size that is mapped, so it comes from an arena.
    blocks.append([bytes(n % 1000 + 600) for n in range(2000)])

blocks = []
threads = [threading.Thread(target=fill) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(pyarrow.default_memory_pool().backend_name, flush=True)
getattr(ctypes.CDLL(None), "malloc_stats", lambda: None)()
"""
    kept = {"MALLOC_ARENA_MAX", "ARROW_DEFAULT_MEMORY_POOL"}
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    done = subprocess.run(
        [sys.executable, "-c", held], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "system\n"
    assert "Arena 1" not in done.stderr
