"""A writer that is killed at any moment: what was acknowledged is there, and nothing half done is."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import zodiacedge as ze

WRITER = Path(__file__).with_name("writer.py")


def run_and_kill(store: Path, seed: int, after: float) -> list[int]:
    """Let a writer work for so many seconds from its first change on; return the versions it acknowledged."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", str(WRITER), str(store), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("open")
        time.sleep(after)
        process.kill()
        rest = process.stdout.read()
    return [int(line.split()[1]) for line in rest.splitlines(keepends=True) if line.endswith("\n")]


def check(store: Path, acknowledged: list[int], before: int) -> int:
    """Check a store that was left behind; return its version."""
    with ze.open(store, read_only=True) as kb:
        last = max(acknowledged, default=before)
        # The one change under way may have reached the disk before anybody could say so.
        assert kb.version in {last, last + 1}
        marks = sorted(int(str(number)) for (number,) in kb.query("ans(N) :- mark(N, _) ."))
        assert marks == list(range(1, kb.version + 1))
        assert [entry.version for entry in kb.log()] == marks
        assert kb.verify(against="reference").ok
        return kb.version


def kill_often(store: Path, runs: int, seed: int) -> None:
    chance = random.Random(seed)
    version = 0
    for run in range(runs):
        acknowledged = run_and_kill(store, seed * 1000 + run, chance.uniform(0, 0.4))
        assert acknowledged == list(range(version + 1, version + 1 + len(acknowledged)))
        version = check(store, acknowledged, version)
    with ze.open(store) as kb:
        assert kb.version == version
        for earlier in chance.sample(range(version + 1), min(5, version + 1)):
            assert kb.at(earlier).verify().ok


@pytest.mark.slow
def test_a_writer_killed_ten_times_loses_nothing(place: Path) -> None:
    kill_often(place, 10, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
def test_a_writer_killed_two_hundred_times_loses_nothing(place: Path, seed: int) -> None:
    kill_often(place, 10, seed)
