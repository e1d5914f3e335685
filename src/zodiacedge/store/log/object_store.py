"""A log in an object store: each record is an object of its own, and the first to put one of a version wins.

A record is durable when its object is there, so there is nothing to wait for afterwards, and a change whose
record is not there never comes into force. A vacuum removes no young objects of the log: a writer that slept
for long checks first whether other processes went on, and otherwise the name alone decides.
"""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING

from zodiacedge.store.layout import LOG_FOLDER
from zodiacedge.store.log.record_format import chained, file_name, framed, header
from zodiacedge.store.problems import overtaken, unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.store.location.object_store import ObjectStoreLocation
    from zodiacedge.store.log.record_format import Scan, UnflushedLog

# Fetching an object takes as long as reading so many of its bytes.
_REQUEST_BYTES = 32 << 10
# After so many seconds, a vacuum may have removed the objects that a writer knows of.
_STALE_SECONDS = 3600.0
_MARK_BYTES = 4
_POLL_SECONDS = 0.002


class ObjectLog:
    """A log in an object store: one object per record."""

    def __init__(
        self, location: ObjectStoreLocation, scan: Scan, behind: UnflushedLog, flushed: Callable[[], int]
    ) -> None:
        """Continue a log that was read."""
        self._location = location
        self._chain, self._version = scan.chain, scan.version
        self._flushed = flushed
        self._size = behind.bytes + behind.files * _REQUEST_BYTES
        self._broken = ""
        # Two clocks: one that cannot be set, and one that goes on while the machine sleeps.
        self._checked_at = time.monotonic(), time.time()

    @property
    def version(self) -> int:
        """The version of the last record."""
        return self._version

    @property
    def chain(self) -> bytes:
        """The chain of the last record."""
        return self._chain

    @property
    def size(self) -> int:
        """The bytes of the objects that the table lacks, with what fetching each takes."""
        return self._size

    def append(self, payload: bytes, meanwhile: Callable[[], None]) -> int:
        """Put the record of the next version, or raise if another process has."""
        if self._broken:
            raise unusable(self._location, self._broken)
        version, chain = self._version + 1, chained(self._chain, payload)
        # The mark tells our object from an equal one of another process.
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
        """Take no more records: an object cannot be taken back, because others may have read it."""
        if self._version == version:
            return
        self._broken = f"version {self._version} is in the store, and not in this process"

    def sync(self, ticket: int) -> None:
        """Return at once: a record that was put is durable."""

    def sync_all(self) -> None:
        """Return at once."""

    def rotate(self) -> None:
        """Count from zero: the table gets what was written so far."""
        self._size = 0

    def close(self) -> None:
        """Write no more."""
        self._broken = self._broken or "it is closed"

    def _is_stale(self) -> bool:
        steady, wall = self._checked_at
        return max(time.monotonic() - steady, time.time() - wall) > _STALE_SECONDS

    def _check_overtaken(self, version: int) -> None:
        now = time.monotonic(), time.time()
        overtaken_in_log = any(
            one.name.endswith(".log")
            for one in self._location.listed(LOG_FOLDER, after=file_name(version - 1))
        )
        if overtaken_in_log or self._flushed() >= version:
            raise overtaken(self._location, version)
        self._checked_at = now


def _put_in_background(put: Callable[[], bool], meanwhile: Callable[[], None]) -> bool:
    """Put an object in another thread; call `meanwhile` now and then until it is put."""
    results: list[bool] = []
    problems: list[Exception] = []
    done = threading.Event()

    def work() -> None:
        try:
            results.append(put())
        except Exception as problem:  # noqa: BLE001 - it is raised below
            problems.append(problem)
        finally:
            done.set()

    threading.Thread(target=work, name="zodiac-put").start()
    while not done.wait(_POLL_SECONDS):
        meanwhile()
    if problems:
        raise problems[0]
    return results[0]
