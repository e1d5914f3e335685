"""Partitions as Parquet files, named by the SHA-256 of their bytes: one file per partition, or shared.

A partition has the folder of its predicate and segment. A program with thousands of predicates would have
thousands of files with a few rows each, and each takes as long as some ten thousand rows. So many small
partitions that are written at once share files in a folder of their own. The metadata of a shared file says
which rows belong to which partition; for other readers it is a file like any other.

In a shared location no file gets the name of an earlier one: a random mark inside makes it another file, so
that a vacuum does not remove a file that is about to be named.
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
from zodiacedge.store.layout import RELATION_PREFIX, folder_name, short_hash
from zodiacedge.store.problems import damaged_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.store.location.base import Location, Staging

# The folder of files that many partitions share.
TOGETHER = f"{RELATION_PREFIX}many/segment=many"
# Partitions of at most so many rows may share a file, which has about so many rows at most.
FEW_ROWS = 100
_TOGETHER_ROWS = 1 << 16
_EXPLICIT = "explicit"
_KINDS = (_EXPLICIT, "derived", "aggregate")
_OWN = ["kind", "predicate", "arity"]
_ROWS_TOGETHER = 1 << 18
_LARGE = 1 << 20
_MARK = "zodiac.mark"
_MARK_BYTES = 8
_SLICES = b"zodiac.parts"


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The rows of a partition in a file, and the folder of the partition."""

    folder: str
    rows: pa.Table


def segment_name(owner: frozenset[str]) -> str:
    """Return the name of a segment: that of the explicit facts, or a hash of the rules of a node."""
    return f"node-{short_hash(owner)}" if owner else _EXPLICIT


def folder_of(key: PartitionKey) -> str:
    """Return the folder of a partition."""
    name = folder_name(key.predicate, key.arity, key.kind)
    return f"{RELATION_PREFIX}{name}/segment={segment_name(key.owner)}"


def slice_of(key: PartitionKey, table: pa.Table) -> FileSlice:
    """Return a partition as it is written."""
    count = len(table)
    columns = {
        "kind": pa.repeat(key.kind, count),
        "predicate": pa.repeat(key.predicate, count),
        "arity": pa.repeat(pa.scalar(key.arity, pa.int32()), count),
    }
    columns |= {name: table.column(name) for name in column_names(key.arity)}
    return FileSlice(folder_of(key), pa.table(columns))


# Writing


def write_alone(location: Location, part: FileSlice, writing: Staging) -> PartitionFile:
    """Write a partition as a file, unless the file exists."""
    return _staged(location, part.folder, part.rows, writing)


def write_together(
    location: Location, slices: Iterable[FileSlice], writing: Staging
) -> Iterator[tuple[PartitionFile, frozenset[str]]]:
    """Write small partitions to shared files; yield each file with the folders of its partitions."""
    waiting: list[FileSlice] = []
    rows = 0
    for one in slices:
        waiting.append(one)
        rows += len(one.rows)
        if rows >= _TOGETHER_ROWS:
            yield _staged_together(location, waiting, writing), frozenset(one.folder for one in waiting)
            waiting, rows = [], 0
    if waiting:
        yield _staged_together(location, waiting, writing), frozenset(one.folder for one in waiting)


def _staged_together(location: Location, slices: Sequence[FileSlice], writing: Staging) -> PartitionFile:
    index = json.dumps([[one.folder, len(one.rows)] for one in slices])
    rows = pa.concat_tables([one.rows for one in slices], promote_options="default")
    return _staged(location, TOGETHER, rows.replace_schema_metadata({_SLICES: index}), writing)


def _staged(location: Location, folder: str, rows: pa.Table, writing: Staging) -> PartitionFile:
    if location.shared:
        mark = {_MARK: secrets.token_hex(_MARK_BYTES)}
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **mark})
    out = pa.BufferOutputStream()
    # Compressing a few rows saves no room, and takes twice the time to write and to read.
    packed = "zstd" if len(rows) > FEW_ROWS else "none"
    pq.write_table(rows, out, compression=packed, row_group_size=_ROWS_TOGETHER)
    data = out.getvalue().to_pybytes()
    path = f"{folder}/{sha256(data).hexdigest()}.parquet"
    if location.shared or not location.has(path):
        writing.add(path, data)
    return PartitionFile(path, len(data), len(rows))


# Reading


def checked(path: str, name: str, data: bytes) -> bytes:
    """Return the bytes of a file if its name is their checksum."""
    if f"{sha256(data).hexdigest()}.parquet" != name.rsplit("/", 1)[-1]:
        raise damaged_table(path, "is damaged: its checksum is not its name")
    return data


def slices_of(path: str, data: bytes) -> list[FileSlice]:
    """Return the partitions of a shared file."""
    try:
        table = _parquet(data)
        slices = []
        start = 0
        for folder, count in json.loads((table.schema.metadata or {})[_SLICES]):
            if not isinstance(folder, str) or not isinstance(count, int) or count <= 0:
                raise ValueError(f"{folder!r} with {count!r} rows")  # noqa: TRY301 - one way to say it
            slices.append(FileSlice(folder, table.slice(start, count)))
            start += count
        if start != len(table):
            raise ValueError(f"it says {start:,} rows and has {len(table):,}")  # noqa: TRY301 - as above
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise damaged_table(path, f"is no file of partitions: {error}") from error
    return slices


def read_partitions(
    path: str, name: str, data: bytes, owners: Mapping[str, frozenset[str]]
) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield the partitions of a file; `owners` are the rules of each segment by its name."""
    folder = name.rsplit("/", 1)[0]
    if folder == TOGETHER:
        for one in slices_of(path, data):
            yield _read(path, one, owners)
        return
    try:
        table = _parquet(data)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged_table(path, f"is no partition of a store: {error}") from error
    yield _read(path, FileSlice(folder, table), owners)


def _read(path: str, part: FileSlice, owners: Mapping[str, frozenset[str]]) -> tuple[PartitionKey, pa.Table]:
    table = part.rows
    try:
        kind, predicate, arity = (table.column(name)[0].as_py() for name in _OWN)
        owner = owners[part.folder.rsplit("=", 1)[1]]
        key = PartitionKey(kind, owner, predicate, arity)
        rows = table.select(column_names(arity)) if arity else table
    except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError) as error:
        raise damaged_table(path, f"is no partition of a store: {error}") from error
    if kind not in _KINDS or not isinstance(predicate, str) or folder_of(key) != part.folder:
        raise damaged_table(path, "is no partition of a store: it is in another folder")
    return key, rows


def _parquet(data: bytes) -> pa.Table:
    # Threads are worth their start for large files only.
    large = len(data) > _LARGE
    table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=large).read(use_threads=large)
    # A file from elsewhere may have a name that fits it, and any contents.
    table.validate(full=True)
    return table
