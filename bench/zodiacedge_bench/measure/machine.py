"""The machine of a benchmark: processor, memory, Python, and versions of packages."""

from __future__ import annotations

import os
import platform
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PACKAGES = ("zodiacedge", "numba", "numpy", "clingo", "duckdb", "nemo-python", "pyspark")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine and what is installed on it."""

    processor: str
    cores: int
    memory_gib: float
    load: float
    """The load average of the last minute."""
    system: str
    python: str
    versions: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)

    def lines(self) -> tuple[str, str]:
        """Return the two header lines of every report."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        hardware = f"{self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB"
        return f"{hardware}, {self.system}, load {self.load:.1f}", f"Python {self.python}, {versions}"


def this_machine() -> Machine:
    """Return the machine this process runs on."""
    versions = {name: version for name in _PACKAGES if (version := installed(name))}
    return Machine(
        processor=_processor(),
        cores=usable_cores(),
        memory_gib=_memory_bytes() / 2**30,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        versions=versions,
    )


def usable_cores() -> int:
    """Return the number of cores that this thread may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_core() -> Iterator[None]:
    """Let this thread, and those that it starts, run on one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def installed(package: str) -> str:
    """Return the version of a package, or an empty string if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
