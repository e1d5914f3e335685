"""More than one process: two executors of their own, the package shipped to them, one of them killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, java: None) -> dict[str, object]:  # noqa: ARG001 - needed
    folder = tmp_path_factory.mktemp("cluster")
    environment = {**os.environ, "SPARK_WORKER_DIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    script = Path(__file__).with_name("on_cluster.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_executors_find_the_package_that_was_shipped(outcome: dict[str, object]) -> None:
    assert outcome["executors"] == 2
    assert outcome["homes"] == ["./zodiacedge.zip/zodiacedge/__init__.py"]


def test_programs_give_what_they_give_everywhere(outcome: dict[str, object]) -> None:
    assert outcome["different"] == []


def test_small_changes_are_looked_up_by_executors(outcome: dict[str, object]) -> None:
    assert outcome["changes_different"] == []
    assert outcome["changes_elsewhere"] == []
    jobs = outcome["changes_jobs"]
    assert isinstance(jobs, list)
    # One compares the facts, one looks up, and one brings the rules up to date: none was the driver's alone.
    assert min(jobs) >= 3


def test_nodes_in_parts_give_what_they_give_everywhere(outcome: dict[str, object]) -> None:
    assert outcome["parts_same"] is True
    assert outcome["in_parts"] == 10


def test_an_executor_that_is_killed_in_the_middle_of_a_recursion_costs_nothing_but_time(
    outcome: dict[str, object],
) -> None:
    assert outcome["killed"] == 1
    assert outcome["rounds"] == 8
    assert outcome["same"] is True
