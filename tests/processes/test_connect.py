"""Spark Connect: the shared suite and a pipeline on a client; the notebook and the job for users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zodiacedge as ze

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
NOTEBOOK = DOCS / "notebooks" / "alarms.ipynb"


def outcome(most: int, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(HERE / "on_connect.py"), str(most)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any]) -> None:
    assert found["module"] == "pyspark.sql.connect.session"
    assert found["unexpected"] == []
    assert found["same_settings"]
    assert found["tags"] == []
    assert found["pipeline"] == {
        "joined": [["s1", 187.0, "Oslo"]],
        "dropped": 1,
        "gone": [["<http://farm/s1>", 187.0]],
        "empty": 0,
        "verified": True,
        # A client is not told which jobs its operations ran, so a report has no links to them.
        "jobs": 0,
        # Batches of a stream go to a process beside the server, which has not this knowledge base.
        "streamed": "U032",
    }


def test_a_pipeline_and_a_sample_of_the_shared_suite(tmp_path: Path) -> None:
    check(outcome(1, tmp_path))


@pytest.mark.soak
def test_the_shared_suite(tmp_path: Path) -> None:
    check(outcome(0, tmp_path))


@pytest.mark.parametrize(
    "remote", [pytest.param("", id="classic"), pytest.param("local[2]", id="connect", marks=pytest.mark.soak)]
)
def test_the_notebook_runs_from_an_empty_folder(remote: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_TESTING": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        **({"SPARK_REMOTE": remote} if remote else {"MASTER": "local[2]"}),
    }
    script = (
        "import sys, nbformat; from nbclient import NotebookClient; "
        "NotebookClient(nbformat.read(sys.argv[1], 4), timeout=900, kernel_name='python3').execute()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(NOTEBOOK)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert list((tmp_path / "alarm_changes").glob("*.parquet"))


@pytest.mark.soak
def test_the_job_appends_changed_alarms_and_nothing_when_it_runs_again(tmp_path: Path) -> None:
    rules, readings, changes = tmp_path / "farm.rules", tmp_path / "readings", tmp_path / "changes"
    rules.write_text("alarm(S, C) :- reading(S, C), C > 80 .", encoding="utf-8")
    readings.mkdir()
    pq.write_table(pa.table({"sensor": ["s1", "s2"], "celsius": [93.5, 20.0]}), readings / "a.parquet")
    store = tmp_path / "farm.zodiac"
    arguments = ["--store", str(store), "--rules", str(rules), "--readings", str(readings)]
    submit = Path(sys.executable).with_name("spark-submit")
    command = [str(submit), "--master", "local[2]", str(DOCS / "jobs" / "alarms.py"), *arguments]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    for _ in range(2):
        subprocess.run(
            [*command, "--changes", str(changes)],
            env=environment,
            check=True,
            capture_output=True,
            timeout=900,
        )
    assert pq.read_table(changes).to_pylist() == [
        {"sensor": "s1", "celsius": 93.5, "change": "insert", "version": 1}
    ]
    with ze.open(store, read_only=True) as kb:
        assert kb.version == 1
