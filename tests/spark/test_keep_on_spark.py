"""What `@keep` refuses and forgets on Spark is what it refuses and forgets on the embedded engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import zodiacedge as ze
from kb.test_keep import OBSERVATIONS, at, observation
from zodiacedge.engine.api import Settings
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine

PROGRAM = f"""{OBSERVATIONS}
@time reading 2 . @keep reading 10 min . @time Moment 1 . @keep Moment 10 min .
@keep status 5 min since stated .
heard(S) :- reading(S, _) .
up(S) :- status(S) .
"""


def late(report: ze.ChangeReport) -> set[str]:
    return {warning.message for warning in report.warnings if warning.code == "W031"}


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_late_facts_of_files_are_not_taken(engine: str, spark: SparkEngine, tmp_path: Path) -> None:
    kb = ze.open() if engine == "embedded" else KnowledgeBase(spark, Settings())
    with kb.change() as c:
        c.add_rules(PROGRAM)
        c.tick(at(40))
    moments = {
        name: f'"""{at(minute):%Y-%m-%dT%H:%M:%S}Z""^^xsd:dateTime"'
        for name, minute in (("old", 20), ("edge", 30), ("new", 39))
    }
    reading, moment, status = (tmp_path / f"{name}.csv" for name in ("reading", "Moment", "status"))
    reading.write_text("".join(f"<{name}>,{text}\n" for name, text in [*moments.items(), *moments.items()]))
    moment.write_text("".join(f"{text}\n" for text in moments.values()))
    status.write_text("<s1>\n<s2>\n")
    triples, bad = tmp_path / "seen.nt", tmp_path / "bad"
    triples.write_text(observation("o1", 20) + observation("o2", 35) + observation("o3", 20, member=False))
    with kb.change() as c:
        c.load(reading, moment, status, triples, quarantine=bad)
        c.add_facts([("reading", ze.iri("given"), at(1))])
    counts = {message.split()[0] for message in late(c.report)}
    assert counts == {"2", "1", "3"}
    assert len((bad / "late-facts-0001.jsonl").read_text().splitlines()) == 5
    assert names(kb, "heard") == {"edge", "new"}
    assert names(kb, "seen") == {"o2", "o3"}
    assert len(kb.query("?- Moment(T) .")) == 2
    # Stated again by a file, one of the two stays.
    kb.tick(at(44))
    status.write_text("<s2>\n")
    with kb.change() as c:
        c.load(status)
    kb.tick(at(48))
    assert names(kb, "up") == {"s2"}
    assert names(kb, "heard") == {"new"}
    assert kb.verify("reference").ok


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_late_facts_of_frames_are_not_taken(engine: str, spark: SparkEngine) -> None:
    kb = ze.open() if engine == "embedded" else KnowledgeBase(spark, Settings())
    with kb.change() as c:
        c.add_rules(PROGRAM)
        c.tick(at(40))
    table = pa.table({"s": ["a", "b", "a"], "t": [at(1), at(39), at(1)]})
    frame: Any = spark.jobs.session.createDataFrame(table.to_pandas()) if engine == "spark" else table
    with kb.change() as c:
        c.add_facts(frame, "reading", s=ze.iri("{s}"), t=...)
    assert {message.split()[0] for message in late(c.report)} == {"1"}
    assert names(kb, "heard") == {"b"}


def test_more_facts_are_forgotten_than_the_driver_may_hold(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    kb = KnowledgeBase(make_engine(Options(driver_rows=40)), Settings())
    with kb.change() as c:
        c.add_rules(PROGRAM)
        c.tick(at(0))
        c.add_facts([(ze.iri(f"s{n}"), at(0)) for n in range(100)], "reading")
        c.add_facts([(ze.iri("last"), at(8))], "reading")
    kb.tick(at(15))
    assert names(kb, "heard") == {"last"}


def names(kb: ze.KnowledgeBase, predicate: str) -> set[str]:
    return {str(row[0]) for row in kb.query(f"?- {predicate}(X) .")}
