"""How long the first answer takes after `pip install`, as multiples of the time Python takes to start.

A wheel is built, or named as an argument, and unpacked into an empty folder; the libraries are those of this
environment. A new process evaluates a small program and answers a query:

    from the wheel       with the kernels of the wheel, in an empty home folder
    without a home       the same, where no folder can be written
    own kernels          with kernels for the processor of this machine, as after `zodiac warm`
    nothing compiled     with neither: kernels are compiled and kept in an empty home folder

Each figure is the least of several runs, in seconds of CPU and of the clock. Target: the first two take less
than 3 seconds of CPU, and compile nothing.

    python bench/programs/first_answer.py [WHEEL]
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
COMPILED = Path("zodiacedge", "engine", "embedded", "kernels", "compiled")
RUNS = 5
TARGET = 3.0
# Prints how many kernels were compiled.
PROGRAM = """
import zodiacedge as ze
kb = ze.open()
with kb.change() as c:
    c.add_rules("hot(T) :- reading(T, C), C > 80 .  reading(wt1, 93) .  reading(wt2, 55) .")
assert list(kb.query("?- hot(T) .")) == [(ze.iri("wt1"),)]
from zodiacedge.engine.embedded.kernels import linked
if linked.KERNELS:
    print(0)
else:
    from zodiacedge.engine.embedded.kernels.cache import LOOKUP
    print(LOOKUP.compiled)
"""


@dataclass(frozen=True)
class Figure:
    """The cost of a process."""

    cpu: float
    clock: float
    printed: str


def run(program: str, environment: dict[str, str]) -> Figure:
    """Run a program in a new process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    clock, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figure(cpu, clock, done.stdout.strip())


def least(program: str, environment: dict[str, str], runs: int = RUNS) -> Figure:
    """Return the run with the least CPU time."""
    return min((run(program, environment) for _ in range(runs)), key=lambda figure: figure.cpu)


def main() -> None:
    """Measure each way to start."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if len(sys.argv) > 1:
            wheel = Path(sys.argv[1])
        else:
            build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", name]
            subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
            (wheel,) = folder.glob("*.whl")
        installed, pure = folder / "installed", folder / "pure"
        zipfile.ZipFile(wheel).extractall(installed)
        shutil.copytree(installed, pure, ignore=shutil.ignore_patterns(COMPILED.name))
        kept = {n: v for n, v in os.environ.items() if n not in {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}}
        empty, home = folder / "empty", folder / "home"

        def here(package: Path, user: Path) -> dict[str, str]:
            return kept | {"PYTHONPATH": str(package), "HOME": str(user), "TMPDIR": name}

        start = least("pass", kept)
        # The first run writes bytecode, which pip does when it installs.
        run(PROGRAM, here(installed, empty))
        run("import zodiacedge.kb.knowledge_base, zodiacedge.opening", here(pure, empty))
        figures = {
            "from the wheel": least(PROGRAM, here(installed, empty)),
            "without a home": least(PROGRAM, here(installed, Path(os.devnull))),
            "nothing compiled": least(PROGRAM, here(pure, home), runs=1),
            "own kernels": least(PROGRAM, here(pure, home)),
        }
    print(f"{'Python itself':<18} {start.cpu:6.2f} s CPU {start.clock:6.2f} s")
    for title, figure in figures.items():
        times = f"{title:<18} {figure.cpu:6.2f} s CPU {figure.clock:6.2f} s"
        print(f"{times}   {figure.cpu / start.cpu:6.1f} times Python   {figure.printed} kernels compiled")
    shipped = [figures["from the wheel"], figures["without a home"]]
    met = all(figure.cpu < TARGET and figure.printed == "0" for figure in shipped)
    print(f"target {TARGET:.0f} s of CPU, and no kernel compiled: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
