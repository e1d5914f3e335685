"""`zodiac warm`, and the line that a command prints when kernels are compiled."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zodiacedge.cli.console import Console

ROOT = Path(__file__).resolve().parents[2]


def test_a_record_of_the_package_is_a_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("zodiacedge.kernels")
    with Console(as_json=True).log_records():
        logger.info("compiling kernels")
        logger.debug("each of them")
    logger.info("afterwards")
    assert capsys.readouterr() == ("", "zodiac: compiling kernels\n")


def warm(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zodiacedge", "warm", *options],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_numba_there_is_nothing_to_compile() -> None:
    done = warm(ZODIAC_PURE_PYTHON="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error U007: Numba is not installed")


def test_a_cache_that_cannot_be_written_is_one_error() -> None:
    done = warm(NUMBA_CACHE_DIR=f"{os.devnull}/kernels")
    assert (done.returncode, done.stdout) == (1, "")
    first, note = done.stderr.splitlines()
    assert first.startswith(f"error U005: compiled kernels cannot be written: {os.devnull}")
    assert "NUMBA_CACHE_DIR" in note


@pytest.mark.slow
def test_check_compiles_nothing_and_says_that_a_run_would(tmp_path: Path) -> None:
    done = warm("--check", NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "a run has to compile kernels" in done.stdout
    assert "not usable: there are none" in done.stdout
    assert list(tmp_path.iterdir()) == []
