"""Run by `test_standalone`: a user's session on a standalone cluster, one of whose workers is killed.

The arguments are the master's URL, a scratch folder, and the number of the process group of a worker. Prints
one line of JSON: whether all went as on the embedded engine.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import zodiacedge as ze

NODES = 300
ROUNDS = 8
RULES = "r: At(X, Y) :- At(X, Z), e(Z, Y) . At(a, n0) . " + " ".join(
    f"e(n{n}, n{n + 1}) ." for n in range(ROUNDS)
)
CLOSURE = "b: path(X, Y) :- edge(X, Y) . t: path(X, Y) :- path(X, Z), edge(Z, Y) ."


def main() -> None:
    """Do all of it."""
    master, scratch, worker = sys.argv[1:]
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.submit.pyFiles": str(ze.package_archive()),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    before = dict(session.conf.getAll)
    edges = session.range(NODES).selectExpr("id as a", f"(id * 7 + 1) % {NODES} as b")
    found = ze.open(spark=session, scratch=scratch)
    expected = ze.open()
    for kb in (found, expected):
        with kb.change() as change:
            change.add_rules(CLOSURE)
            change.add_facts(edges, "edge")
    same = found.facts() == expected.facts()
    killed = False

    def middle(progress: object) -> None:
        nonlocal killed
        if getattr(progress, "round", 0) == ROUNDS // 2 and not killed:
            killed = True
            os.killpg(int(worker), signal.SIGKILL)

    rounds = ze.open(
        spark=session, scratch=scratch, options=ze.SparkOptions(strategy="rounds"), progress=middle
    )
    beside = ze.open()
    for kb in (rounds, beside):
        with kb.change() as change:
            change.add_rules(RULES)
    outcome = {
        "master": session.sparkContext.master,
        "same": same,
        "table": found.table("path").count() == len(found.query("path(X, Y)")),
        "killed": killed,
        "same_after_the_kill": rounds.facts() == beside.facts(),
        "settings": dict(session.conf.getAll) == before,
        "folders": len(list(Path(scratch).iterdir())),
    }
    print(json.dumps(outcome))  # noqa: T201 - the outcome goes to the test
    session.stop()


if __name__ == "__main__":
    main()
