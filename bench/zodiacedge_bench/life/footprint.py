"""What a device pays: memory and time to the first answer of a new process, and the size of the installation.

Each program runs in a process of its own, and finds the libraries that `pip install zodiacedge` brings with
the extra that it needs, and no others: some libraries load pandas, say, where it is installed. The size is
that of these distributions, and of those that each extra adds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from zodiacedge.demo import farm
from zodiacedge.demo.diagnosis import SLICES, load_farm
from zodiacedge.io import write_facts
from zodiacedge.opening import open_kb
from zodiacedge_bench.measure.task import lubm_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = "zodiacedge"
EXTRAS = ("store", "tables", "rdf", "compression", "drawing", "objects", "fleet", "spark", "all")
# Prints resident bytes after each step, and the seconds until the answer.
_PROGRAM = """
import json, os, sys, time
started = time.perf_counter()
def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
python = resident()
import zodiacedge as ze
from pathlib import Path
store, rules, facts, query = sys.argv[1:]
kb = ze.open(store or None)
opened = resident()
if rules:
    with kb.change() as change:
        change.add_rules(Path(rules))
        if facts:
            change.load(facts)
answers = len(kb.query(query))
seconds = time.perf_counter() - started
print(json.dumps([python, opened, resident(), seconds, answers]))
"""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The costs of a process."""

    program: str
    python_bytes: int
    """Resident memory of Python itself."""
    opened_bytes: int
    """Resident memory after the knowledge base was opened."""
    answered_bytes: int
    """Resident memory after the first answer."""
    seconds: float
    """The time from the start of the program to the first answer."""
    answers: int

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Installed:
    """The size of the distributions that an installation brings."""

    extra: str
    """The extra, or an empty text for the package alone."""
    bytes: int
    largest: tuple[tuple[str, int], ...]
    """The largest distributions and their bytes."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


def footprints(*, small: bool) -> Iterator[Footprint]:
    """Measure an empty program, an empty store, the wind-farm slice and LUBM-1."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules, facts = folder / "some.rules", folder / "facts"
        rules.write_text("hot(T) :- reading(T, C), C > 80 .  reading(wt1, 93) .\n", encoding="utf-8")
        with libraries() as alone:
            yield _footprint(alone, "empty program", "", "", "", "?- nothing(X) .")
            yield _footprint(alone, "a rule and a fact", "", str(rules), "", "?- hot(X) .")
        with open_kb(folder / "empty", create=True):
            pass
        _write_slice(folder, turbines=20 if small else 60)
        prefix = f"PREFIX farm: <{farm.FARM}>"
        query = f"{prefix} ?- farm:reading(T, P, V) ."
        with libraries("store") as stores:
            yield _footprint(stores, "empty store", str(folder / "empty"), "", "", "?- nothing(X) .")
            yield _footprint(stores, "wind-farm slice", str(folder / "slice"), "", "", query)
        task = lubm_task(1, departments=1) if small else lubm_task(1)
        rules.write_text(task.text, encoding="utf-8")
        write_facts(task.make_facts(), facts, form="jsonl")
        with libraries() as alone:
            yield _footprint(alone, task.name, "", str(rules), str(facts), "?- rdf:type(X, C) .")


@contextmanager
def libraries(extra: str = "") -> Iterator[dict[str, str]]:
    """Return an environment in which `python -S` finds what an installation with an extra brings, only."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for wanted in _distributions(PACKAGE, extra):
            if wanted == PACKAGE:
                continue
            distribution = metadata.distribution(wanted)
            for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
                (folder / top).symlink_to(Path(str(distribution.locate_file(top))))
        yield os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(farm.__file__).parents[2]), name])}


def _footprint(environment: Mapping[str, str], program: str, *arguments: str) -> Footprint:
    command = [sys.executable, "-S", "-c", _PROGRAM, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Footprint(program, *json.loads(done.stdout.splitlines()[-1]))


def _write_slice(folder: Path, turbines: int) -> None:
    data = folder / "farm.nt"
    data.write_text("".join(f"{line}\n" for line in farm.triples(turbines)), encoding="utf-8")
    with open_kb() as kb:
        load_farm(kb, data, "the farm")
        kb.export_slice(folder / "slice", *SLICES, T=farm.turbine(1))


def installations() -> list[Installed]:
    """Measure the package alone, and what each extra adds to it; missing ones are left out."""
    base = _distributions(PACKAGE, "")
    found = [_installed("", base)]
    for extra in EXTRAS:
        names = _distributions(PACKAGE, extra)
        if None not in names.values():
            found.append(_installed(extra, {name: size for name, size in names.items() if name not in base}))
    return found


def _installed(extra: str, sizes: Mapping[str, int | None]) -> Installed:
    known = sorted(((name, size or 0) for name, size in sizes.items()), key=lambda item: -item[1])
    return Installed(extra, sum(size for _, size in known), tuple(known[:6]))


def _distributions(name: str, extra: str) -> dict[str, int | None]:
    """Return the bytes of a distribution and of all that it requires; None for those that are missing."""
    sizes: dict[str, int | None] = {}
    waiting, seen = [(name, extra)], set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            sizes[name] = None
            continue
        if name not in sizes:
            sizes[name] = _bytes_of(distribution)
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                wanted = canonicalize_name(requirement.name)
                waiting += [(wanted, one) for one in ("", *requirement.extras)]
    return sizes


def _bytes_of(distribution: metadata.Distribution) -> int:
    if canonicalize_name(distribution.metadata["Name"]) == PACKAGE:
        # It may be installed from a folder, whose files are not listed.
        files = [file for file in Path(farm.__file__).parents[1].rglob("*") if file.is_file()]
        return sum(file.stat().st_size for file in files if "__pycache__" not in file.parts)
    paths = (Path(str(distribution.locate_file(file))) for file in distribution.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())
