"""The guide of pipelines, and the data source: tables, filters, versions, SQL, changes, a sink."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException

import zodiacedge as ze
from project.test_documents import run_document
from spark.conftest import CLUSTER
from zodiacedge.datasource.options import SourceOptions
from zodiacedge.datasource.sink import StreamWriter, Written
from zodiacedge.errors import ZodiacError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.spark.engine import SparkEngine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipelines.md"
SKIPPED = "<!-- test: skip, the tests on Spark run it -->\n"
COLUMNS = "sensor=<http://farm/{sensor}>, value"
FEED = "version long, change string, sensor string, value double"


def reading(name: str, value: float) -> tuple[object, ...]:
    return ("reading", ze.iri(f"http://farm/{name}"), value)


@pytest.fixture(scope="module")
def session(spark: SparkEngine) -> Iterator[SparkSession]:
    assert spark.jobs.cores == 2
    session = CLUSTER.session()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    with suppress(AnalysisException):
        # The guide may have registered it, and a process has it once.
        session.dataSource.register(ze.DataSource)
    yield session
    session.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "farm.zodiac")
    with ze.open(path, create=True) as kb:
        with kb.change() as change:
            change.add_rules("hot: alarm(S, V) :- reading(S, V), V > 80 .")
            change.add_facts([reading("s1", 93.5), reading("s2", 20.0)])
        with kb.change() as change:
            change.add_facts([reading("s3", 99.0)])
    return path


def rows_of(frame: DataFrame) -> set[tuple[object, ...]]:
    return {tuple(row) for row in frame.collect()}


# The first test: it registers the source, which can be done once.
def test_the_guide_runs_as_written(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.jobs.cores == 2
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    assert run_document(page.replace(SKIPPED, ""), PAGE.name, tmp_path) == page.count(f"{SKIPPED}```python")


def test_a_store_is_a_table(session: SparkSession, store: str) -> None:
    reader = session.read.format("zodiac").option("predicate", "alarm").option("columns", COLUMNS)
    alarms = reader.option("pushdown", "true").load(store)
    assert alarms.dtypes == [("sensor", "string"), ("value", "double")]
    assert rows_of(alarms.where("value > 95 and sensor like 's%'")) == {("s3", 99.0)}
    first = session.read.format("zodiac").option("predicate", "alarm").option("version", 1).load(store)
    assert rows_of(first) == {("<http://farm/s1>", 93.5)}
    session.sql(
        "create temporary view alarms using zodiac "
        f"options (path '{store}', predicate 'alarm', columns '{COLUMNS}')"
    )
    assert rows_of(session.sql("select max(value) from alarms where sensor in ('s1', 's3')")) == {(99.0,)}
    session.catalog.dropTempView("alarms")


def test_a_stream_of_changes_goes_on_where_it_ended(
    session: SparkSession, store: str, tmp_path: Path
) -> None:
    def feed() -> set[tuple[object, ...]]:
        stream = session.readStream.format("zodiac").schema(FEED)
        changes = stream.option("predicate", "alarm").option("columns", COLUMNS).load(store)
        query = (
            changes.writeStream.format("parquet")
            .option("path", str(tmp_path / "feed"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        assert query.exception() is None
        return rows_of(session.read.parquet(str(tmp_path / "feed")))

    first = {(2, "insert", "s1", 93.5), (2, "insert", "s3", 99.0)}
    assert feed() == first
    with ze.open(store) as kb, kb.change() as change:
        change.remove_facts([reading("s1", 93.5)])
        change.add_facts([reading("s4", 81.0)])
    assert feed() == first | {(3, "delete", "s1", 93.5), (3, "insert", "s4", 81.0)}


def test_rows_are_written_and_a_batch_of_a_stream_once(
    session: SparkSession, store: str, tmp_path: Path
) -> None:
    frame = session.createDataFrame([("s9", 90.0), ("s8", None)], "sensor string, value double")
    written = frame.write.format("zodiac").mode("append").option("predicate", "reading")
    written.option("columns", COLUMNS).save(store)
    landing, checkpoint = tmp_path / "landing", tmp_path / "checkpoint"
    session.createDataFrame([("s20", 120.0)], "sensor string, value double").write.parquet(str(landing / "a"))

    def pour() -> None:
        stream = session.readStream.schema("sensor string, value double").parquet(f"{landing}/*")
        sink = stream.writeStream.format("zodiac").option("predicate", "reading").option("columns", COLUMNS)
        query = sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(store)
        assert query.awaitTermination(120)
        assert query.exception() is None

    pour()
    # Spark forgets that it has committed the batch, as if it had been killed: it is delivered again.
    shutil.rmtree(checkpoint / "commits")
    pour()
    with ze.open(store) as kb:
        assert kb.version == 4
        assert list(kb.streams.values()) == [0]
        assert "1 row with a null left out" in kb.log()[2].message
        assert {fact.args[1].lexical for fact in kb.facts() if fact.relation == "alarm"} == {  # type: ignore[union-attr]
            "9.35E1", "9.9E1", "9.0E1", "1.2E2",
        }  # fmt: skip


def test_a_streaming_dataframe_is_followed_exactly_once(
    session: SparkSession, store: str, tmp_path: Path
) -> None:
    landing, checkpoint = tmp_path / "landing", tmp_path / "checkpoint"
    frame = session.createDataFrame([("s20", 120.0)], "sensor string, value double")
    frame.write.parquet(str(landing / "a"))
    stream = session.readStream.schema("sensor string, value double").parquet(f"{landing}/*")
    applied: list[ze.ChangeReport] = []
    with ze.open(store, spark=session) as kb:
        for _ in range(2):
            query = kb.stream(
                stream,
                "reading",
                checkpoint=str(checkpoint),
                applied=applied.append,
                sensor=ze.iri("http://farm/{sensor}"),
                value=...,
            )
            assert query.awaitTermination(120)
            assert query.exception() is None
            shutil.rmtree(checkpoint / "commits")
        assert [report.version_after for report in applied] == [3]
        assert kb.query("alarm(<http://farm/s20>, V)")["V"] == [120.0]
        with pytest.raises(ZodiacError, match="is no stream"):
            kb.stream(frame, "reading", checkpoint="x")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no predicate of"),
        ({"predicate": "alrm"}, "did you mean alarm"),
        ({"predicate": "alarm", "version": "one"}, "the option version is a number"),
        ({"predicate": "alarm", "columns": "a=<"}, "which is no column"),
        ({"predicat": "alarm"}, "there is no option predicat\n.*did you mean predicate"),
        ({"predicate": "alarm", "startVersion": "1"}, "there is no option startversion"),
        ({"predicate": "alarm", "header": "true"}, "choose one of: predicate, columns, version"),
        ({"predicate": "alarm", "pushdown": "yes"}, "the option pushdown is true or false, not 'yes'"),
    ],
)
def test_wrong_options_are_told(
    options: dict[str, str], words: str, session: SparkSession, store: str
) -> None:
    with pytest.raises(PySparkException, match=words):
        session.read.format("zodiac").options(**options).load(store)


def test_an_unknown_option_is_told_wherever_it_is_given(
    session: SparkSession, store: str, tmp_path: Path
) -> None:
    frame = session.createDataFrame([("s8", 85.0)], "sensor string, value double")
    with pytest.raises(PySparkException, match="did you mean create"):
        frame.write.format("zodiac").mode("append").options(predicate="reading", creates="true").save(store)
    with pytest.raises(PySparkException, match="did you mean columns"):
        session.sql(f"create temporary view v using zodiac options (path '{store}', column 'a')")
    reader = session.readStream.format("zodiac").schema(FEED)
    with pytest.raises(PySparkException, match="did you mean startingVersion"):
        stream(reader.options(predicate="alarm", startingversions="1").load(store), tmp_path / "in")
    with pytest.raises(PySparkException, match="several stores are named"):
        session.read.format("zodiac").option("predicate", "alarm").load([store, store])
    rates = session.readStream.format("rate").load().selectExpr("'s9' sensor", "double(value) value")
    writer = rates.writeStream.format("zodiac").queryName("rates").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "out")).options(
        predicate="reading", waits="3"
    )
    with pytest.raises(PySparkException, match="did you mean wait"):
        writer.start(store).awaitTermination(60)


def stream(frame: DataFrame, checkpoint: Path) -> None:
    """Run a stream once over all that is there."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination(60)


def test_a_table_of_the_catalog_is_refused(session: SparkSession, store: str) -> None:
    """Spark tells its options when the table is made, and neither when it is read nor written."""

    def made_and_read() -> int:
        session.sql(f"create table readings using zodiac options (path '{store}', predicate 'reading')")
        return session.table("readings").count()

    try:
        with pytest.raises(PySparkException, match="cannot be a table of the catalog"):
            made_and_read()
    finally:
        session.sql("drop table if exists readings")


def test_columns_of_options_are_those_of_a_mapping() -> None:
    text = 's=<http://farm/{sensor}>, value , at = time,l="{l}"@de, d="{d}"^^xsd:decimal'
    assert SourceOptions("s", "p", text).named_columns() == {
        "s": ze.iri("http://farm/{sensor}"),
        "value": ...,
        "at": "time",
        "l": ze.literal("{l}", language="de"),
        "d": ze.literal("{d}", "xsd:decimal"),
    }


def test_a_stream_without_a_name_is_refused() -> None:
    with pytest.raises(ZodiacError, match="the stream has no name"):
        StreamWriter(SourceOptions("s", "p"))


def test_a_batch_that_is_delivered_again_is_not_applied_twice(store: str) -> None:
    options = SourceOptions(store, "reading", stream="x")
    writer = StreamWriter(options)
    batch = pa.RecordBatch.from_pydict({"a": ["<http://farm/s30>"], "b": [85.0]})
    message = writer.write(iter([batch]))
    assert isinstance(message, Written)
    for _ in range(2):
        writer.commit([message, None], 0)
    with ze.open(store, read_only=True) as kb:
        assert kb.version == 3
