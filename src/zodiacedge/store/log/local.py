"""The log of a folder: appends records to a file, with group commit."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zodiacedge.store.location.atomic_files import sync_folder
from zodiacedge.store.log.record_format import HEADER_BYTES, chained, file_name, framed, header
from zodiacedge.store.problems import unusable, unwritable
from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.store.log.record_format import Scan

_REFUSED = "nothing was changed"
_UNKNOWN = "this process has the change, and whether the log has it is seen when the store is opened again"


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a log, replaced as one value so that an interruption cannot leave it inconsistent."""

    size: int
    """The bytes of the current file."""
    chain: bytes
    version: int


class FileLog:
    """The log of a folder. One thread appends at a time; waiting threads share one sync (group commit)."""

    def __init__(
        self, folder: Path, scan: Scan, path: Path | None, display_name: Callable[[Path], str] = str
    ) -> None:
        """Continue a log in its last file, truncated after its last complete record, or in a new file.

        Args:
            folder: The folder of the log's files.
            scan: The end of the records.
            path: The last file, if there is one.
            display_name: Returns the path of a file for messages.
        """
        self._folder = folder
        self._display_name = display_name
        self._state = threading.Condition()
        self._syncing = False
        self._broken = ""
        self._failed: OSError | None = None
        self._file, self._path = -1, folder
        self._written = self._durable = 0
        self._end = self._before = _End(0, scan.chain, scan.version)
        if path is not None and scan.end:
            try:
                self._file, self._path = os.open(path, os.O_RDWR), path
                os.ftruncate(self._file, scan.end)
                os.fsync(self._file)
            except OSError as error:
                raise unwritable(display_name(path), error) from error
            self._end = replace(self._end, size=scan.end)

    @property
    def size(self) -> int:
        """The bytes of the current file: a flush begins a new one."""
        return self._end.size

    @property
    def chain(self) -> bytes:
        """The chain of the last record."""
        return self._end.chain

    def append(self, payload: bytes, meanwhile: Callable[[], None]) -> int:
        """Write the record of the next version, or nothing; return a ticket for `sync`.

        Only one thread may append at a time.
        """
        del meanwhile  # only `sync` waits
        if self._broken:
            raise unusable(self._display_name(self._folder.parent), self._broken)
        try:
            if self._file < 0:
                self._begin()
            end = self._end
            chain = chained(end.chain, payload)
            record = framed(chain, payload)
            _write(self._file, record, end.size)
            with self._state:
                self._written += 1
                self._before = end
                self._end = _End(end.size + len(record), chain, end.version + 1)
                return self._written
        except OSError as error:
            self._truncate()
            raise unwritable(self._display_name(self._path), error, _REFUSED) from error
        except BaseException:
            self._truncate()
            raise

    def withdraw(self, version: int) -> None:
        """Remove the record after a version, if there is one: no thread waits for it."""
        with self._state:
            if self._end.version == version:
                return
            self._end = self._before
        self._truncate()

    def sync(self, ticket: int) -> None:
        """Wait until a record is durable; one of the waiting threads syncs for all of them."""
        with self._state:
            while self._durable < ticket:
                if self._failed:
                    raise unwritable(self._display_name(self._path), self._failed, _UNKNOWN)
                if self._broken:
                    raise unusable(self._display_name(self._folder.parent), self._broken)
                if self._syncing:
                    self._state.wait()
                    continue
                self._sync_written()

    def _sync_written(self) -> None:
        """Sync all written records; release the state meanwhile, so that other threads can append."""
        with uninterrupted():
            self._syncing, upto = True, self._written
            self._state.release()
            try:
                os.fsync(self._file)
            except OSError as error:
                # It is unknown which records are on disk: acknowledge no more.
                self._failed = error
                self._broken = f"the log could not be written to disk: {error.strerror}"
            else:
                self._durable = upto
            finally:
                self._state.acquire()
                self._syncing = False
                self._state.notify_all()

    def sync_all(self) -> None:
        """Wait until all records are durable."""
        self.sync(self._written)

    def break_off(self, why: str) -> None:
        """Refuse further records."""
        with self._state:
            self._broken = self._broken or why
            self._state.notify_all()

    def rotate(self) -> None:
        """Let the next record begin a new file. All records must be durable."""
        with self._state:
            while self._syncing:
                self._state.wait()
            file, self._file = self._file, -1
            if file >= 0:
                os.close(file)
            self._path, self._end = self._folder, replace(self._end, size=0)

    def close(self) -> None:
        """Close the file and refuse further records."""
        self.rotate()
        self.break_off("it is closed")

    def _begin(self) -> None:
        path = self._folder.parent / file_name(self._end.version + 1)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _write(file, header(self._end.chain), 0)
            sync_folder(self._folder)
        except BaseException:
            # A file with an incomplete header must not be continued.
            os.close(file)
            with suppress(OSError):
                path.unlink()
            raise
        self._end = replace(self._end, size=HEADER_BYTES)
        self._file, self._path = file, path

    def _truncate(self) -> None:
        if self._file < 0:
            return
        try:
            os.ftruncate(self._file, self._end.size)
        except OSError as error:
            self.break_off(f"the log could not be cut back: {error.strerror}")


def _write(file: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        count = os.pwrite(file, rest, offset)
        offset += count
        rest = rest[count:]
