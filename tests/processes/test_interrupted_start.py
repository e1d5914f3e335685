"""Ctrl-C while Spark starts: no Java process is left, and no stack trace is shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strategies.waiting import until

# Java says this before anybody could ask it not to.
_JAVA = "WARNING: Using incubator modules: jdk.incubator.vector"
pytestmark = [
    pytest.mark.usefixtures("java"),
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are listed in /proc"),
]


def java_below(process: int) -> list[int]:
    """Return the Java processes that a process started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in children if is_java(int(child))]


def is_java(process: int) -> bool:
    """Whether a process runs Java, and has not ended."""
    try:
        return "java" in Path(f"/proc/{process}/exe").resolve(strict=True).name
    except OSError:
        return False


def test_an_interruption_while_java_starts_leaves_no_process_and_no_stack_trace(tmp_path: Path) -> None:
    program = tmp_path / "a.rules"
    program.write_text("p(a) . q(X) :- p(X) .")
    command = [sys.executable, "-m", "zodiacedge", "run", str(program), "--engine", "spark"]
    # A group of its own gets the signal as a whole, as from a terminal.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as running:
        # The version of Java is asked first, by a process that ends.
        until(lambda: any(b"org.apache.spark" in argument_list(pid) for pid in java_below(running.pid)))
        (java,) = java_below(running.pid)
        os.killpg(running.pid, signal.SIGINT)
        _, shown = running.communicate(timeout=300)
    assert running.returncode == 130
    assert not is_java(java)
    assert [line for line in shown.splitlines() if line != _JAVA] == ["zodiac: interrupted"]


def argument_list(process: int) -> bytes:
    """Return the arguments of a process that may have ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
