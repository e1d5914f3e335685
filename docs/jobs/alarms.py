r"""A nightly job for `spark-submit`: the readings of a day into a store, and the changed alarms out of it.

spark-submit alarms.py --store /lake/farm.zodiac --rules farm.rules \
        --readings /lake/readings/2026-05-02 --changes /lake/alarm_changes
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import zodiacedge as ze


def main() -> None:
    """Run the job: running it again for the same day adds nothing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True, help="the store, made by the first run")
    parser.add_argument("--rules", required=True, type=Path, help="the rules in force from now on")
    parser.add_argument("--readings", required=True, help="Parquet files of the day: sensor, celsius")
    parser.add_argument(
        "--changes", required=True, help="Parquet files of changed alarms, which are appended to"
    )
    parser.add_argument("--scratch", default="", help="a folder that the whole cluster sees")
    asked = parser.parse_args()
    spark = SparkSession.builder.appName("alarms").getOrCreate()
    with ze.open(asked.store, create=True, spark=spark, scratch=asked.scratch) as kb:
        with kb.change(asked.readings) as change:
            change.sync_rules(asked.rules)
            change.add_facts(spark.read.parquet(asked.readings), "reading", sensor=..., celsius=...)
        columns = {"sensor": ..., "celsius": ...}
        sides = (("insert", change.report.inserted), ("delete", change.report.deleted))
        frames = [
            side("alarm", **columns).to_spark().withColumn("change", F.lit(name)) for name, side in sides
        ]
        changed = frames[0].unionByName(frames[1]).withColumn("version", F.lit(kb.version))
        if change.report.committed:
            changed.write.mode("append").parquet(asked.changes)
        print(change.report)
    spark.stop()


if __name__ == "__main__":
    main()
