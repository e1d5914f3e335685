"""What Spark says on the terminal when it starts: nothing, but for one line of Java's own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("java")
# Java says this before anybody could ask it not to: Spark wants the module.
_JAVA = "WARNING: Using incubator modules: jdk.incubator.vector"


def test_a_run_on_spark_prints_its_results_and_no_log(tmp_path: Path) -> None:
    program = tmp_path / "a.rules"
    program.write_text("p(a) . p(b) . q(X) :- p(X) .")
    command = [
        sys.executable,
        "-m",
        "zodiacedge",
        "run",
        str(program),
        "--engine",
        "spark",
        "--master",
        "local[1]",
    ]
    mine = {name: value for name, value in os.environ.items() if name not in {"SPARK_CONF_DIR", "SPARK_HOME"}}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=mine)
    assert done.returncode == 0, done.stderr
    assert "2 derived facts" in done.stdout
    assert [line for line in done.stderr.splitlines() if line != _JAVA] == []
