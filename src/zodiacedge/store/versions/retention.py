"""Retention: how long a store keeps its versions, in how many bytes, and the vacuum that follows from it.

Both are kept in a file of the store. While a store is written, a vacuum follows a flush whenever the
oldest version is older than the time by a fraction of it. It removes a bounded number of files at once, in
the thread of the flush, so that changes need not wait. A store with a bound of bytes is measured after each
flush: then the oldest versions go, however young, until the others fit.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

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


class Kept(NamedTuple):
    """What a store keeps: the versions of a time, as far as they fit into a number of bytes."""

    time: timedelta = KEPT
    most_bytes: int | None = None


def kept(location: Location) -> Kept:
    """Return what a store keeps."""
    try:
        stated = json.loads(location.read(RETENTION))
        seconds, most = stated["seconds"], stated.get("bytes")
    except FileNotFoundError:
        return Kept()
    except OSError as error:
        raise unreadable(location, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise not_a_store(location, f"{RETENTION} cannot be read") from error
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST.total_seconds():
        raise not_a_store(location, f"{RETENTION} holds no time")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most <= 0):
        raise not_a_store(location, f"{RETENTION} holds no number of bytes")
    return Kept(timedelta(seconds=seconds), most)


def keep(location: Location, keeps: Kept) -> None:
    """Set what a store keeps."""
    stated: dict[str, float] = {"seconds": keeps.time.total_seconds()}
    if keeps.most_bytes is not None:
        stated["bytes"] = keeps.most_bytes
    try:
        location.write(RETENTION, json.dumps(stated).encode() + b"\n")
    except OSError as error:
        raise unwritable(location, error) from error


class Retention:
    """Says when an automatic vacuum is due."""

    def __init__(self) -> None:
        """Begin; the first vacuum may come at once."""
        self._next = 0.0

    def is_due(self, location: Location, keeps: Kept) -> bool:
        """Whether a store has versions that are older than its retention time, or more bytes than it may."""
        now, seconds = time.time(), keeps.time.total_seconds()
        if keeps.most_bytes is not None and _bytes(location) > keeps.most_bytes:
            return True
        if now < self._next:
            return False
        self._next = now + min(seconds / _SHARE, _HOUR)
        entries = [file.moment for file in location.listed(DELTA_LOG)]
        return bool(entries) and min(entries) < now - seconds * (1 + 1 / _SHARE)

    def hurry(self) -> None:
        """Let the next vacuum come at once: the last one did not remove all files."""
        self._next = 0.0


def _bytes(location: Location) -> int:
    return sum(file.bytes for file in location.listed())
