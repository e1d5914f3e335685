"""Writes and reads partitions as Parquet files named by the SHA-256 of their bytes.

A partition has the folder of its predicate and segment. Opening a file takes as long as reading some ten
thousand rows, so many small partitions of a commit share files in a separate folder. The metadata of a shared
file lists the rows of each partition; other readers can ignore it.

In a shared location, a random mark in each file makes its name new, so that a vacuum does not remove a file
that a commit is about to name.
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.store.location.base import Location, Staging

# The folder of shared files.
SHARED_FOLDER = f"{RELATION_PREFIX}many/segment=many"
# Partitions of at most `FEW_ROWS` share files of about `_SHARED_FILE_ROWS`.
FEW_ROWS = 100
_SHARED_FILE_ROWS = 1 << 16
_EXPLICIT = "explicit"
_KINDS = (_EXPLICIT, "derived", "aggregate")
_KEY_COLUMNS = ["kind", "predicate", "arity"]
_ROW_GROUP_ROWS = 1 << 18
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
    """Return the rows of a partition as they are written, with its key."""
    count = len(table)
    columns = {
        "kind": pa.repeat(key.kind, count),
        "predicate": pa.repeat(key.predicate, count),
        "arity": pa.repeat(pa.scalar(key.arity, pa.int32()), count),
    }
    columns |= {name: table.column(name) for name in column_names(key.arity)}
    return FileSlice(folder_of(key), pa.table(columns))


# Writing


def write_partition(location: Location, slice_: FileSlice, staging: Staging) -> PartitionFile:
    """Stage a partition as a file, unless the file exists."""
    return _stage(location, slice_.folder, slice_.rows, staging)


def write_shared(
    location: Location, slices: Iterable[FileSlice], staging: Staging
) -> Iterator[tuple[PartitionFile, frozenset[str]]]:
    """Stage small partitions in shared files; yield each file with the folders of its partitions."""
    waiting: list[FileSlice] = []
    rows = 0
    for slice_ in slices:
        waiting.append(slice_)
        rows += len(slice_.rows)
        if rows >= _SHARED_FILE_ROWS:
            yield _stage_shared(location, waiting, staging)
            waiting, rows = [], 0
    if waiting:
        yield _stage_shared(location, waiting, staging)


def _stage_shared(
    location: Location, slices: Sequence[FileSlice], staging: Staging
) -> tuple[PartitionFile, frozenset[str]]:
    index = json.dumps([[slice_.folder, len(slice_.rows)] for slice_ in slices])
    rows = pa.concat_tables([slice_.rows for slice_ in slices], promote_options="default")
    file = _stage(location, SHARED_FOLDER, rows.replace_schema_metadata({_SLICES: index}), staging)
    return file, frozenset(slice_.folder for slice_ in slices)


def _stage(location: Location, folder: str, rows: pa.Table, staging: Staging) -> PartitionFile:
    if location.shared:
        mark = {_MARK: secrets.token_hex(_MARK_BYTES)}
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **mark})
    out = pa.BufferOutputStream()
    # Compressing a few rows saves no space, and doubles the time to write and to read.
    compression = "zstd" if len(rows) > FEW_ROWS else "none"
    pq.write_table(rows, out, compression=compression, row_group_size=_ROW_GROUP_ROWS)
    data = out.getvalue().to_pybytes()
    path = f"{folder}/{sha256(data).hexdigest()}.parquet"
    if location.shared or not location.has(path):
        staging.add(path, data)
    return PartitionFile(path, len(data), len(rows))


# Reading


def checked(path: str, name: str, read: Callable[[], bytes]) -> bytes:
    """Read a file, or raise if that fails or its name is not its checksum."""
    try:
        data = read()
    except OSError as error:
        raise damaged_table(path, f"cannot be read: {error.strerror or error}") from error
    if f"{sha256(data).hexdigest()}.parquet" != name.rsplit("/", 1)[-1]:
        raise damaged_table(path, "is damaged: its checksum is not its name")
    return data


def slices_of(path: str, data: bytes) -> list[FileSlice]:
    """Decode the partitions of a shared file."""
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
    """Yield the partitions of a file; `owners` maps the name of each segment to its rules."""
    folder = name.rsplit("/", 1)[0]
    if folder == SHARED_FOLDER:
        for slice_ in slices_of(path, data):
            yield _read(path, slice_, owners)
        return
    try:
        table = _parquet(data)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged_table(path, f"is no partition of a store: {error}") from error
    yield _read(path, FileSlice(folder, table), owners)


def _read(
    path: str, slice_: FileSlice, owners: Mapping[str, frozenset[str]]
) -> tuple[PartitionKey, pa.Table]:
    table = slice_.rows
    try:
        kind, predicate, arity = (table.column(name)[0].as_py() for name in _KEY_COLUMNS)
        owner = owners[slice_.folder.rsplit("=", 1)[1]]
        key = PartitionKey(kind, owner, predicate, arity)
        rows = table.select(column_names(arity)) if arity else table
    except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError) as error:
        raise damaged_table(path, f"is no partition of a store: {error}") from error
    if kind not in _KINDS or not isinstance(predicate, str) or folder_of(key) != slice_.folder:
        raise damaged_table(path, "is no partition of a store: it is in another folder")
    return key, rows


def _parquet(data: bytes) -> pa.Table:
    # Starting threads pays off for large files only.
    large = len(data) > _LARGE
    table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=large).read(use_threads=large)
    # A forged file may have a correct name and any contents.
    table.validate(full=True)
    return table
