"""The clock: the best of several runs, each in fresh state, with every count checked.

A figure is the best of at least three runs, of five if the best takes less than a tenth of a second. Wall
time and the processor time of the whole process are both recorded: on a busy machine they differ.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_Result = TypeVar("_Result")

FEWEST_RUNS = 3
FEWEST_SHORT_RUNS = 5
SHORT = 0.1


class WrongCountError(Exception):
    """An engine derived wrong facts; its time is meaningless."""


class Trial(Protocol):
    """One evaluation from fresh state, prepared before the clock starts and used once."""

    def evaluate(self) -> float | None:
        """Evaluate with the clock running; return the processor time if it was spent in another process."""

    def counts(self) -> Mapping[str, int]:
        """Return the number of derived facts per predicate; predicates without facts may be absent."""


@dataclass(frozen=True, slots=True)
class Run:
    """The times of one run."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected result: facts per predicate, or their total; unknown if both are None."""

    counts: Mapping[str, int] | None = None
    total: int | None = None

    def check(self, name: str, counts: Mapping[str, int]) -> None:
        """Raise if the counts differ."""
        if self.counts is not None:
            wrong = [
                f"{predicate}: {counts.get(predicate, 0):,} instead of {self.counts.get(predicate, 0):,}"
                for predicate in sorted(self.counts.keys() | counts.keys())
                if counts.get(predicate, 0) != self.counts.get(predicate, 0)
            ]
            if wrong:
                raise WrongCountError(f"{name} derives wrong facts: {'; '.join(wrong)}")
        total = sum(counts.values())
        if self.total is not None and total != self.total:
            raise WrongCountError(f"{name} derives {total:,} facts instead of {self.total:,}")

    def restricted(self, without: frozenset[str]) -> Expected:
        """Return the expectation for an engine that cannot derive all predicates."""
        if not without or self.counts is None:
            return self
        return Expected({name: n for name, n in self.counts.items() if name not in without})


@dataclass(frozen=True, slots=True)
class Measurement:
    """All runs of a trial, and the facts each of them derived."""

    runs: tuple[Run, ...]
    counts: Mapping[str, int]

    @property
    def best(self) -> Run:
        """The run with the least wall time."""
        return min(self.runs, key=lambda run: run.seconds)

    @property
    def cpu_seconds(self) -> float:
        """The least processor time of all runs."""
        return min(run.cpu_seconds for run in self.runs)

    @property
    def derived(self) -> int:
        """The number of derived facts."""
        return sum(self.counts.values())


def measure(
    name: str, fresh: Callable[[], Trial], expected: Expected, runs: int | None = None
) -> Measurement:
    """Run a trial several times.

    Args:
        name: The name of the trial, for errors.
        fresh: Makes a trial in fresh state.
        expected: The expected result of every run.
        runs: The number of runs; if not given, three, or five short ones.
    """
    done: list[Run] = []
    while True:
        trial = fresh()
        gc.collect()
        run, cpu_seconds = clocked(trial.evaluate)
        counts = trial.counts()
        expected.check(name, counts)
        done.append(run if cpu_seconds is None else Run(run.seconds, cpu_seconds))
        if len(done) >= (runs or fewest(done)):
            return Measurement(tuple(done), counts)


def clocked(call: Callable[[], _Result]) -> tuple[Run, _Result]:
    """Run a function; return its times and its result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return Run(time.perf_counter() - wall, time.process_time() - cpu), result


@contextmanager
def settled() -> Iterator[None]:
    """Exclude existing objects, which belong to the benchmark, from garbage collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def fewest(done: Sequence[Run]) -> int:
    """Return the required number of runs, judged by those done so far."""
    short = min(run.seconds for run in done) < SHORT
    return FEWEST_SHORT_RUNS if short else FEWEST_RUNS
