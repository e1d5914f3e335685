"""Golden programs and sessions when no task may have all: by plans, recursions in rounds, and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.test_golden_programs import PROGRAMS, differences
from maintenance.test_golden_sessions import SESSIONS, play, steps_of
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine

# All of them take minutes: some with every run of the tests, all with the long ones.
_ALWAYS_PROGRAMS = {"classes_of_things", "points_to", "stratified_negation"}
# A recursion that loses an edge and a rule, negations two levels up, and groups.
_ALWAYS = {
    ("transitive_closure", "rounds"),
    ("negation_both_ways", "parts"),
    ("atoms_beside_an_aggregate", "rounds"),
}
_WAYS = {
    "rounds": Options(strategy="rounds"),
    # Whatever it takes, much as a change may be.
    "maintained": Options(strategy="rounds", policy=Policy(strategy="maintain")),
    "parts": Options(strategy="partitioned"),
}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in _ALWAYS_PROGRAMS else pytest.mark.soak)
        for path in PROGRAMS
    ],
)
def test_a_golden_program_by_plans_and_rounds(
    path: Path, make_engine: Callable[[Options], SparkEngine]
) -> None:
    assert differences(path, make_engine(Options(strategy="rounds"))) == []


@pytest.mark.parametrize(
    ("path", "way"),
    [
        pytest.param(path, way, id=f"{path.stem}-{way}", marks=() if always else pytest.mark.soak)
        for path in SESSIONS
        for way in _WAYS
        for always in [(path.stem, way) in _ALWAYS]
    ],
)
def test_a_session_goes_as_expected_whichever_way_is_asked_for(
    path: Path, way: str, make_engine: Callable[[Options], SparkEngine]
) -> None:
    engine = make_engine(_WAYS[way])
    kb = KnowledgeBase(engine, Settings())
    jobs: list[str] = []
    with engine.jobs.telling(jobs.append):
        assert [text for step in steps_of(path) for text in play(kb, step)] == []
    assert "bringing rules up to date in one task" not in jobs
