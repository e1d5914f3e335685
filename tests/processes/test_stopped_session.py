"""A knowledge base on a session that its owner stops."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
from pyspark.sql import SparkSession
import zodiacedge as ze

session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
kb = ze.open(spark=session)
with kb.change() as change:
    change.add_rules("p(X) :- q(X) .  q(a) .")
session.stop()


def refused(call):
    try:
        call()
    except ze.ZodiacError as error:
        print(error.diagnostics[0].code)


def changed():
    with kb.change() as change:
        change.add_facts("q(b) .")


refused(changed)
refused(lambda: ze.open(spark=session))
"""


def test_a_stopped_session_is_refused_with_what_to_do() -> None:
    command = [sys.executable, "-c", SCRIPT]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["U035", "U035"]
