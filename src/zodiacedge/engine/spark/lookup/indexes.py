"""Indexes of files: the same rows once more, grouped by the fingerprints of one column.

A look-up in a large file reads the groups of its keys instead of all rows. An index is a file of numbers: the
end of each group, then the rows, one after the other. The hash of a fingerprint is its group, so nothing is
compared and a group is read at one go.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.spark.cluster.task_files import located
from zodiacedge.engine.spark.storage.files import TYPED, DataFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyarrow import NativeFile

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.files import Folder, Relation

    Columns = list[Keys]

# Where files of so many rows together are looked into, those of so many rows each are indexed: fewer are read
# as quickly. Opening and decoding many small files takes most of the time of a look-up without indexes.
INDEXED_FROM = 1 << 14
INDEXED_FILE = 1 << 9
# Files of so many rows are indexed when they are written, by columns that are known to be looked up.
INDEXED_AT_ONCE = 1 << 17
# Files with more rows than this are read by several tasks, and not indexed: one would have to hold them.
MOST_INDEXED = 1 << 22
_ROWS_IN_GROUP = 1024
_BYTES = 8
# Spreads fingerprints of few bits, too.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Index(NamedTuple):
    """An index of a file: its path, and how many rows of what width it has."""

    path: str
    rows: int
    width: int

    @property
    def groups(self) -> int:
        """The number of groups, a power of two."""
        return 1 << max(self.rows // _ROWS_IN_GROUP, 1).bit_length()

    def rows_for(self, keys: int) -> int:
        """Return about how many rows are read for so many keys, if each has few."""
        return keys * self.rows // self.groups


Indexes = dict[int, DataFile]
"""The indexes of a file by column."""


def write_index(folder: Folder, columns: Sequence[Keys], column: int) -> DataFile:
    """Write the rows grouped by a column."""
    rows, width = len(columns[0]), len(columns)
    path = folder.new_file("index")
    index = Index(path, rows, width)
    groups = _groups_of(columns[column], index.groups)
    order = np.argsort(groups.astype(np.min_scalar_type(index.groups)), kind="stable")
    ends = np.cumsum(np.bincount(groups, minlength=index.groups))
    system, inner_path = located(path)
    with system.open_output_stream(inner_path) as stream:
        stream.write(ends.astype(np.int64))
        stream.write(np.stack([values[order] for values in columns], axis=1))
    return DataFile(path, rows)


@contextmanager
def opened(index: Index) -> Iterator[IndexReader]:
    """Open an index, and close it after a `with` block."""
    system, inner_path = located(index.path)
    with system.open_input_file(inner_path) as source:
        yield IndexReader(index, source)


class IndexReader:
    """Reads the groups of an open index."""

    def __init__(self, index: Index, source: NativeFile) -> None:
        """Read the ends of the groups."""
        self._index = index
        self._source = source
        self._ends = np.frombuffer(source.read_at(index.groups * _BYTES, 0), np.int64)

    def rows(self, keys: Keys) -> Columns:
        """Return the rows of the groups of keys, as columns."""
        index, ends = self._index, self._ends
        groups = np.unique(_groups_of(keys, index.groups))
        pieces = [np.zeros((0, index.width), np.int64)]
        for group in groups.tolist():
            first = int(ends[group - 1]) if group else 0
            count = int(ends[group]) - first
            if count:
                at = (index.groups + first * index.width) * _BYTES
                data = self._source.read_at(count * index.width * _BYTES, at)
                pieces.append(np.frombuffer(data, np.int64).reshape(count, index.width))
        return list(np.ascontiguousarray(np.concatenate(pieces).T))


def indexable(source: Relation | str, columns: Iterable[int]) -> tuple[int, ...]:
    """Return the columns that an index is worth: a class has too many members."""
    return tuple(column for column in columns if not (source == TYPED and column))


def column_for(values: Mapping[int, NDArray[np.int64]]) -> int:
    """Return the column to index for a look-up, given the values that it asks for: that with the fewest."""
    return min(values, key=lambda column: (len(np.unique(values[column])), column))


def _groups_of(keys: Keys, groups: int) -> NDArray[np.int64]:
    shift = np.uint64(64 - (groups.bit_length() - 1))
    return ((keys.view(np.uint64) * _MULTIPLIER) >> shift).astype(np.int64)
