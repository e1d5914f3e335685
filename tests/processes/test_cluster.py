"""More than one process: two executors of their own, the package shipped to them, one of them killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from processes import environments


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("cluster")
    script = Path(__file__).with_name("on_cluster.py")
    environment = {**os.environ, "SPARK_HOME": str(spark_home(folder)), "SPARK_LOCAL_DIRS": str(folder)}
    # Linked kernels do not say which of them were used.
    environment["ZODIAC_JIT"] = "1"
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def spark_home(folder: Path) -> Path:
    """Return a home of Spark where a cluster of this kind has its folder of work, instead of the real one."""
    home = folder / "spark"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":
            (home / path.name).symlink_to(path)
    return home


def test_executors_find_the_package_that_was_shipped(outcome: dict[str, Any]) -> None:
    assert outcome["homes"] == ["./zodiacedge.zip/zodiacedge/__init__.py"]
    assert len(outcome["executors"]) == 2
    assert outcome["executors"] == outcome["processes"]


def test_executors_take_the_kernels_that_were_compiled_beforehand(outcome: dict[str, Any]) -> None:
    assert outcome["kernels_taken"] > 10
    assert outcome["kernels_compiled_again"] == []


def test_programs_and_sessions_give_what_they_give_everywhere(outcome: dict[str, Any]) -> None:
    assert outcome["different"] == []
    assert outcome["unexpected"] == []


def test_small_changes_are_looked_up_by_executors(outcome: dict[str, Any]) -> None:
    assert outcome["changes_different"] == []
    assert outcome["changes_elsewhere"] == []
    jobs = outcome["changes_jobs"]
    # One compares the facts, one looks up, and one brings the rules up to date: none was the driver's alone.
    assert min(jobs) >= 3


def test_nodes_in_parts_give_what_they_give_everywhere(outcome: dict[str, Any]) -> None:
    assert outcome["parts_same"] is True
    assert outcome["in_parts"] == 10


def test_an_executor_that_is_killed_in_a_task_of_a_round_costs_nothing_but_time(
    outcome: dict[str, Any],
) -> None:
    told = outcome["in_rounds"]
    assert told["lost"]
    assert told["failed_tasks"] >= 1
    assert told["rounds"] == 8
    assert told["same"]


def test_an_executor_that_is_killed_in_a_round_on_partitions_costs_nothing_but_time(
    outcome: dict[str, Any],
) -> None:
    told = outcome["in_rounds_on_partitions"]
    assert told["lost"]
    assert told["failed_tasks"] >= 1
    assert any(strategy.startswith("semi-naive in rounds") for strategy in told["strategies"])
    assert told["same"]


def test_an_executor_that_is_killed_in_the_fixpoint_of_a_part_costs_nothing_but_time(
    outcome: dict[str, Any],
) -> None:
    told = outcome["in_parts_killed"]
    assert told["lost"]
    assert told["failed_tasks"] >= 1
    assert any(strategy.startswith("partitioned: ") for strategy in told["strategies"])
    assert told["same"]


# It copies and packs half a gigabyte, which takes longer than all the rest.
@pytest.mark.soak
def test_executors_run_an_environment_that_was_sent_along(tmp_path: Path) -> None:
    """The commands of `docs/spark.md`, but for what needs a network: `environments` does what pip would."""
    environments.make(tmp_path / "env")
    tar = ["tar", "-czf", "env.tar.gz", "-C", "env", "."]
    subprocess.run(tar, cwd=tmp_path, check=True)
    home = spark_home(tmp_path)
    command = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
    command += ["--archives", "env.tar.gz#env", str(Path(__file__).with_name("submitted_job.py"))]
    environment = {**os.environ, "PYSPARK_PYTHON": "./env/bin/python", "SPARK_HOME": str(home)}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment | {"SPARK_LOCAL_DIRS": str(tmp_path), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert told["master"] == "local-cluster[2,1,1024]"
    assert told["paths"] == 6
    assert "in one task" in told["strategy"]
    assert len(told["places"]) == 2
    for package, interpreter, compiled in told["places"]:
        # Where executors work, each in a folder of its own.
        assert Path(interpreter).is_relative_to(home / "work")
        assert Path(package).is_relative_to(Path(interpreter).parents[1])
        assert compiled
