"""Run by `spark-submit` in a test: executors have the package from an environment that was sent along.

Prints one line of JSON: where tasks found the package and the interpreter, and what a closure came to.
"""

from __future__ import annotations

import json
import sys

from zodiacedge.engine.api import Settings
from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

RULES = "b: path(X, Y) :- e(X, Y) . t: path(X, Y) :- path(X, Z), e(Z, Y) . e(a, b) . e(b, c) . e(c, d) ."


def main() -> None:
    """Do all of it."""
    engine = SparkEngine(cluster=Cluster(ship=False))
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_rules(RULES)

    # A function of this file goes to the tasks by value: they do not have the file.
    def place(_: int) -> tuple[str, str, bool]:
        import sys as there  # noqa: PLC0415 - the executor's, not the driver's

        import zodiacedge  # noqa: PLC0415
        from zodiacedge.engine.embedded.kernels.jit import COMPILED  # noqa: PLC0415

        return str(zodiacedge.__file__), there.executable, COMPILED

    context = engine.jobs.session.sparkContext
    places = context.parallelize(range(4), 4).map(place).collect()
    outcome = {
        "places": sorted(set(places)),
        "strategy": change.report.nodes[0].strategy,
        "paths": len(kb.query("?- path(X, Y) .").rows),
        "master": context.master,
    }
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main()
