"""Indexes of files: the same rows once more, grouped by the fingerprints of one column.

A look-up in a large file reads the groups of its keys instead of all rows. An index is a file of numbers: the
end of each group, then the rows, one after the other. The hash of a fingerprint is its group, so nothing is
compared and a group is read at one go. Rows of many columns would be repeated for each: their indexes have
fingerprints with the places of rows instead, and the rows are read from row groups of the file itself.

Who writes the rows of a relation writes their indexes, while the rows are in memory (`write_indexed`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.spark.cluster.task_files import count_read, located
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, parquet_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyarrow import NativeFile

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.files import Folder, Relation

    Columns = list[Keys]

# Files with fewer rows are read as quickly without an index.
INDEXED_FILE = 1 << 9
# Files with more rows than this, without an index, are read by several tasks: one would have to hold them.
MOST_INDEXED = 1 << 22
# Of rows with more columns an index has places.
MOST_COPIED = 3
# So many of them are together in their file.
_WIDE_TOGETHER = 1 << 13
_ROWS_IN_GROUP = 128
# Of so many times as many groups as are read, the ends are read one by one.
_FEW_OF = 64
# A column with fewer filled groups is not indexed with its file: its keys have very many rows.
_LEAST_FILLED = 16
_BYTES = 8
# A fingerprint and a place.
_PLACED = 2
# Spreads fingerprints of few bits, too.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Index(NamedTuple):
    """An index of a file: the paths of both, how many rows of what width the file has."""

    path: str
    file: str
    rows: int
    width: int
    filled: int
    """How many of its groups have rows."""

    @property
    def has_places(self) -> bool:
        """Whether it has the places of rows instead of rows."""
        return self.width > MOST_COPIED

    @property
    def entry(self) -> int:
        """The width of its own rows."""
        return _PLACED if self.has_places else self.width

    @property
    def groups(self) -> int:
        """The number of groups, a power of two."""
        return 1 << max(self.rows // _ROWS_IN_GROUP, 1).bit_length()

    def rows_for(self, keys: int) -> int:
        """Return about how many rows are read for so many keys."""
        read = keys * self.rows // self.filled
        return read + keys * _WIDE_TOGETHER if self.has_places else read


def index_of(file: DataFile, index: DataFile, width: int) -> Index:
    """Return the index of a file with so many columns, and perhaps one of stamps."""
    return Index(index.path, file.path, index.rows, width + file.stamped, index.groups)


def write_indexed(folder: Folder, relation: Relation, columns: Sequence[Keys]) -> DataFile:
    """Write rows of a relation, given as columns, and the indexes of their file by all columns.

    One column more than the relation has are the stamps of the rows.
    """
    together = {} if len(columns) <= MOST_COPIED else {"together": _WIDE_TOGETHER}
    file = folder.write_rows(relation, columns, **together)
    if file.rows < INDEXED_FILE:
        return file
    by = indexable(relation, range(relation.width if relation.arity else 0))
    indexes = {column: write_index(folder, file, columns, column, _LEAST_FILLED) for column in by}
    return replace(file, indexes={column: index for column, index in indexes.items() if index})


def write_pieces(folder: Folder, relation: Relation, pieces: Sequence[Sequence[Keys]]) -> DataFile:
    """Write rows of a relation, given in pieces of columns, and their indexes."""
    if not pieces:
        return DataFile("", 0)
    return write_indexed(folder, relation, [np.concatenate(column) for column in zip(*pieces, strict=True)])


def write_index(
    folder: Folder, file: DataFile, columns: Sequence[Keys], column: int, least: int = 1
) -> DataFile | None:
    """Write the rows of a file, or their places, grouped by a column.

    Return None if fewer groups than `least` have rows, because a key has too many.
    """
    index = Index("", file.path, len(columns[0]), len(columns), 1)
    if index.has_places:
        columns = [columns[column], np.arange(index.rows)]
        column = 0
    groups = _groups_of(columns[column], index.groups)
    counts = np.bincount(groups, minlength=index.groups)
    filled = int(np.count_nonzero(counts))
    if filled < least:
        return None
    path = folder.new_file("index")
    order = np.argsort(groups.astype(np.min_scalar_type(index.groups)), kind="stable")
    system, inner_path = located(path)
    with system.open_output_stream(inner_path) as stream:
        stream.write(np.cumsum(counts).astype(np.int64))
        stream.write(np.stack([values[order] for values in columns], axis=1))
    return DataFile(path, index.rows, groups=filled)


@contextmanager
def opened(index: Index) -> Iterator[IndexReader]:
    """Open an index, and close it after a `with` block."""
    system, inner_path = located(index.path)
    with system.open_input_file(inner_path) as source:
        yield IndexReader(index, source)


class IndexReader:
    """Reads the groups of an open index."""

    def __init__(self, index: Index, source: NativeFile) -> None:
        """Take an index and its open file."""
        self._index = index
        self._source = source

    def rows(self, keys: Keys) -> Columns:
        """Return the rows of keys, as columns, and perhaps others of their groups."""
        if not self._index.has_places:
            return self._entries(keys)
        found, places = self._entries(keys)
        return _rows_at(self._index, np.sort(places[np.isin(found, keys)]))

    def _entries(self, keys: Keys) -> Columns:
        """Return the index's own rows in the groups of keys."""
        index = self._index
        pieces = [np.zeros((0, index.entry), np.int64)]
        for first, end in self._bounds(np.unique(_groups_of(keys, index.groups))):
            count = end - first
            if count:
                at = (index.groups + first * index.entry) * _BYTES
                data = self._source.read_at(count * index.entry * _BYTES, at)
                pieces.append(np.frombuffer(data, np.int64).reshape(count, index.entry))
                count_read(count)
        return list(np.ascontiguousarray(np.concatenate(pieces).T))

    def _bounds(self, groups: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Yield where groups begin and end."""
        many = len(groups) * _FEW_OF > self._index.groups
        ends = np.frombuffer(self._source.read_at(self._index.groups * _BYTES, 0), np.int64) if many else None
        for group in groups.tolist():
            first = max(group - 1, 0)
            here = (
                ends[first : group + 1]
                if ends is not None
                else np.frombuffer(
                    self._source.read_at((group + 1 - first) * _BYTES, first * _BYTES), np.int64
                )
            )
            yield (int(here[0]) if group else 0), int(here[-1])


def _rows_at(index: Index, places: Keys) -> Columns:
    """Return the rows at sorted places of a file, from the row groups that have them."""
    pieces = [[np.zeros(0, np.int64)] * index.width]
    with parquet_file(index.file) as file:
        first = 0
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            here = places[slice(*np.searchsorted(places, (first, first + rows)))] - first
            first += rows
            if len(here):
                count_read(rows)
                table = file.read_row_group(number)
                pieces.append([column.to_numpy()[here] for column in table.columns])
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]


def indexable(source: Relation | str, columns: Iterable[int]) -> tuple[int, ...]:
    """Return the columns that an index is worth: a class has too many members."""
    return tuple(column for column in columns if not (source == TYPED and column))


def column_for(values: Mapping[int, NDArray[np.int64]]) -> int:
    """Return the column to index for a look-up, given the values that it asks for: that with the fewest."""
    return min(values, key=lambda column: (len(np.unique(values[column])), column))


def _groups_of(keys: Keys, groups: int) -> NDArray[np.int64]:
    shift = np.uint64(64 - (groups.bit_length() - 1))
    return ((keys.view(np.uint64) * _MULTIPLIER) >> shift).astype(np.int64)
