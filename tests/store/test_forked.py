"""The lock of a writer and the processes that it starts: they neither keep it nor write in its stead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import code
from zodiacedge.store.layout import LOCK

if TYPE_CHECKING:
    from pathlib import Path

# Opens a store, forks off a process that sleeps, and is killed.
PARENT = """
import os, signal, sys, time, zodiacedge as ze
kb = ze.open(sys.argv[1])
child = os.fork()
if not child:
    time.sleep(600)
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

# Keeps what a parent had open, as a process does that was not forked off by Python.
HEIR = """
import os, signal, subprocess, sys
from pathlib import Path
from zodiacedge.store.location.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]) / "_lock")
child = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(600)"],
    pass_fds=[lock._file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def left_behind(program: str, store: Path) -> tuple[int, int]:
    """Return the parent, which is dead, and the child that it left behind."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(store)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.wait()
    return parent.pid, child


def test_a_child_of_a_killed_writer_does_not_keep_others_from_writing(farm: Path) -> None:
    _, child = left_behind(PARENT, farm)
    try:
        with ze.open(farm) as kb, kb.change() as c:
            c.add_facts("edge(x, y) .")
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_second_writer_is_told_that_the_first_is_gone(farm: Path) -> None:
    parent, child = left_behind(HEIR, farm)
    try:
        with pytest.raises(ze.ZodiacError, match=f"process {parent} on .* it is gone") as caught:
            ze.open(farm)
        assert code(caught.value) == "D003"
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_second_writer_is_not_told_so_of_one_that_lives(farm: Path) -> None:
    with ze.open(farm), pytest.raises(ze.ZodiacError, match=f"process {os.getpid()} on ") as caught:
        ze.open(farm)
    assert "gone" not in str(caught.value)


def test_a_forked_process_cannot_write_and_leaves_the_lock_to_its_parent(farm: Path) -> None:
    kb = ze.open(farm)
    before = (farm / LOCK).read_bytes()
    child = os.fork()
    if not child:
        # Whatever happens, this process must not go on with the tests.
        status = 1
        try:
            with pytest.raises(ze.ZodiacError) as caught, kb.change() as c:
                c.add_facts("edge(x, y) .")
            assert code(caught.value) == "D012"
            assert kb.query("?- edge(a, b) .")
            kb.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (farm / LOCK).read_bytes() == before
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(farm)
    assert code(caught.value) == "D003"
    with kb.change() as c:
        c.add_facts("edge(from, parent) .")
    kb.close()
    with ze.open(farm) as kb:
        assert kb.version == 4
