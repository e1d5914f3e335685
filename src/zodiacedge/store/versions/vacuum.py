"""Sweeping: which files no version of the last time needs, and removing them.

Entries of Delta's log go first, the newest before the older that it builds on, then files of our log, facts
last: a sweep that is interrupted leaves files that nobody needs, never a version whose files are gone.

Where several may write, a file that nobody names may be one that somebody is about to name, and a name in a
log that is free again would be taken by a writer that slept. So nothing goes there before it is a day old, by
the clock of the place itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from zodiacedge.store.layout import DELTA_LOG, LOG_FOLDER, PARTS
from zodiacedge.store.log import record_format
from zodiacedge.store.log.records import needed
from zodiacedge.store.problems import unwritable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zodiacedge.store.location.base import FileInfo, Location
    from zodiacedge.store.table.commit_info import Commit
    from zodiacedge.store.table.delta_table import FactTable

YOUNG = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum removed, and the first version that is left."""

    files: int
    bytes: int
    first_version: int


@dataclass(frozen=True, slots=True)
class UnusedFiles:
    """What is to be removed, and the oldest commit that stays."""

    entries: tuple[FileInfo, ...]
    """Parts of both logs, in the order in which they go."""
    facts: tuple[FileInfo, ...]
    oldest: Commit

    @property
    def files(self) -> tuple[FileInfo, ...]:
        """All of it."""
        return (*self.entries, *self.facts)


def unused_files(location: Location, table: FactTable, kept: timedelta) -> UnusedFiles:
    """Find what no version of the last time needs: old parts of both logs, and files that nobody names."""
    # Listed before anything is looked up: what comes meanwhile stays.
    there = {one.name: one for one in location.listed()}
    clock = _Clock(there) if location.shared else None
    since = clock.since(kept) if clock else (datetime.now(UTC) - kept).timestamp()
    commits = table.commits()
    stay = [next(commits)]
    for one in commits:
        # A version of the time that is kept may start from the last commit before it.
        if (clock.moment(stay[-1]) if clock else _moment(stay[-1])) <= since:
            break
        stay.append(one)
    oldest = stay[-1]
    logs = record_format.files(location)
    last = oldest.snapshot.version + 1
    old = {name for (_, name), (after, _) in pairwise(logs) if after <= last}
    used = {name for one in stay for name in table.files(one)}
    used |= _needed(location, [one for one in logs if one[1] not in old])
    entries = [name for name in there if name.startswith(f"{DELTA_LOG}/") and _is_before(name, oldest)]
    facts = [
        one
        for name, one in there.items()
        if name not in used and (name.startswith(PARTS) or _is_beside(name))
        if not clock or one.moment <= clock.since(YOUNG)
    ]
    gone = (*sorted(entries, reverse=True), *sorted(old & there.keys()))
    return UnusedFiles(tuple(there[name] for name in gone), tuple(facts), oldest)


def tell(doomed: UnusedFiles) -> VacuumReport:
    """Return what sweeping would remove."""
    size = sum(one.bytes for one in doomed.files)
    return VacuumReport(len(doomed.files), size, doomed.oldest.snapshot.version)


def vacuum(location: Location, table: FactTable, doomed: UnusedFiles) -> VacuumReport:
    """Remove it, and the folders that are empty then."""
    try:
        # Delta can do without its older entries once it has a checkpoint.
        table.checkpoint(doomed.oldest)
        location.remove([one.name for one in doomed.entries], in_order=True)
        location.remove([one.name for one in doomed.facts], in_order=False)
    except OSError as error:
        raise unwritable(location, error) from error
    return tell(doomed)


class _Clock:
    """The clock of a place, as far as its files tell: the newest was written now, or before."""

    def __init__(self, there: Mapping[str, FileInfo]) -> None:
        self._there = there
        self._now = max((one.moment for one in there.values()), default=0.0)

    def since(self, kept: timedelta) -> float:
        """Return when the time began that is kept."""
        return self._now - max(kept, YOUNG).total_seconds()

    def moment(self, commit: Commit) -> float:
        """Return when a commit was made."""
        entry = self._there.get(f"{DELTA_LOG}/{commit.number:020d}.json")
        return entry.moment if entry else self._now


def _moment(commit: Commit) -> float:
    return datetime.fromisoformat(commit.snapshot.moment).timestamp()


def _is_before(name: str, oldest: Commit) -> bool:
    digits = name.rsplit("/", 1)[-1][:20]
    return digits.isdigit() and int(digits) < oldest.number


def _is_beside(name: str) -> bool:
    # A process that was killed may have left one that is not whole.
    return name.startswith(f"{LOG_FOLDER}/") and name.endswith((".parquet", ".new"))


def _needed(location: Location, logs: Sequence[tuple[int, str]]) -> set[str]:
    """Return the files beside the log that some of its files need."""
    records = record_format.read_files(location, logs, ends=True)
    return {f"{LOG_FOLDER}/{name}" for record in records for name in needed(record)}
