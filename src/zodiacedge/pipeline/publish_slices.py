"""One slice of a store for each device: the same texts, other values. On a cluster, tasks share the work.

A task opens the store as any reader does, with the embedded engine, and writes the slices of some devices;
nothing goes through the driver but their names and counts.
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

    from zodiacedge.engine.spark.cluster.jobs import Jobs
    from zodiacedge.terms import Term

    Where = str | os.PathLike[str]


_NAME = re.compile(r"(?!\.{1,2}$)[^/\\\0]+")


@dataclass(frozen=True, slots=True)
class Device:
    """A device: what its slice is called, and the values that the texts get for it."""

    name: str
    values: Mapping[str, Term]

    def __post_init__(self) -> None:
        """Raise if it could not be the name of a folder, or would lead out of the one for all."""
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
    """The slice of a device: where it is, and what went along."""

    name: str
    store: str
    facts: int
    rules: int
    left_behind: int


@dataclass(frozen=True, slots=True)
class _Work:
    store: str
    out: str
    slices: tuple[str, ...]
    devices: tuple[Device, ...]


def publish(
    store: Where, out: Where, slices: Sequence[str], devices: Sequence[Device], jobs: Jobs | None = None
) -> list[Published]:
    """Write the slices of some devices, as `KnowledgeBase.export_slice` does: `out/NAME.zodiac`.

    Args:
        store: The store, which may be open elsewhere; its last version is cut.
        out: A folder for the new stores, or an address that theirs begin with.
        slices: What goes along, with variables that each device has values for.
        devices: The devices.
        jobs: Those of an engine `spark` whose tasks do the work; this process does it if not given.
    """
    _refuse_twice(devices)
    groups = min(len(devices), jobs.cores) if jobs else 1
    work = [
        _Work(_absolute(store), _absolute(out), tuple(slices), tuple(devices[n::groups]))
        for n in range(groups)
    ]
    done = jobs.each(_published, work, "publishing slices") if jobs else [_published(one) for one in work]
    found = {one.name: one for some in done for one in some}
    return [found[device.name] for device in devices]


def _refuse_twice(devices: Sequence[Device]) -> None:
    """Raise before anything is written if two slices would come to one place."""
    twice = [name for name, count in Counter(device.name for device in devices).items() if count > 1]
    if twice:
        raise UsageProblem(
            Diagnostic(
                "U025", f"several devices are called {', '.join(twice)}", "give each a name of its own"
            )
        )


def _absolute(path: Where) -> str:
    """Return where something is, for a process that may work in another folder."""
    place = location_of(path)
    return str(place.root.absolute()) if isinstance(place, LocalLocation) else place.uri


def _published(work: _Work) -> list[Published]:
    found = []
    with open_kb(work.store, read_only=True) as kb:
        for device in work.devices:
            place = f"{work.out}/{device.name}.zodiac"
            cut = kb.export_slice(place, *work.slices, **device.values)
            one = Published(device.name, place, len(cut.facts), len(cut.rules), cut.left_behind)
            found.append(one)
    return found
