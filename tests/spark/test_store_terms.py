"""A store on Spark has a term for every fingerprint, whatever was known before it was opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from spark.test_spark_store import agree, on
from zodiacedge.engine.spark.storage.workspace import Options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.kb.transaction import Transaction

    Step = Callable[[Transaction], None]

# No fact has the class and the constants in the heads yet.
RULES = """
alarm: Alarm(T) :- reading(T, V), V > 80 .
state: state(T, frozen) :- temperature(T, V), V < 0 .
some:  some() :- reading(T, V) .
reading(wt1, 55) . temperature(wt1, 5) . flag() .
"""
STEPS: tuple[Step, ...] = (
    lambda c: c.add_facts("temperature(wt2, 7) ."),
    lambda c: c.add_facts("reading(wt1, 93) ."),
    lambda c: c.add_facts("temperature(wt2, -7) ."),
    # A class that only something to be removed has named.
    lambda c: c.remove_facts("Odd(wt1) ."),
    lambda c: c.add_rules("odd: Odd(T) :- reading(T, 93) ."),
)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(), id="task"),
        pytest.param(Options(gather_rows=0, driver_rows=0), id="plans", marks=pytest.mark.soak),
    ],
)
def test_what_rules_derive_for_the_first_time_in_an_opened_store_has_its_terms(
    options: Options, make_engine: Callable[[Options], SparkEngine], tmp_path: Path
) -> None:
    place, memory = tmp_path / "farm.zodiac", ze.open()
    with ze.open(place, create=True) as first:
        for kb in (first, memory):
            with kb.change() as change:
                change.add_rules(RULES)
    with on(make_engine(options), place) as found:
        for step in STEPS:
            told = []
            for kb in (found, memory):
                with kb.change() as change:
                    step(change)
                told.append((change.report.inserted, change.report.deleted))
            assert told[0] == told[1]
        agree(found, memory)
    with ze.open(place) as reopened:
        agree(reopened, memory)


def test_propositions_are_in_a_store_that_plans_write(
    make_engine: Callable[[Options], SparkEngine], tmp_path: Path
) -> None:
    place = tmp_path / "farm.zodiac"
    with on(make_engine(Options(gather_rows=0, driver_rows=0)), place) as kb, kb.change() as change:
        change.add_rules("up: up() :- edge(X, _) . edge(a, b) . flag() .")
    with ze.open(place) as reopened:
        assert {str(fact.predicate.name) for fact in reopened.facts()} == {"up", "flag", "edge"}
