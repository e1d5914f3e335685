"""The log of an object store: one object per record; the first writer to put the object of a version wins.

A record is durable once its object is put. A vacuum removes old objects of the log, whose names are free
again, so a writer that was idle for long first checks whether other processes have written.
"""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from zodiacedge.store.layout import LOG_FOLDER
from zodiacedge.store.log.record_format import chained, file_name, framed, header
from zodiacedge.store.problems import overtaken, unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.store.location.object_store import ObjectStoreLocation
    from zodiacedge.store.log.record_format import Scan, UnflushedLog

# The latency of a request, in bytes that could be read meanwhile.
_REQUEST_BYTES = 32 << 10
# After this time, a vacuum may have removed the objects that a writer knows of.
_STALE_SECONDS = 3600.0
_MARK_BYTES = 4
_POLL_SECONDS = 0.002


class ObjectLog:
    """The log of an object store: one object per record."""

    def __init__(
        self, location: ObjectStoreLocation, scan: Scan, unflushed: UnflushedLog, flushed: Callable[[], int]
    ) -> None:
        """Continue a log after the records that were read."""
        self._location = location
        self._chain, self._version = scan.chain, scan.version
        self._flushed = flushed
        self._size = unflushed.bytes + unflushed.files * _REQUEST_BYTES
        self._broken = ""
        # Two clocks: one that cannot be set, and one that runs while the machine sleeps.
        self._checked_at = time.monotonic(), time.time()

    @property
    def chain(self) -> bytes:
        """The chain of the last record."""
        return self._chain

    @property
    def size(self) -> int:
        """The bytes of the unflushed objects, with the latency of their requests."""
        return self._size

    def append(self, payload: bytes, meanwhile: Callable[[], None]) -> int:
        """Put the record of the next version, or raise if another process has."""
        if self._broken:
            raise unusable(self._location, self._broken)
        version, chain = self._version + 1, chained(self._chain, payload)
        # The mark distinguishes this object from an equal one of another process.
        data = header(self._chain, secrets.token_bytes(_MARK_BYTES)) + framed(chain, payload)
        if self._is_stale():
            self._check_overtaken(version)
        started = time.monotonic(), time.time()
        try:
            won = _put_in_background(lambda: self._location.put_new(file_name(version), data), meanwhile)
        except BaseException:
            self._broken = f"whether version {version} was written is seen when it is opened again"
            raise
        if not won:
            raise overtaken(self._location, version)
        if self._is_stale():
            self._broken = f"version {version} took too long to write"
            raise unusable(self._location, self._broken)
        self._checked_at = started
        self._chain, self._version = chain, version
        self._size += len(data) + _REQUEST_BYTES
        return version

    def withdraw(self, version: int) -> None:
        """Refuse further records: an object cannot be removed, because other processes may have read it."""
        if self._version == version:
            return
        self._broken = f"version {self._version} is in the store, and not in this process"

    def sync(self, ticket: int) -> None:
        """Do nothing: a record that was put is durable."""

    def sync_all(self) -> None:
        """Do nothing."""

    def rotate(self) -> None:
        """Reset the size: a flush takes the records so far."""
        self._size = 0

    def close(self) -> None:
        """Refuse further records."""
        self._broken = self._broken or "it is closed"

    def _is_stale(self) -> bool:
        steady, wall = self._checked_at
        return max(time.monotonic() - steady, time.time() - wall) > _STALE_SECONDS

    def _check_overtaken(self, version: int) -> None:
        now = time.monotonic(), time.time()
        later = self._location.listed(LOG_FOLDER, after=file_name(version - 1))
        if any(file.name.endswith(".log") for file in later) or self._flushed() >= version:
            raise overtaken(self._location, version)
        self._checked_at = now


def _put_in_background(put: Callable[[], bool], meanwhile: Callable[[], None]) -> bool:
    """Put an object in another thread; call `meanwhile` repeatedly until it is put."""
    done: Future[bool] = Future()

    def run() -> None:
        try:
            done.set_result(put())
        except Exception as problem:  # noqa: BLE001 - `result` raises it
            done.set_exception(problem)

    threading.Thread(target=run, name="zodiac-put").start()
    while not wait([done], _POLL_SECONDS).done:
        meanwhile()
    return done.result()
