"""The write-ahead log: records that are on disk before a change is acknowledged.

A log is a folder of files, each named by the version of its first record. A file begins with a header, and
every record is

    length (8 bytes)  check of the length (4)  chain (16)  payload  end mark (1)

The chain is the start of a SHA-256 over the chain before it and the payload, so a record cannot be altered,
left out or moved. What a crash leaves is told from what damage leaves: a record that was never written to its
end misses bytes, or has zeros where the end mark should be; everything else that does not fit is damage, and
is refused, because an acknowledged change may stand there.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.store.layout import sync_folder
from zodiacedge.store.problems import damaged_log, newer_format, torn, unusable, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zodiacedge.errors import Diagnostic

FORMAT = 1
_MAGIC = b"ZODIACWL"
_HEADER = struct.Struct("<8sI4x16s")
HEADER_BYTES = _HEADER.size
_LENGTH = struct.Struct("<Q")
_FRONT = struct.Struct("<QI16s")
END = b"\xed"
NO_CHAIN = bytes(16)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the log: its version, its payload, and where it stands."""

    version: int
    payload: bytes
    path: Path
    number: int
    offset: int


@dataclass(slots=True)
class Scan:
    """How far a reading of the log came."""

    end: int = 0
    chain: bytes = NO_CHAIN
    version: int = 0
    follows: bool = False
    """Whether the chain is that of the version: the next file must go on from it."""
    torn: Diagnostic | None = None


def files(folder: Path) -> list[tuple[int, Path]]:
    """Return the files of a log with the version of the first record of each, in order."""
    found = [(int(path.stem), path) for path in folder.glob("*.log") if path.stem.isdigit()]
    return sorted(found)


def read_file(path: Path, first: int, scan: Scan, *, last: bool) -> Iterator[Record]:
    """Yield the records of a file; only the `last` file may end in a record that was not written to its end.

    Args:
        path: The file.
        first: The version of its first record.
        scan: Takes note of how far the reading came.
        last: Whether no file follows.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged_log(path, 0, 0, f"it cannot be read: {error.strerror or error}", first - 1) from error
    before = scan.chain if scan.follows and scan.version == first - 1 else None
    scan.version = first - 1
    scan.end, scan.torn, scan.follows = 0, None, True
    if len(data) < _HEADER.size or not data[: _HEADER.size].strip(b"\0"):
        if not last:
            raise damaged_log(path, 0, 0, "the file has no header", first - 1)
        scan.torn = torn(path, 0)
        return
    magic, made, scan.chain = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise damaged_log(path, 0, 0, "this is no log", first - 1)
    if made > FORMAT:
        raise newer_format(path, made, FORMAT)
    if before is not None and scan.chain != before:
        raise damaged_log(path, 0, 0, "it does not go on from the record before it", first - 1)
    scan.end = _HEADER.size
    number = 0
    while scan.end < len(data):
        number += 1
        at = scan.end
        payload, why = _payload(data, at, scan.chain)
        if payload is None:
            if why or not last:
                raise damaged_log(path, number, at, why or "it ends too early", scan.version)
            scan.torn = torn(path, at)
            return
        scan.chain = chained(scan.chain, payload)
        scan.version += 1
        scan.end = at + _FRONT.size + len(payload) + len(END)
        yield Record(scan.version, payload, path, number, at)


def _payload(data: bytes, at: int, chain: bytes) -> tuple[bytes | None, str]:
    """Return a record's payload, or none and what is wrong with it, nothing if it is merely torn."""
    if len(data) - at < _FRONT.size or not data[at:].strip(b"\0"):
        return None, ""
    length, check, kept = _FRONT.unpack_from(data, at)
    if check != zlib.crc32(data[at : at + _LENGTH.size]):
        return None, "its length does not fit its check"
    start, end = at + _FRONT.size, at + _FRONT.size + length
    if end + len(END) > len(data):
        return None, ""
    payload = data[start:end]
    if kept == chained(chain, payload) and data[end : end + 1] == END:
        return payload, ""
    # Blocks that never reached the disk read as zeros, the last ones first.
    return None, "" if data[end : end + 1] == b"\0" and end + 1 == len(data) else "its checksum does not fit"


def chained(chain: bytes, payload: bytes) -> bytes:
    """Return the chain of a record: the start of a SHA-256 over the chain before it and its payload."""
    return sha256(chain + _LENGTH.pack(len(payload)) + payload).digest()[: len(chain)]


class LogWriter:
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

    def append(self, payload: bytes) -> int:
        """Write the record of the next version; return a ticket to wait with until it is on disk.

        If it cannot be written, nothing of it is left. Only one thread may append at a time.
        """
        if self._broken:
            raise unusable(self._folder.parent, self._broken)
        try:
            if self._file < 0:
                self._begin()
            chain = chained(self._chain, payload)
            front = _FRONT.pack(len(payload), zlib.crc32(_LENGTH.pack(len(payload))), chain)
            record = front + payload + END
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
        path = self._folder / f"{self.version + 1:020d}.log"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self._path = path
        self._size = 0
        _write(self._file, _HEADER.pack(_MAGIC, FORMAT, self._chain), 0)
        self._size = _HEADER.size
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
