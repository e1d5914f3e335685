"""The verbs that the documentation names are there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERBS = ("help", "setup", "demo", "test", "check", "bench", "docs", "soak", "lock", "clean")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("make")
    if not program:
        pytest.skip("make is not installed")
    # Under `make test` the outer make would pass its options on to this one.
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.run(
        [program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_help_is_the_default_and_names_every_verb() -> None:
    listed = make()
    assert listed.returncode == 0, listed.stderr
    assert tuple(line.split()[1] for line in listed.stdout.splitlines()) == VERBS


def test_an_old_python_gets_one_clear_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    refused = make("setup", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert refused.returncode != 0
    assert "ZodiacEdge needs Python 3.11 or newer" in refused.stderr
    assert not (tmp_path / "venv").exists()


def test_the_ci_script_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
