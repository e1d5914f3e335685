"""The demo as `make demo` plays it: the centre on Spark, turbines without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

import zodiacedge as ze
from zodiacedge.cli.app import zodiac

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.engine.spark.engine import SparkEngine


def without_times(value: object) -> object:
    """Return a document without how long things took and when facts were stated."""
    match value:
        case dict():
            timed = {name for name in value if name == "time" or name.endswith("_seconds")}
            return {name: without_times(item) for name, item in value.items() if name not in timed}
        case list():
            return [without_times(item) for item in value]
    return value


def test_the_centre_on_spark_comes_to_the_same_story(spark: SparkEngine, tmp_path: Path) -> None:
    assert spark.jobs.cores == 2
    documents = []
    for engine in ("spark", "embedded"):
        out = tmp_path / engine
        done = CliRunner().invoke(
            zodiac, ["demo", "--turbines", "12", "--engine", engine, "--out", str(out), "--json"]
        )
        assert done.exit_code == 0, done.output
        documents.append(json.loads(done.stdout))
    for one, other in zip(*(document["diagnoses"] for document in documents), strict=True):
        assert without_times(one) == without_times(other)
    first, second = documents
    for name in ("explicit", "derived", "anomalies", "slices", "state_restored"):
        assert first[name] == second[name]
    assert first["anomalies"] == ["wt10"]
    with ze.open(tmp_path / "spark" / "farm.zodiac", read_only=True) as kb:
        digest = kb.verify().digest
        assert [entry.batch for entry in kb.log()] == [-1, 0]
    with ze.open(tmp_path / "embedded" / "farm.zodiac", read_only=True) as kb:
        assert kb.verify().digest == digest
