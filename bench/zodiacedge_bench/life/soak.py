"""The soak: a device with a store, whose readings go through a window for as long as one likes.

What the process holds is measured for each tenth of the run: resident memory, open files, terms, and the
files and bytes of the store. They are means of samples, since files rise with each flush and fall with each
vacuum. The times of the changes are percentiles. Before the first tenth the window is filled, and the store
with the bytes that it may take. At intervals all visible facts are compared with the reference evaluator.
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
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.opening import open_kb
from zodiacedge.util.freed_memory import hold_little
from zodiacedge_bench.life.readings import Readings
from zodiacedge_bench.measure.harness import WrongCountError
from zodiacedge_bench.measure.live import store_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.kb.change import Change
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase

TENTHS = 10
# How many times in a tenth what the process holds is measured.
_SAMPLES = 50


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


class Held(NamedTuple):
    """What the process and its store hold at a moment, or on the mean."""

    resident_bytes: float
    open_files: float
    disk_bytes: float
    disk_files: float
    terms: float
    dictionary_bytes: float


@dataclass(frozen=True, slots=True)
class Tenth:
    """What the process held in a tenth of the run, on the mean, and the times of its changes."""

    readings: int
    resident_bytes: float
    open_files: float
    disk_bytes: float
    disk_files: float
    terms: float
    dictionary_bytes: float
    most_resident_bytes: float
    """The most resident memory in a sample."""
    most_disk_bytes: float
    most_disk_files: float
    p50_seconds: float
    p99_seconds: float
    p50_cpu_seconds: float
    p99_cpu_seconds: float
    cpu_seconds: float
    """The processor time of all changes of the tenth."""
    seconds: float
    """The time of the tenth, comparisons included."""
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
        while readings.made < size.window or not _has_filled(path, size.most_bytes):
            kb.apply(readings.next_change())
        _check(kb)
        progress(f"{readings.made:,} readings before the first tenth")
        done = 0
        for tenth in range(TENTHS):
            costs = _Costs(kb, path)
            end = changes * (tenth + 1) // TENTHS
            sample_every = max((end - done) // _SAMPLES, 1)
            while done < end:
                done += 1
                costs.change(readings.next_change())
                if done % size.rule_every == 0:
                    kb.apply(readings.next_rule())
                if done % size.check_every == 0:
                    costs.check()
                if done % sample_every == 0:
                    costs.sample()
            tenths.append(costs.tenth(readings.made))
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


def _has_filled(path: Path, most_bytes: int) -> bool:
    """Whether a store has the bytes that it may take, or has removed its first version."""
    return not (path / "_delta_log" / f"{0:020d}.json").exists() or disk_use(path)[0] >= most_bytes


class _Costs:
    """The costs of a tenth."""

    def __init__(self, kb: StoredKnowledgeBase, path: Path) -> None:
        self._kb, self._path = kb, path
        self._taken, self._spent = array("d"), array("d")
        self._checks, self._samples = 0, list[Held]()
        self._started, self._begun = time.perf_counter(), time.process_time()
        # The processor time of comparisons and samples, which is none of the changes'.
        self._aside = 0.0

    def change(self, change: Change) -> None:
        """Apply a change, and measure it."""
        started, begun = time.perf_counter(), time.thread_time()
        self._kb.apply(change)
        self._spent.append(time.thread_time() - begun)
        self._taken.append(time.perf_counter() - started)

    def check(self) -> None:
        """Compare the facts with the reference evaluator."""
        begun = time.thread_time()
        _check(self._kb)
        self._checks += 1
        self._aside += time.thread_time() - begun

    def sample(self) -> None:
        """Measure what the process and its store hold."""
        begun = time.thread_time()
        gc.collect()
        dictionary = store_of(self._kb).dictionary
        held = resident_bytes(), open_files(), *disk_use(self._path), len(dictionary), dictionary.nbytes
        self._samples.append(Held(*held))
        self._aside += time.thread_time() - begun

    def tenth(self, made: int) -> Tenth:
        """Return the tenth that ends after so many readings."""
        cpu = time.process_time() - self._begun - self._aside
        if not self._samples:
            self.sample()
        figures = list(zip(*self._samples, strict=True))
        most, mean = Held(*map(max, figures)), Held(*map(fmean, figures))
        return Tenth(
            made,
            *mean,
            most.resident_bytes,
            most.disk_bytes,
            most.disk_files,
            *_percentiles(self._taken),
            *_percentiles(self._spent),
            cpu,
            time.perf_counter() - self._started,
            self._checks,
        )


def _percentiles(seconds: array[float]) -> tuple[float, float]:
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
