"""Writes one slice of a store for each device: the same texts with other values.

On a cluster, each task opens the store for reading with the embedded engine and writes the slices of a group
of devices; only their names and counts go through the driver.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.opening import open_kb
from zodiacedge.store.location.base import location_of
from zodiacedge.store.location.local import LocalLocation

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from zodiacedge.engine.spark.cluster.jobs import Jobs
    from zodiacedge.terms import Term

    Where = str | os.PathLike[str]


_NAME = re.compile(r"(?!\.{1,2}$)[^/\\\0]+")


@dataclass(frozen=True, slots=True)
class Device:
    """A device: the name of its slice, and the values of variables in its texts."""

    name: str
    values: Mapping[str, Term]

    def __post_init__(self) -> None:
        """Raise if the name is not one of a folder, or leaves the common folder."""
        if not _NAME.fullmatch(self.name):
            raise UsageProblem(
                Diagnostic(
                    "U022",
                    f"a device cannot be called {self.name!r}: its name becomes that of a folder",
                    "give it a name that is not empty, and without / and \\",
                )
            )


@dataclass(frozen=True, slots=True)
class Published:
    """The slice of a device: its store, and the numbers of its facts and rules."""

    name: str
    store: str
    facts: int
    rules: int
    left_behind: int


@dataclass(frozen=True, slots=True)
class _SliceTask:
    store: str
    out: str
    slices: tuple[str, ...]
    devices: tuple[Device, ...]


def publish(  # noqa: PLR0913 - the last two are options
    store: Where,
    out: Where,
    slices: Sequence[str],
    devices: Sequence[Device],
    jobs: Jobs | None = None,
    *,
    spark: SparkSession | None = None,
) -> list[Published]:
    """Write the slices of devices, as `KnowledgeBase.export_slice` does, to `out/NAME.zodiac`.

    Args:
        store: The store, which another process may have open; its last version is used.
        out: A folder for the new stores, or the prefix of their addresses.
        slices: The texts of the slices, with variables that each device has values for.
        devices: The devices.
        jobs: The jobs of an engine `spark`, for tasks on its cluster.
        spark: A Spark session, for tasks on its cluster; this process if neither is given.
    """
    if spark is not None:
        jobs = _jobs_on(spark)
    _refuse_duplicates(devices)
    groups = min(len(devices), jobs.cores) if jobs else 1
    tasks = [
        _SliceTask(_absolute(store), _absolute(out), tuple(slices), tuple(devices[n::groups]))
        for n in range(groups)
    ]
    results = jobs.each(_publish, tasks, "publishing slices") if jobs else list(map(_publish, tasks))
    by_name = {published.name: published for result in results for published in result}
    return [by_name[device.name] for device in devices]


def _jobs_on(session: SparkSession) -> Jobs:
    from zodiacedge.engine.spark.cluster.jobs import Jobs  # noqa: PLC0415 - loads what Spark needs
    from zodiacedge.engine.spark.cluster.session import Cluster  # noqa: PLC0415

    return Jobs(Cluster(given=session))


def _refuse_duplicates(devices: Sequence[Device]) -> None:
    """Raise before anything is written if two devices have the same name."""
    duplicates = [name for name, count in Counter(device.name for device in devices).items() if count > 1]
    if duplicates:
        raise UsageProblem(
            Diagnostic(
                "U025", f"several devices are called {', '.join(duplicates)}", "give each a name of its own"
            )
        )


def _absolute(path: Where) -> str:
    """Return an absolute path or address, for a process with another working folder."""
    location = location_of(path)
    return str(location.root.absolute()) if isinstance(location, LocalLocation) else location.uri


def _publish(task: _SliceTask) -> list[Published]:
    published = []
    with open_kb(task.store, read_only=True) as kb:
        for device in task.devices:
            path = f"{task.out}/{device.name}.zodiac"
            slice_ = kb.export_slice(path, *task.slices, **device.values)
            counts = len(slice_.facts), len(slice_.rules), slice_.left_behind
            published.append(Published(device.name, path, *counts))
    return published
