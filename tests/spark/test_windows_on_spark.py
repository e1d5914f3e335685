"""Windows on Spark: ticks lead where the definition does, and cost what is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import zodiacedge as ze
from spark.conftest import jobs_so_far
from spark.test_shared_suite import follow
from strategies import Seeded
from strategies.timed import random_timed_changes
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.cluster.task_files import rows_read
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage import files
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.vocabulary import NOW_RELATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.language.ast import Fact

OPTIONS = {
    "in one task": Options(),
    "on slices": Options(look_up_from=0, whole_rows=0),
    "in partitions": Options(strategy="partitioned", gather_rows=0),
    "in rounds": Options(strategy="rounds", gather_rows=0),
}
START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("how", OPTIONS)
@pytest.mark.parametrize("seed", [1, 4])
def test_a_timed_session_ends_where_the_definition_does(
    seed: int, how: str, make_engine: Callable[[Options], SparkEngine]
) -> None:
    kb = follow(seed, make_engine(OPTIONS[how]), random_timed_changes(Seeded(seed), 5))
    assert kb.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize("how", OPTIONS)
def test_many_timed_sessions(how: str, make_engine: Callable[[Options], SparkEngine]) -> None:
    for seed in range(100, 120):
        follow(seed, make_engine(OPTIONS[how]), random_timed_changes(Seeded(seed)))


RULES = """
@time reading 3 .
hot: hot(S, T) :- reading(S, V, T) within {0} s, V > 99 .
silent: silent(S) :- sensor(S), not reading(S, _, _) within {0} s .
peak: peak(S, M) :- AGGREGATE(reading(S, V, T) within {0} s) ON S WITH MAX(V) AS M .
"""


def readings(rows: int, sensors: int) -> pa.Table:
    """Readings of sensors in turn, each a second after the one before."""
    return pa.table(
        {
            "s": [n % sensors for n in range(rows)],
            "v": [100 if n % (rows // 4) == 3 else 50 for n in range(rows)],
            "t": pa.array([START + n * SECOND for n in range(1, rows + 1)], pa.timestamp("us", "UTC")),
        }
    )


def test_a_tick_reads_what_is_due(
    make_engine: Callable[[Options], SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small blocks, so that a file of so few rows has many.
    monkeypatch.setattr(files, "BLOCK", 1 << 8)
    each = 10
    read: dict[int, list[int]] = {}
    for rows in (20_000, 80_000):
        engine = make_engine(Options(look_up_from=10_000, whole_rows=1000))
        found, expected = KnowledgeBase(engine, Settings()), KnowledgeBase(EmbeddedEngine(), Settings())
        for kb in (found, expected):
            with kb.change() as c:
                c.add_rules(RULES.format(rows))
                c.add_facts([("sensor", n) for n in range(rows // each + 1)])
                c.add_facts(readings(rows, rows // each), "reading")
                c.tick(START + rows * SECOND)
        for n in range(1, 4):
            moment = START + (rows + n) * SECOND
            before = jobs_so_far(engine)
            with rows_read() as tally:
                report = found.tick(moment)
            told = expected.tick(moment)
            assert (report.inserted, report.deleted) == (told.inserted, told.deleted)
            assert jobs_so_far(engine) - before <= 3
            read.setdefault(rows, []).append(tally.rows)
            # Known once for each version, with the moments and the facts that are due next.
            with rows_read() as tally:
                assert found._next_due() == moment + SECOND
            assert 0 < tally.rows < 5000
        assert found.derived() == expected.derived()
    assert max(read[80_000]) < 2 * max(read[20_000])
    assert max(read[80_000]) < 80_000


def test_spark_knows_when_to_tick(make_engine: Callable[[Options], SparkEngine]) -> None:
    found = KnowledgeBase(make_engine(Options()), Settings())
    expected = KnowledgeBase(EmbeddedEngine(), Settings())
    for kb in (found, expected):
        with kb.change() as c:
            c.add_rules("""
                @time reading 3 .
                @keep reading 20 s .
                @keep about Observation by resultTime 30 s .
                @keep status 3 s since stated .
            """)
            c.add_rules(RULES.format(10))
            c.add_facts(readings(12, 3), "reading")
            c.add_facts([("status", ze.iri("s1"), ze.iri("up"))])
            c.add_facts(
                [("resultTime", ze.iri("o1"), START), ("rdf:type", ze.iri("o1"), ze.iri("Observation"))]
            )
            c.tick(START + 12 * SECOND)
    ticks = 0
    while (due := found._next_due()) is not None:
        # Nothing but the clock moves before it.
        before = expected.tick(due - timedelta(microseconds=1))
        assert {each.relation for each in (*before.inserted, *before.deleted)} <= {NOW_RELATION}
        told, report = expected.tick(due), found.tick(due)
        assert shown(report.inserted) == shown(told.inserted)
        assert shown(report.deleted) == shown(told.deleted)
        ticks += 1
    assert found.explicit == expected.explicit
    assert ticks > 12
    assert not found.query("?- resultTime(X, T) .").rows


def test_facts_about_many_subjects_are_found_once_by_few_jobs(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    engine = make_engine(Options(driver_rows=50))
    kb = KnowledgeBase(engine, Settings())
    subjects = [ze.iri(f"s{n}") for n in range(120)]
    with kb.change() as c:
        c.add_facts([("stated", subject, n) for n, subject in enumerate(subjects)])
    before = engine.jobs.count()
    assert isinstance(kb.state, SparkState)
    about = list(kb.state.about(subjects))
    assert len(about) == len(set(about)) == 120
    assert engine.jobs.count() - before < 12


def shown(facts: Iterable[Fact]) -> frozenset[Fact]:
    """Return facts without that of the clock."""
    return frozenset(each for each in facts if each.relation != NOW_RELATION)
