"""Wheels: what is built has its kernels compiled, and an installation of it compiles none.

The wheel is installed into an environment without network: the libraries are those of this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
COMPILED = "zodiacedge/engine/embedded/kernels/compiled/"
# Prints where the linked kernels are, and if there are none how many kernels came from the cache, from the
# package and from the compiler.
PROGRAM = """
import logging, sys
logging.basicConfig(stream=sys.stderr)
logging.getLogger("zodiacedge.kernels").setLevel(logging.INFO)
import zodiacedge as ze
from zodiacedge.engine.embedded.kernels import linked
assert ze.__file__.startswith(sys.argv[1]), ze.__file__
kb = ze.open()
with kb.change() as c:
    c.add_rules("hot(T) :- reading(T, C), C > 80 .  reading(wt1, 93) .  reading(wt2, 55) .")
with kb.change() as c:
    c.add_rules("alarm(T) :- hot(T), not muted(T) .")
assert list(kb.query("?- alarm(T) .")) == [(ze.iri("wt1"),)]
if linked.FILE:
    assert not {"numba", "llvmlite"} & set(sys.modules)
    print(linked.FILE.parent.name)
else:
    from zodiacedge.engine.embedded.kernels.cache import LOOKUP
    print(LOOKUP.own, LOOKUP.compiled, LOOKUP.shipped > 0)
"""
OF_THE_PACKAGE = "compiled\n"
BY_NUMBA = "0 0 True\n"


@dataclass(frozen=True)
class Installed:
    """An environment with nothing of this project but the wheel."""

    home: Path

    @property
    def package(self) -> Path:
        (found,) = self.home.glob("[Ll]ib/**/site-packages/zodiacedge")
        return found

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {
            n: v
            for n, v in os.environ.items()
            if n not in {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH"}
        }
        # Nothing can be written, not even by root: the home folder is no folder.
        given |= {"HOME": os.devnull, "TMPDIR": str(self.home)} | environment
        python = str(self.home / "bin" / "python")
        return subprocess.run(
            [python, *command], cwd=self.home, env=given, capture_output=True, text=True, check=False
        )

    def zodiac(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "zodiacedge", *command, **environment)


def build(target: Path, kind: str, **environment: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        check=True,
    )
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is built as pip builds it: without what the environment has installed to be edited."""
    isolation = tmp_path_factory.mktemp("isolation")
    drop = f"import sys\nsys.path[:] = [path for path in sys.path if path != {str(ROOT / 'src')!r}]\n"
    (isolation / "sitecustomize.py").write_text(drop)
    return build(tmp_path_factory.mktemp("wheel"), "wheel", PYTHONPATH=str(isolation))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    home = tmp_path_factory.mktemp("environment")
    venv.create(home)
    environment = Installed(home)
    (site,) = home.glob("[Ll]ib/**/site-packages")
    # The libraries, but not the packages that were installed there to be edited.
    libraries = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "libraries.pth").write_text("\n".join(libraries))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(home / "bin" / "python"),
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)
    return environment


def test_a_wheel_is_for_one_python_and_one_platform(wheel: Path) -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{python}-{python}-" in wheel.name
    assert not wheel.name.endswith("-any.whl")


def test_a_wheel_has_every_kernel_of_the_sources(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    compiled = {name.removeprefix(COMPILED).rpartition("-")[0] for name in names if name.startswith(COMPILED)}
    embedded = ROOT / "src" / "zodiacedge" / "engine" / "embedded"
    missing = []
    for source in embedded.rglob("*.py"):
        lines = [line.strip() for line in source.read_text(encoding="utf-8").splitlines()]
        module = ".".join(source.relative_to(embedded).with_suffix("").parts)
        missing += [
            f"{module}.{following}"
            for line, following in pairwise(lines)
            if line == "@kernel"
            and f"{module}.{following.removeprefix('def ').partition('(')[0]}" not in compiled
        ]
    assert missing == []


def test_an_installation_compiles_nothing_where_nothing_can_be_written(installed: Installed) -> None:
    for cache in ({}, {"NUMBA_CACHE_DIR": f"{os.devnull}/kernels"}):
        done = installed.run("-c", PROGRAM, str(installed.package), **cache)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", OF_THE_PACKAGE)
        done = installed.run("-c", PROGRAM, str(installed.package), ZODIAC_JIT="1", **cache)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", BY_NUMBA)


def test_an_installation_compiles_nothing_in_an_empty_home(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("-c", PROGRAM, str(installed.package), HOME=str(tmp_path))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", OF_THE_PACKAGE)
    assert list(tmp_path.iterdir()) == []


def test_the_archive_for_executors_has_the_kernels_too(installed: Installed, tmp_path: Path) -> None:
    archive = str(tmp_path / "zodiacedge.zip")
    pack = (
        "import shutil, sys; from zodiacedge.engine.spark.cluster.session import package_archive; "
        "shutil.copy(package_archive(), sys.argv[1])"
    )
    assert installed.run("-c", pack, archive).returncode == 0
    done = installed.run("-c", PROGRAM, archive, PYTHONPATH=archive)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", BY_NUMBA)


def test_an_installation_runs_without_numba(installed: Installed) -> None:
    hidden = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"
    done = installed.run("-c", hidden + PROGRAM.replace("assert not {", "assert {"), str(installed.package))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", OF_THE_PACKAGE)


@pytest.mark.parametrize("damage", ["edited", "unloadable"])
def test_linked_kernels_that_do_not_fit_are_left_alone(installed: Installed, damage: str) -> None:
    (linked,) = (installed.package.parent / COMPILED).glob("linked-*")
    source = installed.package / "engine" / "embedded" / "storage" / "hash_index.py"
    file = source if damage == "edited" else linked
    before = file.read_bytes()
    file.write_bytes(before + b"\n_EDITED = True\n" if damage == "edited" else b"no module")
    try:
        done = installed.zodiac("warm", "--check", "--json")
    finally:
        file.write_bytes(before)
    found = json.loads(done.stdout)
    assert (found["linked"], found["missing"]) == ("", damage == "edited")


def test_check_says_which_kernels_a_run_would_use(installed: Installed) -> None:
    done = installed.zodiac("warm", "--check", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr, found["missing"]) == (0, "", False)
    assert found["linked"].startswith(str(installed.package))

    done = installed.zodiac("warm", "--check", "--json", ZODIAC_JIT="1")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (found["own"], found["compiled"], found["missing"], found["obstacle"]) == (0, 0, False, "")
    assert found["shipped"] > 0


@pytest.mark.parametrize(
    ("field", "value", "obstacle"),
    [
        ("numba", "0.1", "they are for Numba 0.1"),
        ("python", "cpython-27", "they are for cpython-27"),
        ("system", "vax-dec-vms", "they are for vax-dec-vms"),
        ("processor", "pdp11", "they are for pdp11"),
        ("sources", "0", "the sources were edited"),
    ],
)
def test_kernels_for_something_else_are_left_alone(
    installed: Installed, field: str, value: str, obstacle: str
) -> None:
    target = installed.package.parent / COMPILED / "target.json"
    before = target.read_text()
    target.write_text(json.dumps(json.loads(before) | {field: value}))
    try:
        done = installed.zodiac("warm", "--check", "--json", ZODIAC_JIT="1")
    finally:
        target.write_text(before)
    found = json.loads(done.stdout)
    assert (done.returncode, found["missing"], found["shipped"]) == (1, True, 0)
    assert found["obstacle"].startswith(obstacle)


def test_a_wheel_without_kernels_is_for_any_python(tmp_path: Path) -> None:
    pure = build(tmp_path, "wheel", ZODIAC_PURE_WHEEL="1")
    assert pure.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(pure).namelist() if name.startswith(COMPILED)]


def test_an_editable_install_compiles_nothing(tmp_path: Path) -> None:
    program = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().endswith("-py3-none-any.whl")


def test_a_source_distribution_has_what_builds_the_wheel(tmp_path: Path) -> None:
    with tarfile.open(build(tmp_path, "sdist")) as archive:
        names = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    assert {Path("hatch_build.py"), Path("pyproject.toml"), Path("src/zodiacedge/__init__.py")} <= names
