"""Compiled kernels are kept by what their sources say, wherever the package lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import zodiacedge
from zodiacedge.engine.spark.cluster.session import package_archive

pytestmark = pytest.mark.slow

PACKAGE = Path(zodiacedge.__file__).parent
NOWHERE = f"{os.devnull}/home"
UID = os.getuid() if hasattr(os, "getuid") else 0
Counts = tuple[int, int, int]
# How many kernels were taken from the cache and from the package, how many were compiled, where the package
# is, and what was logged.
PROGRAM = """
import logging, sys
records = []
class Heard(logging.Handler):
    def emit(self, record): records.append(record.getMessage())
logger = logging.getLogger("zodiacedge")
logger.addHandler(Heard())
logger.setLevel(logging.INFO)
from zodiacedge.engine.embedded.kernels.cache import LOOKUP
from zodiacedge.engine.embedded.kernels.jit import exponential, power
import zodiacedge
assert power(2.0, 3.0) == 8.0
if "both" in sys.argv:
    exponential(1.0)
print(LOOKUP.own, LOOKUP.shipped, LOOKUP.compiled, zodiacedge.__file__, *records, sep="\\n")
"""
SILENT = "from zodiacedge.engine.embedded.kernels.jit import power; power(2.0, 3.0)"


def python(program: str, package: Path, *arguments: str, **environment: str) -> list[str]:
    left_out = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}
    given = {name: value for name, value in os.environ.items() if name not in left_out}
    given |= {"PYTHONPATH": str(package)} | environment
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=given, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def run(package: Path, kernels: Path | None = None, /, **environment: str) -> tuple[Counts, list[str]]:
    """Return the numbers of kernels from the cache, the package and the compiler, and the records."""
    if kernels is not None:
        environment["NUMBA_CACHE_DIR"] = str(kernels)
    own, shipped, compiled, home, *records = python(PROGRAM, package, **environment)
    assert home.startswith(str(package))
    return (int(own), int(shipped), int(compiled)), records


def copied(folder: Path) -> Path:
    copy = folder / "elsewhere"
    ignored = shutil.ignore_patterns("__pycache__", "compiled")
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=ignored)
    return copy


def test_a_package_in_an_archive_takes_the_kernels_of_one_in_a_folder(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    kernels = tmp_path / "kernels"
    assert run(PACKAGE.parent, kernels)[0] == (0, 0, 1)
    assert run(copy, kernels)[0] == (1, 0, 0)
    assert run(package_archive(), kernels)[0] == (1, 0, 0)


def test_folders_of_kernels_that_nobody_used_for_long_are_removed(tmp_path: Path) -> None:
    home = tmp_path / "kernels" / "zodiacedge"
    days = {"kernels-old": 61, "kernels-recent": 59, "other-old": 61}
    for name, age in days.items():
        (home / name).mkdir(parents=True)
        (home / name / "target.json").touch()
        used = time.time() - age * 24 * 60 * 60
        os.utime(home / name / "target.json", (used, used))
    assert run(PACKAGE.parent, tmp_path / "kernels")[0] == (0, 0, 1)
    (made,) = [folder for folder in home.iterdir() if folder.name not in days]
    assert {folder.name for folder in home.iterdir()} == {made.name, "kernels-recent", "other-old"}

    used = time.time() - 50 * 24 * 60 * 60
    os.utime(made / "target.json", (used, used))
    assert run(PACKAGE.parent, tmp_path / "kernels")[0] == (1, 0, 0)
    assert (made / "target.json").stat().st_mtime > used + 1


def test_an_edit_in_any_source_with_kernels_compiles_them_anew(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    homes = tmp_path / "home"
    assert run(copy, XDG_CACHE_HOME=str(homes))[0] == (0, 0, 1)
    with (copy / PACKAGE.name / "engine" / "embedded" / "storage" / "hash_index.py").open("a") as source:
        source.write("\n_EDITED = True\n")
    assert run(copy, XDG_CACHE_HOME=str(homes))[0] == (0, 0, 1)
    # Each version of the sources has a folder of its own.
    assert len(list((homes / "zodiacedge").iterdir())) == 2


def test_a_folder_that_cannot_be_written_to_costs_only_time(tmp_path: Path) -> None:
    kernels = tmp_path / "no-folder"
    kernels.write_text("in the way")
    counts, (record,) = run(PACKAGE.parent, kernels)
    assert counts == (0, 0, 1)
    assert "not kept" in record


def test_kernels_that_come_with_the_package_need_no_folder_and_those_of_the_cache_come_first(
    tmp_path: Path,
) -> None:
    copy, kernels = copied(tmp_path), tmp_path / "kernels"
    run(copy, kernels)
    (compiled,) = (kernels / "zodiacedge").iterdir()
    shutil.copytree(compiled, copy / PACKAGE.name / "engine" / "embedded" / "kernels" / "compiled")
    assert run(copy, HOME=NOWHERE, TMPDIR=str(tmp_path)) == ((0, 1, 0), [])
    assert run(copy, kernels) == ((1, 0, 0), [])


def test_without_a_home_kernels_are_kept_in_a_temporary_folder_of_the_user(tmp_path: Path) -> None:
    nowhere = {"HOME": NOWHERE, "TMPDIR": str(tmp_path)}
    assert run(PACKAGE.parent, **nowhere)[0] == (0, 0, 1)
    assert run(PACKAGE.parent, **nowhere)[0] == (1, 0, 0)
    # Code that somebody else could have written is not loaded.
    (tmp_path / f"zodiacedge-{UID}").chmod(0o777)
    counts, (record,) = run(PACKAGE.parent, **nowhere)
    assert counts == (0, 0, 1)
    assert "not kept" in record


def test_code_in_a_cache_that_anybody_may_write_to_is_not_loaded(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shared = {"XDG_CACHE_HOME": str(cache), "TMPDIR": str(tmp_path)}
    cache.mkdir()
    assert run(PACKAGE.parent, **shared)[0] == (0, 0, 1)
    assert run(PACKAGE.parent, **shared)[0] == (1, 0, 0)
    (cache / "zodiacedge").chmod(0o777)
    assert run(PACKAGE.parent, **shared)[0] == (0, 0, 1)


def test_a_damaged_file_is_compiled_again(tmp_path: Path) -> None:
    run(PACKAGE.parent, tmp_path)
    (kernel,) = tmp_path.rglob("*.kernel")
    kernel.write_bytes(kernel.read_bytes()[:100])
    assert run(PACKAGE.parent, tmp_path)[0] == (0, 0, 1)
    assert run(PACKAGE.parent, tmp_path)[0] == (1, 0, 0)


def test_compilation_is_logged_once_and_never_printed(tmp_path: Path) -> None:
    kept = tmp_path / "kernels"
    _, (record,) = run(PACKAGE.parent, kept)
    assert record.startswith("compiling kernels for ")
    assert "about half a minute" in record
    assert f"kept in {kept}" in record
    assert run(PACKAGE.parent, kept)[1] == []
    _, _, compiled, _, *records = python(
        PROGRAM, PACKAGE.parent, "both", NUMBA_CACHE_DIR=str(tmp_path / "new")
    )
    assert (compiled, len(records)) == ("2", 1)
    assert python(SILENT, PACKAGE.parent, NUMBA_CACHE_DIR=str(tmp_path / "unheard")) == []
