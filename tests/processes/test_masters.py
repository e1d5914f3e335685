"""Masters: the one that spark-submit was given is used, and one that is not there is told in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import UsageProblem

_JOB = """
import os
import zodiacedge as ze

with ze.open(engine="spark") as kb:
    with kb.change() as change:
        change.add_rules("q(X) :- p(X) .")
        change.add_facts("p(a) . p(b) .")
    context = kb.state.workspace.jobs.session.sparkContext
    print(context.master, os.environ["PYSPARK_PYTHON"], len(kb.query("?- q(X) .")))
"""


def test_a_submitted_job_runs_on_the_master_it_was_submitted_to(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(_JOB)
    submit = Path(sys.executable).with_name("spark-submit")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [str(submit), "--master", "local[1]", str(job)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == [f"local[1] {sys.executable} 2"], done.stderr


def test_a_master_that_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    program = tmp_path / "a.rules"
    program.write_text("p(a) . q(X) :- p(X) .")
    command = [
        sys.executable,
        "-m",
        "zodiacedge",
        "run",
        str(program),
        "--engine",
        "spark",
        "--master",
        "foo",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "U019" in done.stderr
    assert "Spark does not start on foo" in done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


def test_a_way_a_seed_or_a_number_of_bits_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageProblem, match="there is no way"):
        Options(strategy="distributed")
    for bits in (0, 64):
        with pytest.raises(UsageProblem, match="bits"):
            SparkEngine(bits=bits)
    for seed in (2**63, -(2**63) - 1):
        with pytest.raises(UsageProblem, match="a seed is a number of 64 bits"):
            SparkEngine(seed=seed)
