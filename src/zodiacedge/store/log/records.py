"""Records of the log, read: what one says, and the files beside the log that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.store.log.entry import Entry, entry_of, files_of
from zodiacedge.store.problems import damaged_log

if TYPE_CHECKING:
    from zodiacedge.errors import StoreProblem
    from zodiacedge.store.log.record_format import Record


def said(record: Record) -> Entry:
    """Return what a record says, or raise: its checksum holds, so somebody else wrote it."""
    try:
        entry = entry_of(record.payload)
    except ValueError as error:
        raise _nonsense(record, f"it does not say what a record says: {error}") from error
    if entry.version != record.version:
        raise _nonsense(record, f"it is of version {entry.version} instead of {record.version}")
    return entry


def needed(record: Record) -> set[str]:
    """Return the names of the files beside the log that a record needs."""
    try:
        return set(files_of(record.payload))
    except ValueError as error:
        raise _nonsense(record, f"it does not say what a record says: {error}") from error


def _nonsense(record: Record, why: str) -> StoreProblem:
    return damaged_log(record.path, record.number, record.offset, why, record.version - 1)
