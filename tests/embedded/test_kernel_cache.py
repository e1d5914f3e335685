"""Compiled kernels are kept by what their sources say, wherever the package lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import zodiacedge
from zodiacedge.engine.spark.cluster.session import package_archive

pytestmark = pytest.mark.slow

PACKAGE = Path(zodiacedge.__file__).parent
# How many kernels were taken from the cache, how many were compiled, and where the package was found.
PROGRAM = """
from zodiacedge.engine.embedded.kernels.jit import power
import zodiacedge
assert power(2.0, 3.0) == 8.0
stats = power.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), zodiacedge.__file__)
"""


def run(package: Path, kernels: Path | None = None, **environment: str) -> tuple[int, int]:
    given = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    given |= {"PYTHONPATH": str(package)} | environment
    if kernels is not None:
        given["NUMBA_CACHE_DIR"] = str(kernels)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    hits, misses, home = done.stdout.split()
    assert home.startswith(str(package))
    return int(hits), int(misses)


def test_a_package_in_an_archive_takes_the_kernels_of_one_in_a_folder(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "kernels"
    assert run(PACKAGE.parent, kernels) == (0, 1)
    assert run(copy, kernels) == (1, 0)
    assert run(package_archive(), kernels) == (1, 0)


def test_an_edit_in_any_source_with_kernels_compiles_them_anew(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "kernels"
    assert run(copy, kernels) == (0, 1)
    with (copy / PACKAGE.name / "engine" / "embedded" / "storage" / "hash_index.py").open("a") as source:
        source.write("\n_EDITED = True\n")
    assert run(copy, kernels) == (0, 1)
    # Without a folder that is named, each version of the sources has one of its own.
    homes = tmp_path / "home"
    for package in (copy, package_archive()):
        run(package, XDG_CACHE_HOME=str(homes))
    assert len(list((homes / "zodiacedge").iterdir())) == 2


def test_a_folder_that_cannot_be_written_to_costs_only_time(tmp_path: Path) -> None:
    kernels = tmp_path / "no-folder"
    kernels.write_text("in the way")
    assert run(PACKAGE.parent, kernels) == (0, 1)
