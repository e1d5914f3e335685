"""Parts as Parquet files, each named by the SHA-256 of its bytes: one for each part, or for many small ones.

A part of its own has the folder of its predicate and segment. A program with thousands of predicates would
have thousands of files with a few rows each, and each takes as long as some ten thousand rows do. So where
many parts with few rows are written at once, they share files in a folder of their own. The metadata of such
a file says which rows belong to which part; for other readers it is a file like any other.

Where several may write, no file gets the name of an earlier one: a mark inside makes it another file, so that
nobody sweeps what is about to be named.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from zodiacedge.engine.persistence import PartitionFile, PartitionKey, column_names
from zodiacedge.store.layout import PARTS, folder_name, short_hash
from zodiacedge.store.problems import damaged_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.store.location.base import Location, Staging

# The folder of files that many parts are in.
TOGETHER = f"{PARTS}many/segment=many"
# Parts of at most so many rows may share a file, which has at most so many then.
FEW_ROWS = 100
_TOGETHER_ROWS = 1 << 16
_EXPLICIT = "explicit"
_KINDS = (_EXPLICIT, "derived", "aggregate")
_OWN = ["kind", "predicate", "arity"]
_ROWS_TOGETHER = 1 << 18
_LARGE = 1 << 20
_MARK = "zodiac.mark"
_MARK_BYTES = 8
_PIECES = b"zodiac.parts"


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The rows of one part in a file that many are in, and the folder that it would have alone."""

    location: str
    rows: pa.Table


def segment_name(owner: frozenset[str]) -> str:
    """Return the name of a segment: that of the explicit facts, or a hash of the rules of a node."""
    return f"node-{short_hash(owner)}" if owner else _EXPLICIT


def place_of(key: PartitionKey) -> str:
    """Return the folder of a part."""
    name = folder_name(key.predicate, key.arity, key.kind)
    return f"{PARTS}{name}/segment={segment_name(key.owner)}"


def piece_of(key: PartitionKey, table: pa.Table) -> FileSlice:
    """Return a part as it is written."""
    count = len(table)
    columns = {
        "kind": pa.repeat(key.kind, count),
        "predicate": pa.repeat(key.predicate, count),
        "arity": pa.repeat(pa.scalar(key.arity, pa.int32()), count),
    }
    columns |= {name: table.column(name) for name in column_names(key.arity)}
    return FileSlice(place_of(key), pa.table(columns))


# Writing


def write_alone(location: Location, piece: FileSlice, writing: Staging) -> PartitionFile:
    """Write a part as a file, unless it is there."""
    return _staged(location, piece.location, piece.rows, writing)


def write_together(
    location: Location, pieces: Iterable[FileSlice], writing: Staging
) -> Iterator[tuple[PartitionFile, frozenset[str]]]:
    """Write small parts together; yield each file with the folders that its parts would have alone."""
    waiting: list[FileSlice] = []
    rows = 0
    for piece in pieces:
        waiting.append(piece)
        rows += len(piece.rows)
        if rows >= _TOGETHER_ROWS:
            yield _staged_together(location, waiting, writing), frozenset(one.location for one in waiting)
            waiting, rows = [], 0
    if waiting:
        yield _staged_together(location, waiting, writing), frozenset(one.location for one in waiting)


def _staged_together(location: Location, pieces: Sequence[FileSlice], writing: Staging) -> PartitionFile:
    said = json.dumps([[one.location, len(one.rows)] for one in pieces])
    rows = pa.concat_tables([one.rows for one in pieces], promote_options="default")
    return _staged(location, TOGETHER, rows.replace_schema_metadata({_PIECES: said}), writing)


def _staged(location: Location, folder: str, rows: pa.Table, writing: Staging) -> PartitionFile:
    if location.shared:
        mark = {_MARK: secrets.token_hex(_MARK_BYTES)}
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **mark})
    out = pa.BufferOutputStream()
    # A few rows take no less room for it, and twice the time to write and to read.
    packed = "zstd" if len(rows) > FEW_ROWS else "none"
    pq.write_table(rows, out, compression=packed, row_group_size=_ROWS_TOGETHER)
    data = out.getvalue().to_pybytes()
    path = f"{folder}/{sha256(data).hexdigest()}.parquet"
    if location.shared or not location.has(path):
        writing.add(path, data)
    return PartitionFile(path, len(data), len(rows))


# Reading


def checked(path: str, name: str, data: bytes) -> bytes:
    """Return what a file holds if its name says so."""
    if f"{sha256(data).hexdigest()}.parquet" != name.rsplit("/", 1)[-1]:
        raise damaged_table(path, "is damaged: its checksum is not its name")
    return data


def pieces_of(path: str, data: bytes) -> list[FileSlice]:
    """Return the parts of a file that many are in."""
    try:
        table = _parquet(data)
        found = []
        start = 0
        for location, count in json.loads((table.schema.metadata or {})[_PIECES]):
            if not isinstance(location, str) or not isinstance(count, int) or count <= 0:
                raise ValueError(f"{location!r} with {count!r} rows")  # noqa: TRY301 - one way to say it
            found.append(FileSlice(location, table.slice(start, count)))
            start += count
        if start != len(table):
            raise ValueError(f"it says {start:,} rows and has {len(table):,}")  # noqa: TRY301 - as above
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise damaged_table(path, f"is no file of parts: {error}") from error
    return found


def read_parts(
    path: str, name: str, data: bytes, owners: Mapping[str, frozenset[str]]
) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield the parts of a file; `owners` are the rules of each segment by its name."""
    folder = name.rsplit("/", 1)[0]
    if folder == TOGETHER:
        for piece in pieces_of(path, data):
            yield _read(path, piece, owners)
        return
    try:
        table = _parquet(data)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged_table(path, f"is no part of a store: {error}") from error
    yield _read(path, FileSlice(folder, table), owners)


def _read(path: str, piece: FileSlice, owners: Mapping[str, frozenset[str]]) -> tuple[PartitionKey, pa.Table]:
    table = piece.rows
    try:
        kind, predicate, arity = (table.column(name)[0].as_py() for name in _OWN)
        owner = owners[piece.location.rsplit("=", 1)[1]]
        key = PartitionKey(kind, owner, predicate, arity)
        rows = table.select(column_names(arity)) if arity else table
    except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError) as error:
        raise damaged_table(path, f"is no part of a store: {error}") from error
    if kind not in _KINDS or not isinstance(predicate, str) or place_of(key) != piece.location:
        raise damaged_table(path, "is no part of a store: it stands in another place")
    return key, rows


def _parquet(data: bytes) -> pa.Table:
    # Threads are worth their start for large files only.
    large = len(data) > _LARGE
    table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=large).read(use_threads=large)
    # A file from elsewhere may have any name that fits it, and anything inside.
    table.validate(full=True)
    return table
