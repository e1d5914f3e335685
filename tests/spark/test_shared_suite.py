"""The shared suite on Spark: golden programs, golden sessions, random sessions, beside the definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.test_fact_deltas import ATOMS, tell_instances
from engine.test_golden_programs import PROGRAMS, differences
from maintenance.test_golden_sessions import SESSIONS, play, steps_of
from maintenance.test_random_sessions import changes_of
from strategies import Seeded
from strategies.changes import random_session
from zodiacedge.engine.api import Settings
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_golden_program(path: Path, spark: SparkEngine) -> None:
    assert differences(path, spark) == []


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_goes_as_expected(path: Path, spark: SparkEngine) -> None:
    kb = KnowledgeBase(spark, Settings())
    assert [text for step in steps_of(path) for text in play(kb, step)] == []
    fresh = KnowledgeBase(spark, Settings())
    fresh.apply(Change(add_rules=kb.rules, add_facts=tuple(kb.explicit)))
    assert fresh.facts() == kb.facts()
    assert fresh.derived() == kb.derived()
    for node in kb.graph().order:
        rules = frozenset(node.rules)
        assert fresh.state.segment(rules) == kb.state.segment(rules)


@pytest.mark.parametrize(
    ("driver_rows", "atoms"),
    [
        (100_000, ATOMS),
        # A job for each of these that may have instances.
        (0, "Busy(X) | Idle(X) | rdf:type(X, X)"),
    ],
)
def test_the_explicit_facts_that_an_atom_matches(
    driver_rows: int, atoms: str, make_engine: Callable[[Options], SparkEngine]
) -> None:
    tell_instances(make_engine(Options(driver_rows=driver_rows)), atoms)


def follow(seed: int, engine: SparkEngine, changes: Sequence[Change] | None = None) -> KnowledgeBase:
    """Play a random session, or given changes, on Spark and on the definition."""
    played = changes_of(random_session(Seeded(seed))) if changes is None else changes
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    found = KnowledgeBase(engine, Settings())
    for place, change in enumerate(played):
        where = f"seed {seed}, change {place}"
        try:
            told = expected.apply(change)
        except ZodiacError:
            with pytest.raises(ZodiacError):
                found.apply(change)
            assert found.facts() == expected.facts(), where
            continue
        report = found.apply(change)
        assert found.facts() == expected.facts(), where
        assert found.explicit == expected.explicit, where
        assert (report.inserted, report.deleted) == (told.inserted, told.deleted), where
        assert report.net_counts() == told.net_counts(), where
        assert found.derived() == expected.derived(), where
        assert {k: d.count for k, d in report.dropped.items()} == {
            k: d.count for k, d in told.dropped.items()
        }, where
        assert [d.render() for d in report.warnings] == [d.render() for d in told.warnings], where
        for node in expected.graph().order:
            rules = frozenset(node.rules)
            assert found.state.segment(rules) == expected.state.segment(rules), where
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_random_session_ends_where_the_definition_does(seed: int, spark: SparkEngine) -> None:
    follow(seed, spark)
