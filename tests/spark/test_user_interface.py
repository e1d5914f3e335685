"""The Spark engine through `ze.open`, the command line and the examples of its page; missing parts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import zodiacedge as ze
from spark.conftest import CLUSTER
from zodiacedge.cli.app import zodiac
from zodiacedge.engine.api import Settings
from zodiacedge.engine.spark import engine as spark_engine
from zodiacedge.engine.spark.cluster.session import Cluster, need_java, package_archive
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import LimitReached, UsageProblem
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.opening import open_kb

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def test_the_first_example_of_the_page_runs(spark: SparkEngine, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark.jobs.cores == 2
    (first, *_) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(first, {})  # noqa: S102 - the page's own code
    lines = capsys.readouterr().out.splitlines()
    assert all("in one task" in line for line in lines[:-1])
    assert lines[-1] == str([(ze.iri(name),) for name in "bcd"])


def test_the_settings_of_the_page_make_a_knowledge_base(spark: SparkEngine) -> None:
    assert spark.jobs.cores == 2
    (_, settings) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found: dict[str, Any] = {}
    exec(settings, found)  # noqa: S102 - the page's own code
    kb = found["kb"]
    with kb.change() as change:
        change.add_rules("q(X) :- p(X) . p(a) .")
    assert "one task takes 10,000,000" in change.report.nodes[0].strategy
    assert Path(kb.state.workspace.scratch.folder.uri).parent == Path("/tmp")  # noqa: S108 - what the page says


def test_a_seed_of_the_command_line_makes_other_fingerprints(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.jobs.cores == 2
    program, store = tmp_path / "a.rules", str(tmp_path / "a.zodiac")
    program.write_text("q(X) :- p(X) . p(a) .")
    seeds: list[int] = []

    def noted(seed: int, bits: int) -> Hashing:
        seeds.append(seed)
        return Hashing(seed, bits)

    monkeypatch.setattr(spark_engine, "Hashing", noted)
    for command in (
        ["run", str(program)],
        ["init", store, "--rules", str(program)],
        ["query", store, "?- q(X) ."],
    ):
        done = CliRunner().invoke(zodiac, [*command, "--engine", "spark", "--seed", "7"])
        assert done.exit_code == 0, done.output
        assert seeds[-1:] == [7], command
        seeds.clear()
    refused = CliRunner().invoke(zodiac, ["run", str(program), "--seed", "7"])
    assert "U017" in refused.output


def test_the_command_line_runs_on_spark(spark: SparkEngine, tmp_path: Path) -> None:
    assert spark.jobs.cores == 2
    (tmp_path / "farm.rules").write_text("hot(T) :- reading(T, N), N > 30 .")
    (tmp_path / "reading.csv").write_text("wt1,35\nwt2,20\nwt3\nwt4,40\n")
    (tmp_path / "more.session").write_text(
        "begin\n+ reading(wt9, 50) .\ncommit\n+ reading(wt9, 50) .\n+ hot(wt9) .\n"
    )
    outcomes = []
    for engine in ("embedded", "spark"):
        command = ["run", str(tmp_path / "farm.rules"), "--facts", str(tmp_path / "reading.csv"), "--json"]
        command += ["--engine", engine, "--quarantine", str(tmp_path / engine), "--query", "?- hot(X) ."]
        done = CliRunner().invoke(zodiac, [*command, "--apply", str(tmp_path / "more.session")])
        assert done.exit_code == 0, done.output
        document = json.loads(done.stdout)
        outcomes.append([document[key] for key in ("explicit", "derived", "queries", "hyper_nodes")])
        assert [path.name for path in (tmp_path / engine).iterdir()] == ["bad-lines-0001.jsonl"]
    assert outcomes[0] == outcomes[1]


def test_registered_functions_travel_to_the_tasks(spark: SparkEngine) -> None:
    kb = KnowledgeBase(spark, Settings())
    limit = 3
    kb.function(lambda value: value > limit, name="large")
    kb.aggregate(lambda values: values[0], name="FIRST")
    with kb.change() as change:
        change.add_rules(
            "l: Large(X) :- n(X, N), func:large(N) = true ."
            "f: least(X, M) :- AGGREGATE(n(X, N)) ON X WITH FIRST(N) AS M . n(a, 5) . n(a, 2) . n(b, 1) ."
        )
    assert kb.derived() == {"Large": 1, "least": 2}
    # Another function of the same name gives other facts.
    kb.function(lambda value: value < limit, name="large")
    with kb.change() as change:
        change.add_facts("n(c, 9) .")
    assert kb.derived() == {"Large": 2, "least": 3}


@pytest.mark.parametrize("way", ["gathered", pytest.param("rounds", marks=pytest.mark.soak)])
def test_functions_that_tasks_cannot_run_are_told_of(
    way: str, make_engine: Callable[[Options], SparkEngine]
) -> None:
    kb = KnowledgeBase(make_engine(Options(strategy=way)), Settings())
    lock = threading.Lock()

    def locked(value: int) -> int:
        with lock:
            return value

    def greedy(value: int) -> int:
        raise MemoryError(value)

    kb.function(locked, name="locked")
    with pytest.raises(UsageProblem, match="U026"), kb.change() as change:
        change.add_rules("l: p(M) :- n(N), M := func:locked(N) . n(5) .")
    kb.function(lambda value: value, name="locked")
    kb.function(greedy, name="greedy")
    with pytest.raises(LimitReached, match="E006"), kb.change() as change:
        change.add_rules("g: p(M) :- n(N), M := func:greedy(N) . n(5) .")
    assert not kb.facts()


def test_a_knowledge_base_can_be_verified_and_asked_with_parameters(spark: SparkEngine) -> None:
    kb = KnowledgeBase(spark, Settings())
    with kb.change() as change:
        change.add_rules("s: near(X, Y) :- near(Y, X) . near(a, b) . near(b, c) . C(a) . n(a, 5) .")
    assert kb.verify().ok
    assert kb.verify("reference").ok
    near = kb.prepare("?- near(X, Y) .", "X")
    assert [row[1] for row in near(X=ze.iri("b"))] == [ze.iri("a"), ze.iri("c")]
    assert len(near(X=ze.iri("nobody"))) == 0
    report = kb.dry_run(remove_facts="near(a, b) .")
    assert len(report.deleted) == 2
    assert len(kb.facts()) == 6


def test_another_master_in_the_same_process_is_refused(spark: SparkEngine) -> None:
    assert spark.jobs.cores == 2
    with pytest.raises(UsageProblem, match="U015"):
        Cluster("local[7]").session()
    # Whoever asks for it is told at once, and not by the first job.
    with pytest.raises(UsageProblem, match="U015"):
        ze.open(engine="spark", master="local[7]")
    assert Cluster().session() is not None
    assert CLUSTER.session().sparkContext.master == "local[2]"


def test_options_of_spark_are_refused_elsewhere() -> None:
    with pytest.raises(UsageProblem, match="U017"):
        open_kb(master="local[2]")


def test_a_scratch_folder_that_cannot_be_is_told(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.jobs.cores == 2
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    for name, reason in (("file", "not a directory"), ("nowhere://host/folder", "nowhere")):
        kb = ze.open(engine="spark", scratch=name)
        with pytest.raises(UsageProblem, match="U016") as caught, kb.change() as change:
            change.add_facts("p(a, b) .")
        (told,) = caught.value.diagnostics
        # It is called what the user called it.
        assert told.message.startswith(f"the folder {name} cannot be used for working files: ")
        assert reason in told.message
        assert "zodiacedge-" not in told.message


def test_a_scratch_folder_may_be_called_anything_and_be_below_this_one(
    make_engine: Callable[[Options], SparkEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Executors and the Java side of Spark work elsewhere.
    assert make_engine(Options()).jobs.cores == 2
    monkeypatch.chdir(tmp_path)
    options = Options(strategy="rounds")
    engine = SparkEngine(cluster=CLUSTER, scratch="work {1}, [2] 100%", options=options)
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_rules("r: At(Y) :- At(X), e(X, Y) . At(a) . e(a, b) . e(b, c) .")
    assert kb.derived() == {"At": 2}
    assert len(list((tmp_path / "work {1}, [2] 100%").iterdir())) == 1


def test_options_that_java_picks_up_hide_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    told = """Picked up JAVA_TOOL_OPTIONS: -Dname="11 or more"\nopenjdk version "21.0.2" 2024-01-16\n"""
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{told}END\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    need_java()
    java.write_text(java.read_text().replace("21.0.2", "11.0.2"))
    with pytest.raises(UsageProblem, match="Java 11 is too old"):
        need_java()


def test_without_java_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    script = "import zodiacedge as ze\nkb = ze.open(engine='spark')\nkb.query('?- p(X, Y) .')"
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment
    )
    assert "U014" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr


def test_a_master_of_other_machines_needs_a_folder_that_all_see() -> None:
    script = """
import sys
import zodiacedge as ze
for master in ("spark://nowhere:7077", "yarn", "k8s://https://nowhere:6443"):
    ze.open(engine="spark", master=master, scratch="/shared")
    try:
        ze.open(engine="spark", master=master)
    except ze.ZodiacError as problem:
        print(*[(one.code, "--scratch" in one.note) for one in problem.diagnostics])
print("pyspark" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Nothing has begun to look for the master.
    assert done.stdout.splitlines() == [*["('U023', True)"] * 3, "False"]


def test_the_archive_for_executors_holds_the_package() -> None:
    names = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(package_archive())],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in (
        "zodiacedge/__init__.py",
        "zodiacedge/engine/spark/evaluate/embedded_task.py",
        "zodiacedge/demo/rules/rs1.rules",
    ):
        assert name in names
    assert "__pycache__" not in names
