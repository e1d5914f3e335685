"""A writer that is killed at any moment: what was acknowledged is there, and nothing half done is."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.writer import state_of

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITER = Path(__file__).with_name("writer.py")


class Nursery:
    """Starts writers, and kills them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(WRITER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def run_and_kill(self, store: Path, seed: int, after: float) -> dict[int, str]:
        """Let a writer work for so many seconds from its opening on; return what it acknowledged.

        That is the state of each version, as a digest.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{store} {seed}\n")
        self._process.stdin.flush()
        # Who it is and that it is open come in any order.
        told = dict(self._line().split() for _ in range(2))
        assert told.keys() == {"writer", "open"}
        time.sleep(after)
        os.kill(int(told["writer"]), signal.SIGKILL)
        found: dict[int, str] = {}
        while (line := self._line()) != "gone\n":
            _, number, state = line.split()
            found[int(number)] = state
        return found

    def close(self) -> None:
        """End."""
        with self._process:
            self._process.kill()


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    found = Nursery()
    yield found
    found.close()


def check(store: Path, acknowledged: dict[int, str], before: int) -> int:
    """Check a store that was left behind; return its version."""
    with ze.open(store, read_only=True) as kb:
        last = max(acknowledged, default=before)
        # The one change under way may have reached the disk before anybody could say so.
        assert kb.version in {last, last + 1}
        marks = sorted(int(str(number)) for (number,) in kb.query("ans(N) :- mark(N, _) ."))
        assert marks == list(range(1, kb.version + 1))
        assert [entry.version for entry in kb.log()] == marks
        assert kb.verify(against="reference").ok
        if acknowledged:
            told = kb if kb.version == last else kb.at(last)
            assert state_of(told) == acknowledged[last]
        return kb.version


def kill_often(nursery: Nursery, store: Path, runs: int, seed: int) -> None:
    chance = random.Random(seed)
    version = 0
    for run in range(runs):
        acknowledged = nursery.run_and_kill(store, seed * 1000 + run, chance.uniform(0, 0.4))
        assert list(acknowledged) == list(range(version + 1, version + 1 + len(acknowledged)))
        version = check(store, acknowledged, version)
    with ze.open(store) as kb:
        assert kb.version == version
        for earlier in chance.sample(range(version + 1), min(5, version + 1)):
            assert kb.at(earlier).verify().ok


@pytest.mark.slow
def test_a_writer_killed_ten_times_loses_nothing(place: Path, nursery: Nursery) -> None:
    kill_often(nursery, place, 10, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
def test_a_writer_killed_two_hundred_times_loses_nothing(place: Path, nursery: Nursery, seed: int) -> None:
    kill_often(nursery, place, 10, seed)
