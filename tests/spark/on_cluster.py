"""Run by `test_cluster` in a process of its own: two executors, and the package shipped to them.

Prints one line of JSON: where executors found the package, what differs from the definition, how small
changes went for which executors look rows up, and what became of a recursion in the middle of which an
executor was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pyspark

sys.path.insert(0, str(Path(__file__).parents[1]))

from engine.test_golden_programs import GOLDEN, transcript
from spark import test_parts, test_small_changes
from strategies import evaluate_text
from zodiacedge.engine.api import Progress, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.place import Options
from zodiacedge.engine.spark.session import Cluster
from zodiacedge.knowledge import KnowledgeBase

PROGRAMS = ("aggregates", "dropped_bindings", "mutual_recursion")
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    # Kernels from a shipped archive would be compiled anew by every worker; little data needs no compiler.
    "spark.executorEnv.ZODIAC_PURE_PYTHON": "1",
}
CLUSTER = Cluster("local-cluster[2,1,1024]", SETTINGS)
CITIES = 300
ROUNDS = 8
RULES = "r: At(X, Y) :- At(X, Z), e(Z, Y) . At(a, n0) . " + " ".join(
    f"e(n{n}, n{n + 1}) ." for n in range(ROUNDS)
)


def place(_: int) -> tuple[str, int]:
    """Return where a task finds the package, and which process is its executor."""
    import zodiacedge  # noqa: PLC0415 - the executor's, not the driver's

    parent = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="ascii")
    # The worker's parent is a daemon, and the daemon's is the executor.
    return str(zodiacedge.__file__), int(parent.rpartition(")")[2].split()[1])


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
        elsewhere += [node.means for node in nodes if "looked up by key" not in node.means]
    return {"changes_different": different, "changes_elsewhere": elsewhere, "changes_jobs": jobs}


def parts() -> dict[str, object]:
    """Evaluate a program in parts that both executors have some of."""
    engine = SparkEngine(cluster=CLUSTER, options=Options(way="partitioned"))
    facts = []
    for one in (EmbeddedEngine(), engine):
        kb = KnowledgeBase(one, Settings())
        with kb.change() as change:
            change.add_rules(test_parts.PROGRAM + test_parts.facts(1, 40))
        facts.append(kb.facts())
    in_parts = [node.rules[0] for node in change.report.nodes if node.means.startswith("in parts: ")]
    return {"parts_same": facts[0] == facts[1], "in_parts": len(in_parts)}


def differences(engine: SparkEngine) -> list[str]:
    """Return the golden programs that do not give what is expected."""
    found = []
    for name in PROGRAMS:
        path = GOLDEN / "programs" / f"{name}.rules"
        lines = path.with_suffix(".expected").read_text(encoding="utf-8").splitlines()
        expected = [line for line in lines if line and not line.startswith("#")]
        queries = [line for line in expected if line.startswith("?-") or ":-" in line]
        if transcript(evaluate_text(path.read_text(encoding="utf-8"), engine=engine), queries) != expected:
            found.append(name)
    return found


def killed(executors: list[int]) -> dict[str, object]:
    """Kill an executor while a recursion is in its rounds; return what the rounds gave all the same."""
    done: list[int] = []

    def kill(progress: Progress) -> None:
        if progress.round == ROUNDS // 2 and not done:
            done.append(executors[0])
            os.kill(executors[0], signal.SIGKILL)

    engine = SparkEngine(cluster=CLUSTER, options=Options(way="rounds"))
    facts = []
    for one in (EmbeddedEngine(), engine):
        kb = KnowledgeBase(one, Settings(progress=kill if one is engine else None))
        with kb.change() as change:
            change.add_rules(RULES)
        facts.append(kb.facts())
    return {"killed": len(done), "same": facts[0] == facts[1], "rounds": change.report.nodes[0].rounds}


def main() -> None:
    """Do all of it."""
    engine = SparkEngine(cluster=CLUSTER)
    places = engine.jobs.each(place, list(range(8)), "asking where things are")
    executors = sorted({pid for _, pid in places})
    outcome = {
        "homes": sorted({home for home, _ in places}),
        "executors": len(executors),
        "different": differences(engine),
        **small_changes(),
        **parts(),
        **killed(executors),
    }
    engine.jobs.session.stop()
    # A cluster of this kind works in a folder of Spark's own installation.
    shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)
    print(json.dumps(outcome))  # noqa: T201 - the outcome goes to the test


if __name__ == "__main__":
    main()
