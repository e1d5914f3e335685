"""Vacuum: removes the files that no version of the retention time needs.

Entries of Delta's log are removed first, each before the older ones that it builds on, then files of our log,
facts last: an interrupted vacuum leaves files that are not needed, never a version whose files are gone.

In a shared location, a file that no commit names may be one that another process is about to name, and a name
in a log that is free again would be taken by a writer that slept. So no file is removed there before it is a
day old, by the clock of the location.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from zodiacedge.store.layout import DELTA_LOG, LOG_FOLDER, RELATION_PREFIX
from zodiacedge.store.log import record_format
from zodiacedge.store.log.record import needed_files
from zodiacedge.store.problems import unwritable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zodiacedge.store.location.base import FileInfo, Location
    from zodiacedge.store.table.commit_info import Commit
    from zodiacedge.store.table.delta_table import FactTable

YOUNG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """The number and bytes of the files that a vacuum removed, and the first version that is left."""

    files: int
    bytes: int
    first_version: int


@dataclass(frozen=True, slots=True)
class UnusedFiles:
    """The files to remove, and the oldest commit that stays."""

    entries: tuple[FileInfo, ...]
    """Files of both logs, in the order in which they are removed."""
    facts: tuple[FileInfo, ...]
    oldest: Commit

    @property
    def files(self) -> tuple[FileInfo, ...]:
        """All files to remove."""
        return (*self.entries, *self.facts)


def unused_files(location: Location, table: FactTable, kept: timedelta) -> UnusedFiles:
    """Find the files that no version of the retention time needs: of both logs, and of facts."""
    # Listed before anything is read: files that are written meanwhile stay.
    files = {one.name: one for one in location.listed()}
    clock = _Clock(files) if location.shared else None
    since = clock.since(kept) if clock else (datetime.now(UTC) - kept).timestamp()
    commits = table.commits()
    stay = [next(commits)]
    for one in commits:
        # A version of the retention time may start from the last commit before it.
        if (clock.moment(stay[-1]) if clock else _moment(stay[-1])) <= since:
            break
        stay.append(one)
    oldest = stay[-1]
    logs = record_format.files(location)
    last = oldest.snapshot.version + 1
    old = {name for (_, name), (after, _) in pairwise(logs) if after <= last}
    used = {name for one in stay for name in table.files(one)}
    used |= _needed(location, [one for one in logs if one[1] not in old])
    entries = [name for name in files if name.startswith(f"{DELTA_LOG}/") and _is_before(name, oldest)]
    facts = [
        one
        for name, one in files.items()
        if name not in used and (name.startswith(RELATION_PREFIX) or _is_beside(name))
        if not clock or one.moment <= clock.since(YOUNG)
    ]
    removed = (*sorted(entries, reverse=True), *sorted(old & files.keys()))
    return UnusedFiles(tuple(files[name] for name in removed), tuple(facts), oldest)


def report(unused: UnusedFiles) -> VacuumReport:
    """Return the report of removing files."""
    size = sum(one.bytes for one in unused.files)
    return VacuumReport(len(unused.files), size, unused.oldest.snapshot.version)


def vacuum(location: Location, table: FactTable, unused: UnusedFiles) -> VacuumReport:
    """Remove files, and the folders that are empty then."""
    try:
        # Delta can do without its older entries once it has a checkpoint.
        table.checkpoint(unused.oldest)
        location.remove([one.name for one in unused.entries], in_order=True)
        location.remove([one.name for one in unused.facts], in_order=False)
    except OSError as error:
        raise unwritable(location, error) from error
    return report(unused)


class _Clock:
    """The clock of a location, as far as its files show: the newest was written now, or before."""

    def __init__(self, files: Mapping[str, FileInfo]) -> None:
        self._files = files
        self._now = max((one.moment for one in files.values()), default=0.0)

    def since(self, kept: timedelta) -> float:
        """Return when the retention time began."""
        return self._now - max(kept, YOUNG).total_seconds()

    def moment(self, commit: Commit) -> float:
        """Return when a commit was made."""
        entry = self._files.get(f"{DELTA_LOG}/{commit.number:020d}.json")
        return entry.moment if entry else self._now


def _moment(commit: Commit) -> float:
    return datetime.fromisoformat(commit.snapshot.moment).timestamp()


def _is_before(name: str, oldest: Commit) -> bool:
    digits = name.rsplit("/", 1)[-1][:20]
    return digits.isdigit() and int(digits) < oldest.number


def _is_beside(name: str) -> bool:
    # A process that was killed may have left a partial file.
    return name.startswith(f"{LOG_FOLDER}/") and name.endswith((".parquet", ".new"))


def _needed(location: Location, logs: Sequence[tuple[int, str]]) -> set[str]:
    """Return the files beside the log that files of the log name."""
    records = record_format.read_files(location, logs, ends=True)
    return {f"{LOG_FOLDER}/{name}" for record in records for name in needed_files(record)}
