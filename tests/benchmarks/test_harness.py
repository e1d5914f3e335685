"""The clock of the benchmarks: how many runs, and no time for a wrong count."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from zodiacedge_bench.measure.harness import Expected, Measurement, Run, WrongCountError, measure


@dataclass
class Fake:
    """A trial that sleeps."""

    seconds: float = 0.0
    found: dict[str, int] = field(default_factory=lambda: {"p": 3, "q": 1})
    elsewhere: float | None = None

    def evaluate(self) -> float | None:
        time.sleep(self.seconds)
        return self.elsewhere

    def counts(self) -> dict[str, int]:
        return self.found


def test_a_short_trial_runs_five_times_and_a_long_one_three() -> None:
    assert len(measure("short", Fake, Expected()).runs) == 5
    assert len(measure("long", lambda: Fake(0.11), Expected()).runs) == 3


def test_the_number_of_runs_can_be_given() -> None:
    assert len(measure("short", Fake, Expected(), runs=2).runs) == 2


def test_every_run_starts_fresh() -> None:
    made: list[Fake] = []

    def fresh() -> Fake:
        made.append(Fake())
        return made[-1]

    measure("fresh", fresh, Expected(), runs=3)
    assert len({id(trial) for trial in made}) == 3


def test_the_best_run_has_the_least_wall_time() -> None:
    runs = (Run(3.0, 1.0), Run(2.0, 2.0), Run(4.0, 0.5))
    assert Measurement(runs, {"p": 3}).best == Run(2.0, 2.0)


def test_the_clock_sees_the_work_alone() -> None:
    def slow_to_make() -> Fake:
        time.sleep(0.05)
        return Fake()

    assert measure("slow to make", slow_to_make, Expected(), runs=2).best.seconds < 0.04


def test_processor_time_of_another_process_is_taken_over() -> None:
    assert measure("elsewhere", lambda: Fake(elsewhere=7.5), Expected(), runs=1).best.cpu_seconds == 7.5


def test_right_counts_pass() -> None:
    expected = Expected({"p": 3, "q": 1, "nothing": 0}, 4)
    assert measure("right", Fake, expected, runs=1).derived == 4


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (Expected({"p": 3}), "fake derives wrong facts: q: 1 instead of 0"),
        (Expected({"p": 3, "q": 2}), "q: 1 instead of 2"),
        (Expected({"p": 3, "q": 1, "r": 1}), "r: 0 instead of 1"),
        (Expected(total=5), "fake derives 4 facts instead of 5"),
    ],
)
def test_a_wrong_count_is_an_error(expected: Expected, message: str) -> None:
    with pytest.raises(WrongCountError, match=message):
        measure("fake", Fake, expected, runs=1)


def test_what_an_engine_cannot_derive_is_not_asked_for() -> None:
    expected = Expected({"p": 3, "q": 1, "median": 9}, 13).restricted(frozenset({"median"}))
    assert measure("without", Fake, expected, runs=1).derived == 4
