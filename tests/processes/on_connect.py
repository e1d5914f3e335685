"""Run by `test_connect` in a process of its own, whose Spark session is a client of Spark Connect.

Prints one line of JSON: which programs, sessions and random sessions of the shared suite go otherwise than on
the reference evaluator, and what a pipeline gives. The argument is how many of each are played, 0 for all.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))
# The server in this process takes any port that is free.
os.environ |= {"SPARK_TESTING": "1", "PYSPARK_PYTHON": sys.executable}

from pyspark.sql import SparkSession

import zodiacedge as ze
from engine.test_golden_programs import PROGRAMS
from engine.test_golden_programs import differences as golden
from maintenance.test_golden_sessions import SESSIONS, play, steps_of
from spark.test_shared_suite import follow
from zodiacedge.engine.api import Settings
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import ZodiacError
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path as Place

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
SAMPLE = ("aggregates", "dropped_bindings", "mutual_recursion", "mixed_transaction", "support_in_a_circle")
SEEDS = 12


def chosen(paths: list[Place], most: int) -> list[Place]:
    """Return the sample of golden files, or all of them."""
    return [path for path in paths if not most or path.stem in SAMPLE[:most]]


def unexpected(session: SparkSession, most: int) -> Iterator[str]:
    """Yield what goes otherwise than expected, of golden programs, golden sessions and random ones."""
    for options in (Options(), Options(strategy="rounds")):
        engine = SparkEngine(session=session, options=options)
        for path in chosen(list(PROGRAMS), most):
            yield from golden(path, engine)
    engine = SparkEngine(session=session)
    for path in chosen(list(SESSIONS), most * 2):
        kb = KnowledgeBase(engine, Settings())
        yield from (text for step in steps_of(path) for text in play(kb, step))
    for seed in range(min(most, 1) if most else SEEDS):
        try:
            follow(seed, engine)
        except AssertionError as problem:
            yield f"seed {seed}: {problem}"


def pipeline(session: SparkSession) -> dict[str, object]:
    """Put DataFrames in, change them, and take DataFrames out."""
    sensor = ze.iri("http://farm/{sensor}")
    readings = session.createDataFrame([("s1", 93.5), ("s2", None)], "sensor string, value double")
    kb = ze.open(spark=session, options=ze.SparkOptions(driver_rows=0))
    kb.function(lambda value: value * 2, name="double")
    with kb.change() as change:
        change.add_rules("alarm(S, W) :- reading(S, V), V > 80, W := func:double(V) .")
        change.add_facts(readings, "reading", sensor=sensor, value=...)
    named = kb.table("alarm", sensor=sensor, value=...)
    sites = session.createDataFrame([("s1", "Oslo")], "sensor string, site string")
    dropped = change.loads[0].bad
    with kb.change() as change:
        change.remove_facts(readings, "reading", sensor=sensor, value=...)
    streamed = ""
    try:
        stream = session.readStream.format("rate").load()
        ze.open("farm.zodiac", create=True).stream(stream, "p", checkpoint="checkpoint")
    except ZodiacError as problem:
        streamed = problem.diagnostics[0].code
    return {
        "joined": [list(row) for row in named.join(sites, "sensor").collect()],
        "dropped": dropped,
        "gone": [list(row) for row in change.report.deleted("alarm").to_spark().collect()],
        "empty": kb.table("alarm").count(),
        "verified": kb.verify().ok,
        "jobs": len(change.report.jobs),
        "streamed": streamed,
    }


def main() -> None:
    """Do all of it."""
    builder = SparkSession.builder.remote("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    before = dict(session.conf.getAll)
    outcome = {
        "module": type(session).__module__,
        "pipeline": pipeline(session),
        "unexpected": list(unexpected(session, int(sys.argv[1]))),
        "same_settings": dict(session.conf.getAll) == before,
        "tags": sorted(session.getTags()),
    }
    session.stop()
    print(json.dumps(outcome))  # noqa: T201 - the outcome goes to the test


if __name__ == "__main__":
    main()
