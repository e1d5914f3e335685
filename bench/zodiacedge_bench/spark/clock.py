"""Wall time, the processor time of all processes that take part, and when it was.

Spark's work is done by a Java process and by Python workers that are its children: the processor time of
this process alone would say nothing.
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
    """A stretch of time, in seconds since the epoch, as Spark's log has them."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timed(Generic[_Result]):
    """What something took, when it was, and what it gave."""

    run: Run
    window: Window
    result: _Result


def timed(work: Callable[[], _Result]) -> Timed[_Result]:
    """Do something with the clock running."""
    before, began, start = family_seconds(), time.time(), time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    run = Run(seconds, _spent(before, family_seconds()))
    return Timed(run, Window(began, began + seconds), result)


class TimedTrial:
    """A trial whose processor time is that of all processes; it notes when it ran."""

    def __init__(self, trial: Trial, windows: list[Window]) -> None:
        """Take a trial, and the list that gets a window for each run."""
        self._trial = trial
        self._windows = windows

    def work(self) -> float:
        """Evaluate; return the processor time."""
        done = timed(self._trial.work)
        self._windows.append(done.window)
        return done.run.cpu_seconds

    def counts(self) -> Mapping[str, int]:
        """Return the derived facts per predicate."""
        return self._trial.counts()


def family_seconds() -> dict[int, float]:
    """Return the processor time of this process and of each that descends from it, by their numbers.

    Where the system does not tell, it is that of this process alone.
    """
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for text in _stats():
        number, _, rest = text.partition(" ")
        fields = rest.rpartition(")")[2].split()
        parents[int(number)] = int(fields[_PARENT])
        seconds[int(number)] = sum(map(int, fields[_TICKS])) / _per_second()
    if os.getpid() not in parents:
        return {os.getpid(): time.process_time()}
    return {number: own for number, own in seconds.items() if _descends(number, parents)}


def _spent(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    # Workers come and go: what one did before this time, or after it ended, is nobody's.
    return sum(own - before.get(number, 0.0) for number, own in after.items())


def _stats() -> Iterator[str]:
    for path in _PROCESSES.glob("[0-9]*/stat"):
        # A process may end between its name and its numbers.
        with suppress(OSError):
            yield path.read_text(encoding="utf-8")


def _descends(number: int, parents: Mapping[int, int]) -> bool:
    while number in parents:
        if number == os.getpid():
            return True
        number = parents[number]
    return False


def _per_second() -> int:
    return os.sysconf("SC_CLK_TCK")
