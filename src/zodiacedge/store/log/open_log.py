"""Opens the write-ahead log of a location for writing: a file that grows, or an object per record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.store.layout import LOG_FOLDER
from zodiacedge.store.location.local import FolderPlace
from zodiacedge.store.location.object_store import ObjectPlace
from zodiacedge.store.log.local import FileLog
from zodiacedge.store.log.object_store import ObjectLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.store.location.base import Place
    from zodiacedge.store.log.record_format import Behind, Log, Scan


def open_log(place: Place, scan: Scan, behind: Behind, folded: Callable[[], int]) -> Log:
    """Return what appends records behind those that were read.

    Args:
        place: Where the store is.
        scan: How far the reading came.
        behind: The files of the log that the table lacks.
        folded: Tells which version the table has.
    """
    match place:
        case FolderPlace():
            # `folded` is not asked: while the lock is held, nobody else writes.
            last = place.root / behind.last if behind.last else None
            return FileLog(place.root / LOG_FOLDER, scan, last, place.called)
        case ObjectPlace():
            return ObjectLog(place, scan, behind, folded)
    raise TypeError(f"no log for {type(place).__name__}")
