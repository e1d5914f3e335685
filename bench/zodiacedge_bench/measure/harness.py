"""The clock: the best of several runs, each in fresh state, every count checked before a time is told.

A figure is the best of at least three runs, of five where the best takes less than a tenth of a second.
Wall time and the processor time of the whole process are both kept: on a busy machine they part.
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
    """An engine derived something else than it should have; its time means nothing."""


class Trial(Protocol):
    """One evaluation, from fresh state. It is made outside the clock and used once."""

    def work(self) -> float | None:
        """Evaluate: what the clock sees. Return the processor time if it was spent in another process."""

    def counts(self) -> Mapping[str, int]:
        """Return the facts per predicate that rules derive; those without any may be left out."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come out: facts per predicate, or all of them together, or what came out first."""

    counts: Mapping[str, int] | None = None
    total: int | None = None

    def check(self, what: str, found: Mapping[str, int]) -> None:
        """Raise if the counts are others."""
        if self.counts is not None:
            names = sorted(self.counts.keys() | found.keys())
            wrong = [
                f"{name}: {found.get(name, 0):,} instead of {self.counts.get(name, 0):,}"
                for name in names
                if found.get(name, 0) != self.counts.get(name, 0)
            ]
            if wrong:
                raise WrongCountError(f"{what} derives wrong facts: {'; '.join(wrong)}")
        total = sum(found.values())
        if self.total is not None and total != self.total:
            raise WrongCountError(f"{what} derives {total:,} facts instead of {self.total:,}")

    def restricted(self, without: frozenset[str]) -> Expected:
        """Return what is left to check for an engine that cannot derive some predicates."""
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
    def derived(self) -> int:
        """How many facts were derived."""
        return sum(self.counts.values())


def measure(
    what: str, fresh: Callable[[], Trial], expected: Expected, runs: int | None = None
) -> Measurement:
    """Run a trial several times.

    Args:
        what: Names the trial where a count is wrong.
        fresh: Makes a trial in fresh state.
        expected: What must come out of every run.
        runs: How many runs; if not given, three, or five short ones.
    """
    done: list[Run] = []
    while True:
        trial = fresh()
        gc.collect()
        run, elsewhere = clocked(trial.work)
        counts = trial.counts()
        expected.check(what, counts)
        done.append(run if elsewhere is None else Run(run.seconds, elsewhere))
        if len(done) >= (runs or fewest(done)):
            return Measurement(tuple(done), counts)


def clocked(work: Callable[[], _Result]) -> tuple[Run, _Result]:
    """Do something, and return what it took with what it gave."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return Run(time.perf_counter() - wall, time.process_time() - cpu), result


@contextmanager
def settled() -> Iterator[None]:
    """Keep what there is so far out of every garbage collection: it is the benchmark's own."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def fewest(done: Sequence[Run]) -> int:
    """Return how many runs there must be, as far as those that are done can tell."""
    short = min(run.seconds for run in done) < SHORT
    return FEWEST_SHORT_RUNS if short else FEWEST_RUNS
