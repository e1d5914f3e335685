"""The directed changes of `maintenance/test_holes.py` on Spark: all in one task at once, some by plans."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

import pytest

from maintenance import test_holes
from strategies.beside import Expected, played
from strategies.borrowed import at_once, cases
from zodiacedge.cli.sessions.format import parse_session
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.storage.workspace import Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.api import Engine
    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.kb.change import Change

HOLES = cases(test_holes)
# Each costs dozens of jobs: one with every run of the tests, all with the long ones.
_ALWAYS = "test_what_a_removed_rule_derived_does_not_live_on_the_rules_that_stay-0"
assert _ALWAYS in HOLES


def sessions() -> list[list[Change]]:
    """Return the changes that the directed tests play."""
    found: list[list[Change]] = []

    def heard(engine: Engine, session: str, *after: test_holes.Segments) -> None:
        del engine, after
        found.append([step.change for step in parse_session(session)])

    with mock.patch.object(test_holes, "play", heard):
        for case in HOLES.values():
            case(ReferenceEngine())
    return found


def test_every_change_in_one_task(spark: SparkEngine) -> None:
    assert len(sessions()) >= 15
    expected = Expected(tuple(at_once(sessions())))
    found = played(spark, expected.changes)
    assert [one.differences(wanted) for one, wanted in zip(found, expected.seen, strict=True)] == [
        [] for _ in expected.changes
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == _ALWAYS else pytest.mark.soak) for name in HOLES]
)
def test_a_change_by_plans(name: str, make_engine: Callable[[Options], SparkEngine]) -> None:
    HOLES[name](make_engine(Options(strategy="rounds")))
