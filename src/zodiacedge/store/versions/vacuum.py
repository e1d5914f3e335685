"""Vacuum: removes the files that no version of the retention time needs.

Entries of Delta's log are removed first, each before the older ones that it builds on, then files of the
write-ahead log, then facts: an interrupted vacuum leaves superfluous files, never a version without its
files.

In a shared location, another process may be about to name a file that no commit names yet, or to write a log
file whose name a vacuum has freed. So no file is removed there before it is a day old, by the clock of the
location.
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

    from zodiacedge.store.layout import FileInfo
    from zodiacedge.store.location.base import Location
    from zodiacedge.store.table.commit_info import Commit
    from zodiacedge.store.table.delta_table import FactTable
    from zodiacedge.store.versions.retention import Kept

YOUNG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """The number and bytes of the removed files, and the first remaining version."""

    files: int
    bytes: int
    first_version: int


@dataclass(frozen=True, slots=True)
class UnusedFiles:
    """The files to remove, and the oldest remaining commit."""

    entries: tuple[FileInfo, ...]
    """Files of both logs, in the order of removal."""
    facts: tuple[FileInfo, ...]
    oldest: Commit

    def first(self, most: int) -> UnusedFiles:
        """Return so many of the files, the first to remove."""
        return UnusedFiles(self.entries[:most], self.facts[: max(most - len(self.entries), 0)], self.oldest)

    @property
    def report(self) -> VacuumReport:
        """The report of removing them."""
        files = (*self.entries, *self.facts)
        size = sum(file.bytes for file in files)
        return VacuumReport(len(files), size, self.oldest.snapshot.version)


def unused_files(location: Location, table: FactTable, keeps: Kept) -> UnusedFiles:
    """Find the files of both logs, and of facts, that no version needs which a store keeps."""
    # Listed before anything is read, so that files written meanwhile are kept.
    files = {file.name: file for file in location.listed()}
    clock = _Clock(files) if location.shared else None
    since = clock.since(keeps.time) if clock else (datetime.now(UTC) - keeps.time).timestamp()
    commits = table.commits()
    remaining = [next(commits)]
    for commit in commits:
        # A version of the retention time may start from the last commit before it.
        if (clock.moment(remaining[-1]) if clock else _moment(remaining[-1])) <= since:
            break
        remaining.append(commit)

    def unused(commits: int) -> UnusedFiles:
        return _unused(location, table, files, remaining[:commits], clock)

    found = unused(len(remaining))
    if keeps.most_bytes is None or clock:
        # In a shared location, no file is removed before it is a day old.
        return found
    least = sum(file.bytes for file in files.values()) - keeps.most_bytes
    if found.report.bytes >= least:
        return found
    # The fewer commits remain, the more is removed; the last remains in any case.
    few, many = 1, len(remaining) - 1
    while few < many:
        middle = (few + many + 1) // 2
        if unused(middle).report.bytes >= least:
            few = middle
        else:
            many = middle - 1
    return unused(few)


def _unused(
    location: Location,
    table: FactTable,
    files: Mapping[str, FileInfo],
    remaining: Sequence[Commit],
    clock: _Clock | None,
) -> UnusedFiles:
    """Find the files that no version needs which starts from one of the remaining commits, newest first."""
    oldest = remaining[-1]
    logs = record_format.files(location)
    last = oldest.snapshot.version + 1
    old = {name for (_, name), (after, _) in pairwise(logs) if after <= last}
    used = set(table.files(oldest)).union(*(table.added_files(commit) for commit in remaining[:-1]))
    used |= _files_beside(location, [(version, name) for version, name in logs if name not in old])
    entries = [name for name in files if name.startswith(f"{DELTA_LOG}/") and _is_before(name, oldest)]
    facts = [
        file
        for name, file in files.items()
        if name not in used and (name.startswith(RELATION_PREFIX) or _is_beside_log(name))
        if not clock or file.moment <= clock.since(YOUNG)
    ]
    removed = (*sorted(entries, reverse=True), *sorted(old & files.keys()))
    return UnusedFiles(tuple(files[name] for name in removed), tuple(facts), oldest)


def vacuum(location: Location, table: FactTable, unused: UnusedFiles) -> VacuumReport:
    """Remove files, and the folders that become empty."""
    try:
        # With a checkpoint, Delta does not need older entries.
        table.checkpoint(unused.oldest)
        location.remove([file.name for file in unused.entries], in_order=True)
        location.remove([file.name for file in unused.facts], in_order=False)
    except OSError as error:
        raise unwritable(location, error) from error
    return unused.report


def state_retention(location: Location, table: FactTable, oldest: Commit) -> None:
    """State in the table how old the oldest remaining commit is: checkpoints need not list older removals.

    Without it they would list what was removed in a week, however few of its versions a store keeps. In a
    shared location no file is removed before it is a day old, and the table states nothing.
    """
    if not location.shared:
        table.state_retention(max(datetime.now(UTC).timestamp() - _moment(oldest), 0.0))


class _Clock:
    """A lower bound of the clock of a location: the time of its newest file."""

    def __init__(self, files: Mapping[str, FileInfo]) -> None:
        self._files = files
        self._now = max((file.moment for file in files.values()), default=0.0)

    def since(self, kept: timedelta) -> float:
        """Return the begin of the retention time."""
        return self._now - max(kept, YOUNG).total_seconds()

    def moment(self, commit: Commit) -> float:
        """Return the time of a commit."""
        entry = self._files.get(f"{DELTA_LOG}/{commit.number:020d}.json")
        return entry.moment if entry else self._now


def _moment(commit: Commit) -> float:
    return datetime.fromisoformat(commit.snapshot.moment).timestamp()


def _is_before(name: str, oldest: Commit) -> bool:
    digits = name.rsplit("/", 1)[-1][:20]
    return digits.isdigit() and int(digits) < oldest.number


def _is_beside_log(name: str) -> bool:
    # A killed process may have left a temporary file.
    return name.startswith(f"{LOG_FOLDER}/") and name.endswith((".parquet", ".new"))


def _files_beside(location: Location, logs: Sequence[tuple[int, str]]) -> set[str]:
    """Return the files beside the log that the records of log files name."""
    records = record_format.read_files(location, logs, ends=True)
    return {f"{LOG_FOLDER}/{name}" for record in records for name in needed_files(record)}
