"""Kernels that are linked into a module: all that Python calls are there, and do the same without Numba."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge
from zodiacedge.engine.embedded.kernels import cache
from zodiacedge.engine.embedded.kernels.folders import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]
# The kernels that Python calls, as Numba compiled them.
CALLED = """
from zodiacedge.engine.embedded import warm_up
from zodiacedge.engine.embedded.kernels.cache import DISPATCHERS, looking_up
with looking_up(from_package=False, may_compile=False):
    warm_up.warm()
print(*sorted(name for name, one in DISPATCHERS.items() if one.overloads), sep="\\n")
"""
LINKED = """
import sys
from zodiacedge.engine.embedded import warm_up
from zodiacedge.engine.embedded.kernels import linked
warm_up.warm()
assert linked.FILE.parent.name == "zodiacedge", linked.FILE
assert not {"numba", "llvmlite"} & set(sys.modules)
print(*sorted(linked.KERNELS), sep="\\n")
"""
AGREE = """
import sys
from embedded.test_agreement import assert_agreement, EmbeddedEngine
from maintenance.test_random_sessions import follow
for seed in range(6_000, 6_100):
    assert_agreement(seed, EmbeddedEngine(modules=seed % 2 == 0))
assert sum(follow(seed, "maintain").maintained for seed in range(600, 640))
assert "numba" not in sys.modules
"""
# The hash of a row is a kernel that only kernels call, and that calls one which Python calls, too.
INNER = """
import numpy as np
from zodiacedge.engine.embedded.kernels.jit import MEMORY, power
from zodiacedge.engine.embedded.storage.hash_index import hash_row
row = np.array([3, 5, 7], np.int32)
print(power(2.0, 0.5), *[hash_row(MEMORY.address(row), 0, 3, key) for key in (0, 1, 2, 3)])
"""
WRONG = """
from zodiacedge.engine.embedded.storage.hash_index import has_column
for arguments in ((1,), (1, 2, 3), (1, "a"), (1, 2.5), (1, 1 << 64)):
    try:
        has_column(*arguments)
    except (TypeError, OverflowError) as error:
        print(type(error).__name__)
print(has_column(5, 2), has_column(5, 1))
"""
FILE = "from zodiacedge.engine.embedded.kernels import linked; print(linked.FILE)"


def python(home: Path, program: str, **environment: str) -> list[str]:
    given = {name: value for name, value in os.environ.items() if name != "ZODIAC_JIT"}
    given |= {"NUMBA_CACHE_DIR": str(home), "PYTHONPATH": str(TESTS)} | environment
    done = subprocess.run(
        [sys.executable, "-c", program], env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def warm(home: Path, **environment: str) -> dict[str, object]:
    given = os.environ | {"NUMBA_CACHE_DIR": str(home)} | environment
    home.mkdir(exist_ok=True)
    # Like the command `zodiac`, it runs no file of the current folder.
    (home / "numpy.py").write_text("raise SystemExit('numpy.py of the current folder was run')")
    command = [sys.executable, "-P", "-m", "zodiacedge", "warm", "--json"]
    done = subprocess.run(command, env=given, cwd=home, capture_output=True, text=True, check=True)
    outcome: dict[str, object] = json.loads(done.stdout)
    return outcome


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with compiled and linked kernels."""
    home = tmp_path_factory.mktemp("kernels")
    own = cache.own_folder()
    if own is not None and own.is_dir():
        # Compiling all of them takes long.
        shutil.copytree(own, home / FOLDER / own.name)
    outcome = warm(home)
    assert outcome["unlinked"] == ""
    return home


def is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(by, ast.Name) and by.id == "kernel" for by in node.decorator_list
    )


def used_by_python(tree: ast.AST, module: str) -> Iterator[str]:
    """Yield what a module names outside of kernels, with the modules where it is defined."""
    local: dict[str, str] = {}
    for node in ast.walk(tree):
        if is_kernel(node) and isinstance(node, ast.FunctionDef):
            local[node.name] = f"{module}.{node.name}"
        elif isinstance(node, ast.ImportFrom):
            local |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if is_kernel(node):
            continue
        if isinstance(node, ast.Name):
            yield local.get(node.id, "")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{local.get(node.value.id, '')}.{node.attr}"
        waiting += ast.iter_child_nodes(node)


def test_every_kernel_that_python_calls_is_linked_and_needs_no_numba(home: Path) -> None:
    package = Path(zodiacedge.__file__).parent
    trees = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for path in package.rglob("*.py")
    }
    kernels = {
        f"{name}.{node.name}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and is_kernel(node)
    }
    used = {name for module, tree in trees.items() for name in used_by_python(tree, module)} & kernels
    linked = python(home, LINKED)
    assert linked == sorted(name.partition(".embedded.")[2] for name in used)
    assert linked == python(home, CALLED, ZODIAC_JIT="1")


def test_linked_kernels_agree_with_the_definition(home: Path) -> None:
    python(home, AGREE)


def test_what_only_kernels_call_is_compiled_when_python_calls_it(home: Path) -> None:
    assert python(home, INNER) == python(home, INNER, ZODIAC_JIT="1")


def test_a_linked_kernel_takes_words_only(home: Path) -> None:
    assert python(home, WRONG) == [*["TypeError"] * 4, "OverflowError", "True False"]


def test_a_file_that_cannot_be_loaded_is_left_alone_and_made_again(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    (file,) = (tmp_path / FOLDER).glob("linked-*")
    assert python(tmp_path, FILE) == [str(file)]
    file.write_bytes(b"no module")
    assert python(tmp_path, FILE) == ["None"]
    file.unlink()
    assert warm(tmp_path)["linked"] == str(file)
    assert python(tmp_path, FILE) == [str(file)]


def test_without_a_compiler_kernels_are_those_of_numba(home: Path, tmp_path: Path) -> None:
    (compiled,) = (home / FOLDER).glob("kernels-*")
    shutil.copytree(compiled, tmp_path / FOLDER / compiled.name)
    outcome = warm(tmp_path, CC="no-such-compiler -O3")
    assert (outcome["linked"], outcome["compiled"]) == ("", 0)
    assert outcome["unlinked"] == "there is no C compiler: no-such-compiler is not found"
    assert python(tmp_path, FILE) == ["None"]
