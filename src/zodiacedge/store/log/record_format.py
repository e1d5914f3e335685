"""The format of the write-ahead log, and its reader; `local` and `object_store` append records.

A log is a folder of files, each named by the version of its first record. A file has a header and records:

    length (8 bytes)  checksum of the length (4)  chain (16)  payload  end mark (1)

The chain is the start of a SHA-256 over the previous chain and the payload, so a record cannot be altered,
left out or moved. A torn record is the result of a crash: it is the last one, the table does not have it, and
bytes of it are missing or its last blocks are zeros. Any other mismatch is damage and is refused, because an
acknowledged change may be lost. Objects are put atomically: none is torn.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.store.layout import LOG_FOLDER
from zodiacedge.store.problems import damaged_log, newer_format, torn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
# Disks write blocks of at least this size.
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
    """The end of the records that were read."""

    end: int = 0
    chain: bytes = NO_CHAIN
    version: int = 0
    follows: bool = False
    """Whether the chain is known, so that the next file must continue it."""
    torn: Diagnostic | None = None
    flushed: int = 0
    """The version of the table: up to it, no record can be torn."""


@dataclass(frozen=True, slots=True)
class UnflushedLog:
    """The files of the log that are not flushed: the last of them, their number, and their bytes."""

    last: str = ""
    files: int = 0
    bytes: int = 0


def file_name(version: int) -> str:
    """Return the name of the file that begins with the record of a version."""
    return f"{LOG_FOLDER}/{version:020d}.log"


def files(location: Location) -> list[tuple[int, str]]:
    """Return the files of a log with the version of the first record of each, in order."""
    named = []
    for file in location.listed(LOG_FOLDER):
        stem, dot, suffix = file.name.rsplit("/", 1)[-1].partition(".")
        if stem.isdigit() and (dot, suffix) == (".", "log"):
            named.append((int(stem), file.name))
    return sorted(named)


def read_files(
    location: Location, chosen: Sequence[tuple[int, str]], scan: Scan | None = None, *, ends: bool
) -> Iterator[Record]:
    """Yield the records of files, in order.

    Args:
        location: The location of the store.
        chosen: The files with the version of the first record of each, in order.
        scan: Updated as records are read; if not given, the chain is not checked from file to file.
        ends: Whether the log ends with these files, so that the last record may be torn.
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
        progress = scan or Scan()
        for number, offset, payload in _records(path, data, version, progress, last=name == open_end):
            yield Record(progress.version, payload, location, name, number, offset)


def _records(
    path: str, data: bytes, first: int, scan: Scan, *, last: bool
) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number, offset and payload of each record of a file."""
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
        offset = scan.end
        payload, why = _payload(data, offset, scan.chain)
        if payload is None:
            if why or not last or scan.version < scan.flushed:
                raise damaged_log(path, number, offset, why or "it ends too early", scan.version)
            scan.torn = torn(path, offset)
            return
        scan.chain = chained(scan.chain, payload)
        scan.version += 1
        scan.end = offset + _FRONT.size + len(payload) + len(END)
        yield number, offset, payload


def _payload(data: bytes, offset: int, chain: bytes) -> tuple[bytes | None, str]:
    """Return the payload of a record, or None and the damage; the damage of a torn record is empty."""
    if len(data) - offset < _FRONT.size or not data[offset:].strip(b"\0"):
        return None, ""
    length, check, own_chain = _FRONT.unpack_from(data, offset)
    if check != zlib.crc32(data[offset : offset + _LENGTH.size]):
        return None, "its length does not fit its check"
    start, end = offset + _FRONT.size, offset + _FRONT.size + length
    if end + len(END) > len(data):
        return None, ""
    payload = data[start:end]
    if own_chain != chained(chain, payload):
        return None, "" if _last_blocks_lost(data, offset, end) else "its checksum does not fit"
    # A record is complete even if its end mark did not reach the disk.
    return (payload, "") if data[end : end + 1] in {END, b"\0"} else (None, "its end mark does not fit")


def _last_blocks_lost(data: bytes, offset: int, end: int) -> bool:
    """Return whether the last record ends in blocks that never reached the disk: they read as zeros."""
    zeros = max(offset, len(data.rstrip(b"\0")))
    return end + len(END) == len(data) and -(-zeros // _BLOCK) * _BLOCK <= end


def chained(chain: bytes, payload: bytes) -> bytes:
    """Return the chain of a record: the start of a SHA-256 over the previous chain and its payload."""
    return sha256(chain + _LENGTH.pack(len(payload)) + payload).digest()[: len(chain)]


def header(chain: bytes, mark: bytes = bytes(4)) -> bytes:
    """Return the header of a file whose first record continues a chain; a mark makes it unique."""
    return _HEADER.pack(_MAGIC, FORMAT, mark, chain)


def framed(chain: bytes, payload: bytes) -> bytes:
    """Return the bytes of a record with its own chain."""
    length = _LENGTH.pack(len(payload))
    return _FRONT.pack(len(payload), zlib.crc32(length), chain) + payload + END
