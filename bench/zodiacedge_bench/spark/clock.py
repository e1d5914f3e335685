"""Wall time, and the processor time of this process and all its descendants.

Spark runs in a Java process and in Python workers, which are its children.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from zodiacedge_bench.measure.harness import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge_bench.measure.harness import Trial

_Result = TypeVar("_Result")
_PROCESSES = Path("/proc")
# Fields of /proc/PID/stat behind the name in parentheses: the parent, and ticks as user and as system.
_PARENT = 1
_TICKS = slice(11, 13)


@dataclass(frozen=True, slots=True)
class Window:
    """An interval in seconds since the epoch, as in Spark's event log."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timed(Generic[_Result]):
    """The times of a call, its window and its result."""

    run: Run
    window: Window
    result: _Result


def timed(call: Callable[[], _Result]) -> Timed[_Result]:
    """Call a function with the clock running."""
    before, began, start = family_seconds(), time.time(), time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    run = Run(seconds, _spent(before, family_seconds()))
    return Timed(run, Window(began, began + seconds), result)


class TimedTrial:
    """A trial whose processor time is that of all processes, and that records its windows."""

    def __init__(self, trial: Trial, windows: list[Window]) -> None:
        """Take a trial, and the list that gets a window for each run."""
        self._trial = trial
        self._windows = windows

    def evaluate(self) -> float:
        """Evaluate; return the processor time."""
        done = timed(self._trial.evaluate)
        self._windows.append(done.window)
        return done.run.cpu_seconds

    def counts(self) -> Mapping[str, int]:
        """Return the derived facts per predicate."""
        return self._trial.counts()


def family_seconds() -> dict[int, float]:
    """Return the processor time of this process and each descendant, by process id.

    Without /proc, only this process is known.
    """
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for text in _stats():
        pid, _, rest = text.partition(" ")
        fields = rest.rpartition(")")[2].split()
        parents[int(pid)] = int(fields[_PARENT])
        seconds[int(pid)] = sum(map(int, fields[_TICKS])) / _per_second()
    if os.getpid() not in parents:
        return {os.getpid(): time.process_time()}
    return {pid: own for pid, own in seconds.items() if _descends(pid, parents)}


def _spent(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    # Of a worker that started or ended in between, only the time that was seen counts.
    return sum(own - before.get(pid, 0.0) for pid, own in after.items())


def _stats() -> Iterator[str]:
    for path in _PROCESSES.glob("[0-9]*/stat"):
        # The process may have ended.
        with suppress(OSError):
            yield path.read_text(encoding="utf-8")


def _descends(pid: int, parents: Mapping[int, int]) -> bool:
    while pid in parents:
        if pid == os.getpid():
            return True
        pid = parents[pid]
    return False


def _per_second() -> int:
    return os.sysconf("SC_CLK_TCK")
