"""A store in an object store on Spark, whose tasks read and write its objects: a program of its own.

It is one because tasks see the environment that Spark was started in. Run with the address of the store; it
says what the store holds, and where the second writer of two ended.
"""

from __future__ import annotations

import json
import sys

import zodiacedge as ze
from processes.streamer import QUICK
from zodiacedge.engine.api import Settings
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.keeping import SparkKeeping
from zodiacedge.engine.spark.place import Options
from zodiacedge.knowledge import KnowledgeBase
from zodiacedge.store.durable import DurableStore
from zodiacedge.store.place import located


def on(engine: SparkEngine, address: str) -> KnowledgeBase:
    """Open a store on Spark."""
    kb = KnowledgeBase(engine, Settings())
    kb.open_store(DurableStore.open(located(address), create=True, writable=True, keeping=SparkKeeping()))
    return kb


def main(address: str) -> None:
    """Change the store from tasks, open it again, and let another engine be first once."""
    # So few rows are the driver's own that tasks and plans do the rest.
    engine = SparkEngine(cluster=QUICK, options=Options(gather_rows=200, driver_rows=20))
    with on(engine, address) as kb, kb.change("edges") as c:
        c.add_rules("r1: path(X, Y) :- edge(X, Y) .  r2: even(X, Z) :- edge(X, Y), edge(Y, Z) .")
        c.add_facts([("edge", n, n + 1) for n in range(300)])
    with on(engine, address) as kb:
        counts = [len(kb.query(f"?- {name}(X, Y) .")) for name in ("edge", "path", "even")]
        with ze.open(address) as other, other.change("by the other engine") as c:
            c.add_facts([("edge", 300, 301)])
        try:
            with kb.change("too late") as c:
                c.add_facts([("edge", 301, 302)])
        except ze.ZodiacError as problem:
            refused = problem.diagnostics[0].code
    with on(engine, address) as kb:
        last = kb.version, len(kb.query("?- even(X, Y) .")), kb.verify(against="embedded").ok
    sys.stdout.write(json.dumps({"counts": counts, "refused": refused, "last": last}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
