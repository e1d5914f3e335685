"""Opens the write-ahead log of a location for writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.store.layout import LOG_FOLDER
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.log.local import FileLog
from zodiacedge.store.log.object_store import ObjectLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.store.location.base import Location
    from zodiacedge.store.log.record_format import Scan, UnflushedLog

Log = FileLog | ObjectLog
"""A log that is open for writing; both have the same methods."""


def open_log(location: Location, scan: Scan, unflushed: UnflushedLog, flushed: Callable[[], int]) -> Log:
    """Open a log to append records after those that were read.

    Args:
        location: The location of the store.
        scan: The end of the records.
        unflushed: The files of the log that the table lacks.
        flushed: Returns the version of the table.
    """
    if isinstance(location, LocalLocation):
        # No other process writes while the lock is held, so `flushed` is not needed.
        last = location.root / unflushed.last if unflushed.last else None
        return FileLog(location.root / LOG_FOLDER, scan, last, location.display_path)
    return ObjectLog(location, scan, unflushed, flushed)
