"""Run by `test_cluster` in a process of its own: two executors, and the package shipped to them.

Prints one line of JSON: where executors found the package and its compiled kernels, what differs from the
definition, how small changes went for which executors look rows up, and what became of recursions in the
middle of which an executor was killed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from engine.test_golden_programs import GOLDEN
from engine.test_golden_programs import differences as golden
from maintenance.test_golden_sessions import play, steps_of
from processes.executor_killer import Killer, executors
from spark import test_partitioned, test_small_changes
from zodiacedge.engine.api import Progress, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.warm_up import warm
from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase

PROGRAMS = ("aggregates", "dropped_bindings", "mutual_recursion")
SESSIONS = ("mixed_transaction", "support_in_a_circle")
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    # A machine that stood still for minutes has lost nobody; a process that is killed is missed at once.
    "spark.network.timeout": "3600s",
    # What Spark knows of tasks that run is told without delay.
    "spark.ui.liveUpdate.period": "0",
}
CLUSTER = Cluster("local-cluster[2,1,1024]", SETTINGS)
CITIES = 300
NODES = 400
CLOSURE = "b: path(X, Y) :- e(X, Y) . t: path(X, Y) :- path(X, Z), e(Z, Y) . " + " ".join(
    f"e(n{n}, n{(n * 7 + step) % NODES}) ." for n in range(NODES) for step in (1, 2, 3)
)
PAIRS = CLOSURE.replace("e(Z, Y)", "path(Z, Y)")
ROUNDS = 8
# A sum may have no value, so its rounds are plans.
RULES = "r: At(X, M) :- At(X, N), e(N), M = N + 1 . At(a, 0) . " + " ".join(
    f"e({n}) ." for n in range(ROUNDS)
)


def place(_: int) -> tuple[str, int]:
    """Return where a task finds the package, and which process is its executor."""
    import zodiacedge  # noqa: PLC0415 - the executor's, not the driver's

    parent = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="ascii")
    # The worker's parent is a daemon, and the daemon's is the executor.
    return str(zodiacedge.__file__), int(parent.rpartition(")")[2].split()[1])


def kernels(_: int) -> tuple[set[str], set[str]]:
    """Return which kernels this process took from the cache, and which it compiled."""
    from numba.core.dispatcher import Dispatcher  # noqa: PLC0415 - the executor's, not the driver's

    taken, compiled = set(), set()
    for name, module in list(sys.modules.items()):
        if name.startswith("zodiacedge.engine.embedded."):
            for one in vars(module).values():
                if isinstance(one, Dispatcher):
                    taken |= {f"{one.py_func.__name__}{sig}" for sig in one.stats.cache_hits}
                    compiled |= {f"{one.py_func.__name__}{sig}" for sig in one.stats.cache_misses}
    return taken, compiled


def small_changes() -> dict[str, object]:
    """Change a few facts of many: executors look up by key what that concerns, and one maintains it."""
    engine = SparkEngine(cluster=CLUSTER, options=Options(look_up_from=100, whole_rows=0))
    found, expected = KnowledgeBase(engine, Settings()), KnowledgeBase(EmbeddedEngine(), Settings())
    for kb in (found, expected):
        with kb.change() as change:
            change.add_rules(test_small_changes.RULES)
            change.add_facts(test_small_changes.facts(CITIES))
    different, elsewhere, jobs = [], [], []
    for kind, text, _ in test_small_changes.changes(CITIES):
        before = engine.jobs.count()
        nodes, told = test_small_changes.changed(found, kind, text)
        jobs.append(engine.jobs.count() - before)
        same = told == test_small_changes.changed(expected, kind, text)[1]
        if not same or test_small_changes.segments(found) != test_small_changes.segments(expected):
            different.append(text)
        elsewhere += [node.strategy for node in nodes if "looked up by key" not in node.strategy]
    return {"changes_different": different, "changes_elsewhere": elsewhere, "changes_jobs": jobs}


def parts() -> dict[str, object]:
    """Evaluate a program in parts that both executors have some of."""
    engine = SparkEngine(cluster=CLUSTER, options=Options(strategy="partitioned"))
    facts = []
    for one in (EmbeddedEngine(), engine):
        kb = KnowledgeBase(one, Settings())
        with kb.change() as change:
            change.add_rules(test_partitioned.PROGRAM + test_partitioned.facts(1, 40))
        facts.append(kb.facts())
    in_parts = [node.rules[0] for node in change.report.nodes if node.strategy.startswith("partitioned: ")]
    return {"parts_same": facts[0] == facts[1], "in_parts": len(in_parts)}


def differences(engine: SparkEngine) -> list[str]:
    """Return the golden programs that do not give what is expected."""
    return [name for name in PROGRAMS if golden(GOLDEN / "programs" / f"{name}.rules", engine)]


def unexpected(engine: SparkEngine) -> list[str]:
    """Return the steps of golden sessions that do not go as expected."""
    found = []
    for name in SESSIONS:
        kb = KnowledgeBase(engine, Settings())
        for step in steps_of(GOLDEN / "sessions" / f"{name}.session"):
            found += play(kb, step)
    return found


def killed_in_rounds() -> dict[str, object]:
    """Kill an executor that runs a task of a recursion's round; return what the rounds gave all the same."""
    engine = SparkEngine(cluster=CLUSTER, options=Options(strategy="rounds"))
    expected, found = KnowledgeBase(EmbeddedEngine(), Settings()), None
    with Killer(engine.jobs.session.sparkContext) as killer:

        def middle(progress: Progress) -> None:
            if progress.round == ROUNDS // 2:
                killer.go()

        found = KnowledgeBase(engine, Settings(progress=middle))
        for kb in (expected, found):
            with kb.change() as change:
                change.add_rules(RULES)
        same = found.facts() == expected.facts()
    return {"same": same, "rounds": change.report.nodes[0].rounds, **killer.outcome()}


def killed_in_partitions(strategy: str, program: str) -> dict[str, object]:
    """Kill an executor that runs a fixpoint on a partition; return what the partitions gave all the same."""
    engine = SparkEngine(cluster=CLUSTER, options=Options(strategy=strategy))
    expected, found = (KnowledgeBase(one, Settings()) for one in (EmbeddedEngine(), engine))

    with Killer(engine.jobs.session.sparkContext) as killer:

        def middle(why: str) -> None:
            if why.startswith("deriving facts in partitions"):
                killer.go()

        with engine.jobs.telling(middle):
            for kb in (expected, found):
                with kb.change() as change:
                    change.add_rules(program)
        same = found.facts() == expected.facts()
    strategies = [node.strategy for node in change.report.nodes]
    return {"same": same, "strategies": strategies, **killer.outcome()}


def main() -> None:
    """Do all of it."""
    warm()
    beforehand = set().union(*kernels(0))
    engine = SparkEngine(cluster=CLUSTER)
    places = engine.jobs.each(place, list(range(8)), "asking where things are")
    outcome = {
        "homes": sorted({home for home, _ in places}),
        "executors": sorted({pid for _, pid in places}),
        "processes": sorted(executors(engine.jobs.session.sparkContext).values()),
        "different": differences(engine),
        "unexpected": unexpected(engine),
        **small_changes(),
        **parts(),
    }
    used = engine.jobs.each(kernels, list(range(8)), "asking for kernels")
    outcome |= {
        "kernels_taken": len(set().union(*(taken for taken, _ in used)) & beforehand),
        "kernels_compiled_again": sorted(set().union(*(anew for _, anew in used)) & beforehand),
        "in_rounds": killed_in_rounds(),
        "in_parts_killed": killed_in_partitions("partitioned", CLOSURE),
        "in_rounds_on_partitions": killed_in_partitions("rounds", PAIRS),
    }
    engine.jobs.session.stop()
    print(json.dumps(outcome))  # noqa: T201 - the outcome goes to the test


if __name__ == "__main__":
    main()
