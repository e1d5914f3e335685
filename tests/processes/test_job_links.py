"""The jobs of a change link to their pages in the UI of a user's session that has one."""

from __future__ import annotations

import os
import subprocess
import sys

_JOB = """
import urllib.request

from pyspark.sql import SparkSession

import zodiacedge as ze

builder = SparkSession.builder.master("local[1]")
for name, value in {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
with ze.open(spark=spark) as kb:
    with kb.change("first") as change:
        change.add_rules("q(X) :- p(X) .")
        change.add_facts("p(a) . p(b) .")
pages = {job: urllib.request.urlopen(job.url).read().decode() for job in change.report.jobs}
assert pages
assert all(job.url.startswith(spark.sparkContext.uiWebUrl) for job in pages)
assert all(f"Details for Job {job.number}" in page and job.purpose in page for job, page in pages.items())
assert [job["url"] for job in change.report.to_dict()["jobs"]] == [job.url for job in pages]
print("seen", sum(job.purpose.startswith("change 1 (first): rule q(X)") for job in pages))
"""


def test_the_jobs_of_a_change_have_pages_that_name_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _JOB],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["seen 1"], done.stderr
