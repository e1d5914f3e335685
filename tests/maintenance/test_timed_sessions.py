"""After each tick or change of a random session with windows, the engine stands where the definition does."""

from __future__ import annotations

import itertools

import pytest

from strategies import Seeded
from strategies.lockstep import Played, play
from strategies.scale import examples, first_seed
from strategies.timed import random_timed_changes
from zodiacedge.engine.embedded.maintain.strategy import STRATEGIES

pytestmark = pytest.mark.slow


def follow(seed: int, strategy: str, most_changes: int = 7) -> Played:
    return play(random_timed_changes(Seeded(seed), most_changes), seed, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_timed_session_ends_where_the_definition_does(strategy: str) -> None:
    maintained = sum(follow(seed, strategy).maintained for seed in range(40))
    assert (maintained > 0) == (strategy in {"choose", "maintain"})


@pytest.mark.soak
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_very_many_timed_changes(strategy: str) -> None:
    left = examples(20_000) // len(STRATEGIES)
    seeds = itertools.count(first_seed(3_000_000))
    while left > 0:
        left -= follow(next(seeds), strategy, most_changes=14).steps
