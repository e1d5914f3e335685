"""A session that a user hands over: it stays as it is; DataFrames go in by tasks and come out lazily."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from spark.conftest import CLUSTER
from zodiacedge.engine.spark.storage.files import ScratchFolder
from zodiacedge.engine.spark.storage.scratch_owner import Owner, new_name, owner_of
from zodiacedge.errors import ZodiacError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.spark.engine import SparkEngine

SENSOR = ze.iri("http://farm/{sensor}")
DAY = dt.datetime(2026, 5, 1)  # noqa: DTZ001 - as a DataFrame has it
RULES = """
    hot: alarm(S, V) :- reading(S, V, _), V > 80 .
    near: near(X, Y) :- edge(X, Y) .
    far: near(X, Z) :- near(X, Y), edge(Y, Z) .
"""


@pytest.fixture(scope="module")
def session(spark: SparkEngine) -> Iterator[SparkSession]:
    """A session as a user has it, with settings of the user's own."""
    assert spark.jobs.cores == 2
    own = CLUSTER.session().newSession()
    own.conf.set("spark.sql.shuffle.partitions", "3")
    own.conf.set("spark.sql.session.timeZone", "UTC")
    before = dict(own.conf.getAll)
    yield own
    assert dict(own.conf.getAll) == before
    assert not own.getTags()
    own.range(1).collect()


@pytest.fixture(scope="module")
def readings(session: SparkSession) -> DataFrame:
    rows = [("s1", 93.5, DAY), ("s 2", 20.0, DAY), ("s3", None, DAY), ("s4", 99.0, DAY)]
    return session.createDataFrame(rows, "sensor string, value double, time timestamp")


@pytest.fixture(scope="module")
def kb(session: SparkSession, readings: DataFrame) -> ze.KnowledgeBase:
    opened = ze.open(spark=session)
    with opened.change("first") as change:
        change.add_rules(RULES)
        change.add_facts(readings, "reading", sensor=SENSOR, value=..., at="time")
        change.add_facts(session.createDataFrame([(n, n + 1) for n in range(4)], "a long, b long"), "edge")
    assert change.loads[0].bad == 1
    assert [warning.code for warning in change.report.warnings] == ["W030"]
    assert all(job.purpose.startswith("change 1 (first)") for job in change.report.jobs)
    assert any("rule" in job.purpose and job.number >= 0 for job in change.report.jobs)
    return opened


def rows_of(frame: DataFrame) -> set[tuple[object, ...]]:
    return {tuple(row) for row in frame.collect()}


def test_what_the_rules_give_is_a_table_of_the_users_session(
    kb: ze.KnowledgeBase, session: SparkSession
) -> None:
    table = kb.table("near")
    assert table.sparkSession is session
    assert table.dtypes == [("c1", "bigint"), ("c2", "bigint")]
    assert table.count() == 10
    named = kb.table("alarm", sensor=SENSOR, value=...)
    sites = session.createDataFrame([("s1", "Oslo"), ("s4", "Narvik")], "sensor string, site string")
    assert rows_of(named.join(sites, "sensor")) == {("s1", 93.5, "Oslo"), ("s4", 99.0, "Narvik")}
    assert kb.query("alarm(S, V)").to_spark().dtypes == [("S", "string"), ("V", "double")]


def test_a_large_table_is_read_when_spark_needs_it(session: SparkSession, readings: DataFrame) -> None:
    kb = ze.open(spark=session, options=ze.SparkOptions(driver_rows=0))
    with kb.change() as change:
        change.add_facts(readings, "reading", sensor=SENSOR, value=..., at="time")
        change.add_rules(
            "any(S) :- reading(S, _, _) . any(V) :- reading(_, V, _) . named(S) :- reading(S, _, _) ."
        )
    table = kb.table("reading", sensor=SENSOR, value=..., at=...)
    table.createOrReplaceTempView("readings")
    try:
        with kb.change() as change:
            change.remove_facts('reading(<http://farm/s1>, 9.35E1, "2026-05-01T00:00:00Z"^^xsd:dateTime) .')
        assert change.report.facts_removed == 1
        # It has the rows of the version at which it was asked for.
        (row,) = session.sql("select max(value), count(*), max(at) from readings").collect()
        assert tuple(row) == (99.0, 3, DAY)
    finally:
        session.catalog.dropTempView("readings")
    assert kb.table("reading").count() == 2
    assert rows_of(kb.table("any")) == {
        ("<http://farm/s%202>",), ("<http://farm/s4>",), ("2.0E1",), ("9.9E1",),
    }  # fmt: skip
    assert rows_of(kb.table("named", sensor=SENSOR)) == {("s 2",), ("s4",)}


def test_a_change_is_tables_too_and_they_can_be_given_back(
    kb: ze.KnowledgeBase, session: SparkSession
) -> None:
    more = session.createDataFrame([("s7", 90.0, DAY)], "sensor string, value double, time timestamp")
    with kb.change() as change:
        change.add_facts(more, "reading", sensor=SENSOR, value=..., at="time")
    new = change.report.inserted("alarm", sensor=SENSOR, value=...).to_spark()
    assert rows_of(new) == {("s7", 90.0)}
    assert change.report.deleted("alarm").to_spark().count() == 0
    with kb.change() as change:
        change.add_facts(kb.table("near"), "seen")
        change.remove_facts(more, "reading", sensor=SENSOR, value=..., at="time")
    assert kb.explicit_counts()["seen"] == 10
    assert rows_of(change.report.deleted("alarm").to_spark()) == {("<http://farm/s7>", 90.0)}


def test_one_step_of_a_pipeline(session: SparkSession) -> None:
    edges = session.createDataFrame([("a", "b"), ("b", "c")], "x string, y string")
    made = ze.materialize(
        {"edge": edges}, "path(X, Y) :- edge(X, Y) . path(X, Z) :- path(X, Y), edge(Y, Z) ."
    )
    assert rows_of(made["path"]) == {("a", "b"), ("b", "c"), ("a", "c")}
    assert made["path"].sparkSession is session


def test_the_embedded_engine_takes_a_dataframe_by_arrow(readings: DataFrame) -> None:
    kb = ze.open()
    with kb.change() as change:
        change.add_facts(readings, "reading", sensor=SENSOR, value=...)
    assert len(kb.facts()) == 3
    assert change.loads[0].bad == 1


@pytest.mark.parametrize(
    ("column", "cure"),
    [
        ("struct(1 as x) as c", "selectExpr('c.x')"),
        ("array(1, 2) as c", "explode(c)"),
        ("binary('a') as c", "cast(c as string)"),
    ],
)
def test_a_column_of_another_kind_is_refused_before_any_job(
    column: str, cure: str, kb: ze.KnowledgeBase, session: SparkSession
) -> None:
    with pytest.raises(ZodiacError) as caught:
        kb.change().add_facts(session.range(2).selectExpr("id", column), "p")
    assert cure in caught.value.diagnostics[0].note


def test_a_stream_is_refused_with_what_to_do(kb: ze.KnowledgeBase, session: SparkSession) -> None:
    with pytest.raises(ZodiacError, match="is a stream"):
        kb.change().add_facts(session.readStream.format("rate").load(), "p")


class _ColumnsOfAnyName:
    """Answers any name, as a DataFrame of Spark Connect does."""

    def __getattr__(self, name: str) -> str:
        return name


def test_what_contradicts_a_session_is_refused(session: SparkSession) -> None:
    with pytest.raises(ZodiacError, match="a session was handed over, and a master as well"):
        ze.open(spark=session, master="local[1]")
    with pytest.raises(ZodiacError, match="settings of Spark as well"):
        ze.open(spark=session, options=ze.SparkOptions(settings={"spark.executor.memory": "1g"}))
    for wrong in ("local[2]", _ColumnsOfAnyName()):
        with pytest.raises(ZodiacError, match="expected a SparkSession"):
            ze.open(spark=wrong)  # type: ignore[call-overload]
    with pytest.raises(ZodiacError, match="the engine embedded has no session"):
        ze.open(engine="embedded", spark=session)


def test_options_are_public_and_may_be_settings_of_the_session(session: SparkSession) -> None:
    session.conf.set("spark.zodiac.gather_rows", "77")
    try:
        assert ze.open(spark=session).state.workspace.options.gather_rows == 77  # type: ignore[attr-defined]
        given = ze.open(spark=session, options=ze.SparkOptions(gather_rows=5))
        assert given.state.workspace.options.gather_rows == 5  # type: ignore[attr-defined]
    finally:
        session.conf.unset("spark.zodiac.gather_rows")
    parsed = ze.SparkOptions.of_texts(["gather_rows=1_000", "spark.executor.memory=8g", "ship=false"])
    assert (parsed.gather_rows, dict(parsed.settings), parsed.ship) == (
        1000,
        {"spark.executor.memory": "8g"},
        False,
    )
    for wrong in ("gather_row=1", "gather_rows=many", "gather_rows", "strategy=fast", "ship=maybe"):
        with pytest.raises(ZodiacError):
            ze.SparkOptions.of_texts([wrong])
    with pytest.raises(ZodiacError, match="at least 0"):
        ze.SparkOptions(driver_rows=-1)


def test_folders_of_killed_processes_are_swept_and_others_stay(tmp_path: Path) -> None:
    here = owner_of(new_name())
    assert here
    assert not here.is_gone
    gone = here._replace(started=here.started + 1)
    other = here._replace(host="00000000", started=here.started + 1)
    rebooted = here._replace(boot="00000000")
    folders = {
        owner: tmp_path / f"zodiacedge-{'-'.join(map(str, owner))}-0123456789ab"
        for owner in (here, gone, other, rebooted)
    }
    (tmp_path / "zodiacedge-package-x").mkdir()
    for folder in folders.values():
        folder.mkdir()
        (folder / "rows.parquet").touch()
    scratch = ScratchFolder(str(tmp_path))
    assert isinstance(here, Owner)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        "zodiacedge-package-x", folders[here].name, folders[other].name, Path(scratch.folder.uri).name,
    }  # fmt: skip
