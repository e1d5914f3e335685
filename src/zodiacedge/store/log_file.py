"""A log in a folder: records are appended to a file, and threads wait for the disk together."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from zodiacedge.store.disk import sync_folder
from zodiacedge.store.log import HEADER_BYTES, chained, file_name, framed, header
from zodiacedge.store.problems import unusable, unwritable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zodiacedge.store.log import Scan


class FileLog:
    """Appends to a log. Records are written one after the other; threads wait for the disk together."""

    def __init__(self, folder: Path, scan: Scan, path: Path | None) -> None:
        """Go on behind what a reading found: in a file of the log, or in a new one.

        What stands behind the last whole record of the file is cut off.
        """
        self._folder = folder
        self._state = threading.Condition()
        self._syncing = False
        self._broken = ""
        self._chain, self.version = scan.chain, scan.version
        self._file, self._path = -1, folder
        self._written = self._durable = 0
        self._size = 0
        self._before = 0, scan.chain
        if path is not None and scan.end:
            try:
                self._file, self._path = os.open(path, os.O_RDWR), path
                os.ftruncate(self._file, scan.end)
                os.fsync(self._file)
            except OSError as error:
                raise unwritable(path, error) from error
            self._size = scan.end

    @property
    def size(self) -> int:
        """The bytes of the file that is being written."""
        return self._size

    @property
    def chain(self) -> bytes:
        """The chain of the last record."""
        return self._chain

    def append(self, payload: bytes, meanwhile: Callable[[], None]) -> int:
        """Write the record of the next version; return a ticket to wait with until it is on disk.

        If it cannot be written, nothing of it is left. Only one thread may append at a time.
        """
        del meanwhile  # waiting comes later
        if self._broken:
            raise unusable(self._folder.parent, self._broken)
        try:
            if self._file < 0:
                self._begin()
            chain = chained(self._chain, payload)
            record = framed(chain, payload)
            _write(self._file, record, self._size)
        except OSError as error:
            self._undo()
            raise unwritable(self._path, error) from error
        except BaseException:
            self._undo()
            raise
        with self._state:
            self._before = self._size, self._chain
            self._size += len(record)
            self._chain = chain
            self.version += 1
            self._written += 1
            return self._written

    def withdraw(self) -> None:
        """Take the last record back: its change did not come about, and nobody waits for it."""
        with self._state:
            self._size, self._chain = self._before
            self.version -= 1
        self._undo()

    def sync(self, ticket: int) -> None:
        """Wait until a record is on disk. One of the threads that wait asks the disk for all of them."""
        with self._state:
            while self._durable < ticket:
                if self._broken:
                    raise unusable(self._folder.parent, self._broken)
                if self._syncing:
                    self._state.wait()
                    continue
                self._syncing = True
                upto = self._written
                self._state.release()
                problem: OSError | None = None
                try:
                    os.fsync(self._file)
                except OSError as error:
                    problem = error
                finally:
                    self._state.acquire()
                    self._syncing = False
                    self._state.notify_all()
                if problem is not None:
                    # Nobody knows what of it is on disk: what was said so far stands, and no more is said.
                    self._broken = f"the log could not be written to disk: {problem.strerror}"
                    raise unwritable(self._path, problem)
                self._durable = upto

    def sync_all(self) -> None:
        """Wait until all records are on disk."""
        self.sync(self._written)

    def break_off(self, why: str) -> None:
        """Take no more records."""
        with self._state:
            self._broken = self._broken or why
            self._state.notify_all()

    def rotate(self) -> None:
        """Let the next record begin a new file. All records must be on disk."""
        with self._state:
            while self._syncing:
                self._state.wait()
            if self._file >= 0:
                os.close(self._file)
            self._file, self._path, self._size = -1, self._folder, 0

    def close(self) -> None:
        """Write no more."""
        self.rotate()
        self.break_off("it is closed")

    def _begin(self) -> None:
        path = self._folder.parent / file_name(self.version + 1)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self._path = path
        self._size = 0
        _write(self._file, header(self._chain), 0)
        self._size = HEADER_BYTES
        sync_folder(self._folder)

    def _undo(self) -> None:
        if self._file < 0:
            return
        try:
            os.ftruncate(self._file, self._size)
        except OSError as error:
            self.break_off(f"the log could not be cut back: {error.strerror}")


def _write(file: int, data: bytes, at: int) -> None:
    rest = memoryview(data)
    while rest:
        done = os.pwrite(file, rest, at)
        at += done
        rest = rest[done:]
