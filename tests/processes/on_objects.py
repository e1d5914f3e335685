"""A store, and files, in an object store on Spark, whose tasks read and write objects: a program of its own.

It is one because tasks see the environment that Spark was started in. Run with the address of the store, and
of files to load; it says what the store holds, where the second writer of two ended, and what the files gave.
"""

from __future__ import annotations

import json
import sys

import zodiacedge as ze
from processes.streamer import QUICK
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.persistence.adapter import SparkPersistence
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.store.knowledge_base import StoredKnowledgeBase
from zodiacedge.store.location.base import location_of
from zodiacedge.store.store import DurableStore


def on(engine: SparkEngine, address: str) -> StoredKnowledgeBase:
    """Open a store on Spark."""
    store = DurableStore.open(
        location_of(address), create=True, writable=True, persistence=SparkPersistence()
    )
    return StoredKnowledgeBase(engine, Settings(), store)


def loaded(engine: SparkEngine | EmbeddedEngine, files: str) -> tuple[list[str], object]:
    """Return the facts of files, and what the load told of them."""
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as c:
        report = c.load(files)
    return sorted(map(str, kb.facts())), report.to_dict() | {"seconds": 0}


def refused(engine: SparkEngine, files: str) -> str:
    """Return the code of what files are refused with."""
    try:
        loaded(engine, files)
    except ze.ZodiacError as problem:
        return problem.diagnostics[0].code
    return ""


def main(address: str, files: str) -> None:
    """Change the store from tasks, open it again, and let another engine be first once."""
    # So few rows are the driver's own that tasks and plans do the rest.
    engine = SparkEngine(cluster=QUICK, options=Options(gather_rows=200, driver_rows=20, split_bytes=500))
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
            late = problem.diagnostics[0].code
    with on(engine, address) as kb:
        last = kb.version, len(kb.query("?- even(X, Y) .")), kb.verify(against="embedded").ok
    found = loaded(engine, f"{files}/*")
    same = found == loaded(EmbeddedEngine(), f"{files}/*")
    told = {"counts": counts, "refused": late, "last": last, "loaded": len(found[0]), "same": same}
    told["cut"] = refused(engine, f"{files}/cut/")
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
