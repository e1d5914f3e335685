"""Facts that several owners have are counted once: by the driver, by one task, and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark.conftest import jobs_so_far
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.spark.engine import SparkEngine

# Three rules derive `near`, and share some of it; so do those of two classes; `all` and `Some` have one each.
RULES = """
a: near(X, Y) :- left(X, Y) .
b: near(X, Y) :- right(X, Y) .
c: near(X, Y) :- left(Y, X) .
d: High(X) :- left(X, Y) .
e: High(X) :- right(X, Y) .
f: Low(Y) :- left(X, Y) .
g: Low(Y) :- right(X, Y) .
h: all(X) :- left(X, Y) .
i: Some(X) :- right(X, Y) .
j: any() :- left(X, Y) .
k: any() :- right(X, Y) .
"""
FACTS = "\n".join(
    [f"left(n{n}, n{n * 7 % 40}) ." for n in range(40)]
    + [f"right(n{n}, n{n * 3 % 50}) ." for n in range(25, 50)]
)


@pytest.mark.parametrize(
    ("options", "jobs"),
    [
        pytest.param(Options(), 0, id="driver"),
        pytest.param(Options(driver_rows=0, policy=Policy(strategy="maintain")), 3, id="one task"),
        pytest.param(Options(strategy="rounds", driver_rows=0), 6, id="rounds", marks=pytest.mark.soak),
        pytest.param(Options(gather_rows=0, driver_rows=0), 6, id="parts", marks=pytest.mark.soak),
    ],
)
def test_a_fact_of_several_rules_counts_once(
    options: Options, jobs: int, make_engine: Callable[[Options], SparkEngine]
) -> None:
    engine = make_engine(options)
    expected, found = KnowledgeBase(EmbeddedEngine(), Settings()), KnowledgeBase(engine, Settings())
    for kb in (expected, found):
        with kb.change() as change:
            change.add_rules(RULES + FACTS)
        # What one rule loses another may still have.
        with kb.change() as change:
            change.remove_facts("left(n3, n21) . right(n30, n40) . right(n31, n43) .")
            change.add_facts("right(n3, n21) . left(n21, n3) .")
    before = jobs_so_far(engine)
    assert found.derived() == expected.derived()
    assert jobs_so_far(engine) - before >= jobs
    assert found.explicit_counts() == expected.explicit_counts()


def test_a_task_that_evaluates_everything_counts_as_well(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    engine = make_engine(Options(driver_rows=0))
    expected, found = KnowledgeBase(EmbeddedEngine(), Settings()), KnowledgeBase(engine, Settings())
    for kb in (expected, found):
        with kb.change() as change:
            change.add_rules(RULES + FACTS)
    before = jobs_so_far(engine)
    assert found.derived() == expected.derived()
    assert jobs_so_far(engine) == before
    # What other rules derive is not counted there.
    for kb in (expected, found):
        with kb.change() as change:
            change.add_rules("l: near(X, Y) :- right(Y, X) .")
    assert found.derived() == expected.derived()
