"""Opens the write-ahead log of a location for writing: a file that grows, or an object per record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.store.layout import LOG_FOLDER
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.location.object_store import ObjectStoreLocation
from zodiacedge.store.log.local import FileLog
from zodiacedge.store.log.object_store import ObjectLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.store.location.base import Location
    from zodiacedge.store.log.record_format import Log, Scan, UnflushedLog


def open_log(location: Location, scan: Scan, behind: UnflushedLog, flushed: Callable[[], int]) -> Log:
    """Open a log to append records behind those that were read.

    Args:
        location: Where the store is.
        scan: How far the log was read.
        behind: The files of the log that the table lacks.
        flushed: Returns the version of the table.
    """
    match location:
        case LocalLocation():
            # `flushed` is not called: while the lock is held, no other process writes.
            last = location.root / behind.last if behind.last else None
            return FileLog(location.root / LOG_FOLDER, scan, last, location.display_path)
        case ObjectStoreLocation():
            return ObjectLog(location, scan, behind, flushed)
    raise TypeError(f"no log for {type(location).__name__}")
