"""Retention: how long a store keeps its versions, and the automatic vacuum that follows from it.

The time is kept in a file of the store. While a store is written, a vacuum follows a flush whenever the
oldest version is older than the time by a fraction of it. It removes a bounded number of files at once, in
the thread of the flush, so that changes need not wait.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from zodiacedge.kb.arguments import LONGEST
from zodiacedge.store.layout import DELTA_LOG, RETENTION
from zodiacedge.store.problems import not_a_store, unreadable, unwritable

if TYPE_CHECKING:
    from zodiacedge.store.location.base import Location

KEPT = timedelta(days=7)
"""The retention time of a store whose owner sets none."""
# An automatic vacuum waits until versions are older than the retention time by this share of it, and comes
# after this share of it at the earliest, or after an hour if that is less.
_SHARE = 16
_HOUR = 3600.0


def kept(location: Location) -> timedelta:
    """Return the retention time of a store."""
    try:
        seconds = json.loads(location.read(RETENTION))["seconds"]
    except FileNotFoundError:
        return KEPT
    except OSError as error:
        raise unreadable(location, error) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise not_a_store(location, f"{RETENTION} cannot be read") from error
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST.total_seconds():
        raise not_a_store(location, f"{RETENTION} holds no time")
    return timedelta(seconds=seconds)


def keep(location: Location, time_: timedelta) -> None:
    """Set the retention time of a store."""
    try:
        location.write(RETENTION, json.dumps({"seconds": time_.total_seconds()}).encode() + b"\n")
    except OSError as error:
        raise unwritable(location, error) from error


class Retention:
    """Says when an automatic vacuum is due."""

    def __init__(self) -> None:
        """Begin; the first vacuum may come at once."""
        self._next = 0.0

    def is_due(self, location: Location, time_: timedelta) -> bool:
        """Whether a store has versions that are older than its retention time."""
        now, seconds = time.time(), time_.total_seconds()
        if now < self._next:
            return False
        self._next = now + min(seconds / _SHARE, _HOUR)
        entries = [file.moment for file in location.listed(DELTA_LOG)]
        return bool(entries) and min(entries) < now - seconds * (1 + 1 / _SHARE)

    def hurry(self) -> None:
        """Let the next vacuum come at once: the last one did not remove all files."""
        self._next = 0.0
