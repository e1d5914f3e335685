"""The write-ahead log: records that are on disk before a change is acknowledged.

A log is a folder of files, each named by the version of its first record. A file begins with a header, and
every record in it is

    length (8 bytes)  check of the length (4)  chain (16)  payload  end mark (1)

The chain is the start of a SHA-256 over the chain before it and the payload, so a record cannot be altered,
left out or moved. A crash is told from damage: a torn record, the last one, misses bytes, or its last blocks
are zeros, and the table cannot have it. Everything else that does not fit is damage, and is refused, because
an acknowledged change may be lost. Objects are put whole: none is torn.

`local` and `object_store` append records.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from zodiacedge.store.layout import LOG_FOLDER
from zodiacedge.store.problems import damaged_log, newer_format, torn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from zodiacedge.errors import Diagnostic
    from zodiacedge.store.location.base import Location

FORMAT = 1
_MAGIC = b"ZODIACWL"
_HEADER = struct.Struct("<8sI4s16s")
HEADER_BYTES = _HEADER.size
_LENGTH = struct.Struct("<Q")
_FRONT = struct.Struct("<QI16s")
END = b"\xed"
NO_CHAIN = bytes(16)
# Disks write no less at a time.
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the log: its version, its payload, and its position."""

    version: int
    payload: bytes
    location: Location
    file: str
    number: int
    offset: int

    @property
    def path(self) -> str:
        """The path of the file for messages."""
        return self.location.display_name(self.file)


@dataclass(slots=True)
class Scan:
    """How far a log was read."""

    end: int = 0
    chain: bytes = NO_CHAIN
    version: int = 0
    follows: bool = False
    """Whether the chain is that of the version: the next file must continue it."""
    torn: Diagnostic | None = None
    flushed: int = 0
    """The version of the table: up to it, no record can be torn."""


@dataclass(frozen=True, slots=True)
class UnflushedLog:
    """The files of the log that are not flushed: the last of them, their number, and their bytes."""

    last: str = ""
    files: int = 0
    bytes: int = 0


class Log(Protocol):
    """Appends records to a log."""

    @property
    def version(self) -> int:
        """The version of the last record."""

    @property
    def chain(self) -> bytes:
        """The chain of the last record."""

    @property
    def size(self) -> int:
        """The bytes of the records that the table lacks, or the bytes that take as long to read."""

    def append(self, payload: bytes, meanwhile: Callable[[], None]) -> int:
        """Write the record of the next version; return a ticket for `sync`.

        If it cannot be written, nothing of it is left. Only one thread may append at a time; it calls
        `meanwhile` now and then, if it has to wait.
        """

    def withdraw(self, version: int) -> None:
        """Take back the record after a version, if there is one: its change failed."""

    def sync(self, ticket: int) -> None:
        """Wait until a record is durable."""

    def sync_all(self) -> None:
        """Wait until all records are durable."""

    def rotate(self) -> None:
        """Let the next record begin a new file: a flush takes what was written so far."""

    def close(self) -> None:
        """Write no more."""


def file_name(version: int) -> str:
    """Return the name of the file whose first record is that of a version."""
    return f"{LOG_FOLDER}/{version:020d}.log"


def files(location: Location) -> list[tuple[int, str]]:
    """Return the files of a log with the version of the first record of each, in order."""
    found = []
    for one in location.listed(LOG_FOLDER):
        stem, dot, ending = one.name.rsplit("/", 1)[-1].partition(".")
        if stem.isdigit() and (dot, ending) == (".", "log"):
            found.append((int(stem), one.name))
    return sorted(found)


def read_files(
    location: Location, chosen: Sequence[tuple[int, str]], scan: Scan | None = None, *, ends: bool
) -> Iterator[Record]:
    """Yield the records of some files, one after the other.

    Args:
        location: The location of the store.
        chosen: The files with the version of the first record of each, in order.
        scan: Updated as records are read; without one, each file is read on its own.
        ends: Whether the log ends with them: then the last record may be torn.
    """
    first = {name: version for version, name in chosen}
    open_end = chosen[-1][1] if chosen and ends and not location.shared else ""
    for name, read in location.read_all(first):
        version, path = first[name], location.display_name(name)
        if scan and version > scan.version + 1:
            why = f"version {scan.version + 1} is missing before it"
            raise damaged_log(path, 0, 0, why, scan.version)
        try:
            data = read()
        except OSError as error:
            why = f"it cannot be read: {error.strerror or error}"
            raise damaged_log(path, 0, 0, why, version - 1) from error
        how_far = scan or Scan()
        for number, offset, payload in _records(path, data, version, how_far, last=name == open_end):
            yield Record(how_far.version, payload, location, name, number, offset)


def _records(
    path: str, data: bytes, first: int, scan: Scan, *, last: bool
) -> Iterator[tuple[int, int, bytes]]:
    """Yield the records of a file: the number, offset and payload of each."""
    before = scan.chain if scan.follows and scan.version == first - 1 else None
    scan.version = first - 1
    scan.end, scan.torn, scan.follows = 0, None, True
    if len(data) < _HEADER.size or not data[: _HEADER.size].strip(b"\0"):
        if not last or scan.version < scan.flushed:
            raise damaged_log(path, 0, 0, "the file has no header", first - 1)
        scan.torn = torn(path, 0)
        return
    magic, made, _, scan.chain = _HEADER.unpack_from(data)
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
            if why or not last or scan.version < scan.flushed:
                raise damaged_log(path, number, at, why or "it ends too early", scan.version)
            scan.torn = torn(path, at)
            return
        scan.chain = chained(scan.chain, payload)
        scan.version += 1
        scan.end = at + _FRONT.size + len(payload) + len(END)
        yield number, at, payload


def _payload(data: bytes, at: int, chain: bytes) -> tuple[bytes | None, str]:
    """Return a record's payload, or None and what is wrong with it: nothing if it is only torn."""
    if len(data) - at < _FRONT.size or not data[at:].strip(b"\0"):
        return None, ""
    length, check, kept = _FRONT.unpack_from(data, at)
    if check != zlib.crc32(data[at : at + _LENGTH.size]):
        return None, "its length does not fit its check"
    start, end = at + _FRONT.size, at + _FRONT.size + length
    if end + len(END) > len(data):
        return None, ""
    payload = data[start:end]
    if kept != chained(chain, payload):
        return None, "" if _last_blocks_lost(data, at, end) else "its checksum does not fit"
    # A record is whole even if its end mark did not reach the disk.
    return (payload, "") if data[end : end + 1] in {END, b"\0"} else (None, "its end mark does not fit")


def _last_blocks_lost(data: bytes, at: int, end: int) -> bool:
    """Whether the last record ends in blocks that never reached the disk: they read as zeros."""
    zeros = max(at, len(data.rstrip(b"\0")))
    return end + len(END) == len(data) and -(-zeros // _BLOCK) * _BLOCK <= end


def chained(chain: bytes, payload: bytes) -> bytes:
    """Return the chain of a record: the start of a SHA-256 over the chain before it and its payload."""
    return sha256(chain + _LENGTH.pack(len(payload)) + payload).digest()[: len(chain)]


def header(chain: bytes, mark: bytes = bytes(4)) -> bytes:
    """Return the header of a file whose first record continues a chain; a mark makes it unique."""
    return _HEADER.pack(_MAGIC, FORMAT, mark, chain)


def framed(chain: bytes, payload: bytes) -> bytes:
    """Return a record as it is written, its own chain given."""
    length = _LENGTH.pack(len(payload))
    return _FRONT.pack(len(payload), zlib.crc32(length), chain) + payload + END
