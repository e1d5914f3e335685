"""The soak: a device with a store, whose readings go through a window for as long as one likes.

What the process holds is measured at the end of each tenth of the run: resident memory, open files, the files
and bytes of the store, terms, and the times of the changes. At intervals all visible facts are compared with
the reference evaluator.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from array import array
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.opening import open_kb
from zodiacedge.util.freed_memory import hold_little
from zodiacedge_bench.life.readings import Readings
from zodiacedge_bench.measure.harness import WrongCountError
from zodiacedge_bench.measure.live import store_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase

TENTHS = 10


@dataclass(frozen=True, slots=True)
class Size:
    """How long a soak runs, and how large its window is."""

    readings: int = 1_000_000
    sensors: int = 1000
    window: int = 10_000
    batch: int = 50
    """The readings of a change."""
    rule_every: int = 500
    """A rule is exchanged after so many changes."""
    check_every: int = 1000
    """The facts are compared with the reference evaluator after so many changes."""
    kept: timedelta = timedelta(days=7)
    """How long versions are kept."""
    most_bytes: int = 64_000_000
    """How many bytes the store may take, older versions included."""


SMALL = Size(4000, sensors=100, window=1000, batch=20, rule_every=20, check_every=50, most_bytes=500_000)


@dataclass(frozen=True, slots=True)
class Tenth:
    """What the process held at the end of a tenth of the run, and the times of its changes."""

    readings: int
    resident_bytes: int
    open_files: int
    disk_bytes: int
    disk_files: int
    terms: int
    dictionary_bytes: int
    p50_seconds: float
    p99_seconds: float
    p50_cpu_seconds: float
    p99_cpu_seconds: float
    cpu_seconds: float
    """The processor time of all changes of the tenth."""
    checks: int
    """How many times the facts were compared with the reference evaluator."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


def soak(size: Size, path: Path, progress: Callable[[str], None] = lambda _text: None) -> list[Tenth]:
    """Run a soak on a new store, and return its tenths; raise if a state is not the reference's."""
    hold_little()
    readings = Readings(size.sensors, size.window, size.batch)
    changes = max(size.readings // size.batch, TENTHS)
    tenths: list[Tenth] = []
    with open_kb(path, create=True) as kb:
        kb.retain(size.kept, most_bytes=size.most_bytes)
        kb.apply(readings.first())
        while readings.made < size.window:
            kb.apply(readings.next_change())
        _check(kb)
        done = 0
        for tenth in range(TENTHS):
            taken, spent, checks, cpu = array("d"), array("d"), 0, time.process_time()
            end = changes * (tenth + 1) // TENTHS
            while done < end:
                done += 1
                change = readings.next_change()
                started, begun = time.perf_counter(), time.thread_time()
                kb.apply(change)
                spent.append(time.thread_time() - begun)
                taken.append(time.perf_counter() - started)
                if done % size.rule_every == 0:
                    kb.apply(readings.next_rule())
                if done % size.check_every == 0:
                    begun = time.process_time()
                    _check(kb)
                    cpu += time.process_time() - begun
                    checks += 1
            times = _Times(taken, spent, time.process_time() - cpu, checks)
            tenths.append(_measured(kb, path, readings.made, times))
            progress(f"{readings.made:,} readings, {tenths[-1].resident_bytes / 2**20:.0f} MiB")
        _check(kb)
    return tenths


def _check(kb: StoredKnowledgeBase) -> None:
    """Raise if the facts of the store are not those that the reference evaluator derives.

    Another process opens the store and compares, so that this one holds what a device holds.
    """
    command = [sys.executable, "-m", "zodiacedge", "verify", str(kb.store.location), "--against", "reference"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongCountError(f"version {kb.version}: {done.stdout}{done.stderr}")


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    """Count the open file handles of this process; 0 where the system does not say."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
    except OSError:
        return 0


def disk_use(path: Path) -> tuple[int, int]:
    """Return the bytes and the number of the files in a folder."""
    sizes: list[int] = []
    for file in path.rglob("*"):
        # A background flush may remove what was listed.
        try:
            if file.is_file():
                sizes.append(file.stat().st_size)
        except FileNotFoundError:
            continue
    return sum(sizes), len(sizes)


class _Times(NamedTuple):
    # The times of the changes of a tenth, by the clock and of the processor; the processor time of the whole
    # process, and the number of comparisons.
    changes: array[float]
    spent: array[float]
    cpu: float
    checks: int


def _measured(kb: KnowledgeBase, path: Path, made: int, times: _Times) -> Tenth:
    gc.collect()
    dictionary = store_of(kb).dictionary
    used, files = disk_use(path)
    return Tenth(
        made,
        resident_bytes(),
        open_files(),
        used,
        files,
        len(dictionary),
        dictionary.nbytes,
        *_percentiles(times.changes),
        *_percentiles(times.spent),
        times.cpu,
        times.checks,
    )


def _percentiles(seconds: array[float]) -> tuple[float, float]:
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
