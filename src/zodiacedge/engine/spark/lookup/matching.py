"""Which rows of a file match: those that have one of some combinations of values in some columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.spark.cluster.task_files import count_read
from zodiacedge.engine.spark.storage.blocks import BlockReader
from zodiacedge.engine.spark.storage.files import among, groups_where, parquet_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from pyarrow.parquet import ParquetFile

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.files import DataFile

    Columns = list[Keys]

Wants = dict[tuple[int, ...], set[tuple[int, ...]]]
"""The values to look up, by columns; no column means all rows."""
# So many rows of small row groups are read at once.
_READ_AT_ONCE = 1 << 17


def matching(
    file: DataFile, width: int, wants: Wants, most: int, reader: BlockReader | None = None
) -> Columns | None:
    """Return the matching rows of a file; None if they are more than `most`.

    Args:
        file: A file of rows.
        width: How many columns it has.
        wants: The values to look up.
        most: The most rows to return.
        reader: Reads the blocks that an index finds, and keeps some for the next look-up.
    """
    reader = reader or BlockReader()
    blocks = _blocks(file, wants, reader)
    read = _read(file, width, wants) if blocks is None else reader.columns(file, blocks)
    pieces: list[Columns] = []
    for columns in read:
        # After the columns of a relation there may be stamps.
        pieces.append(chosen(columns[:width], wants))
        most -= len(pieces[-1][0])
        if most < 0:
            return None
    if not pieces:
        return [np.zeros(0, np.int64) for _ in range(width)]
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]


def chosen(columns: Columns, wants: Wants) -> Columns:
    """Return the rows that match."""
    mask = np.zeros(len(columns[0]), np.bool_)
    for names, values in wants.items():
        mask |= _Test.of(names, values).mask(columns, len(mask))
    return [column[mask] for column in columns]


def has_one_of(column: Keys, values: pa.Array) -> NDArray[np.bool_]:
    """Return for each row whether a column has one of some values."""
    mask: NDArray[np.bool_] = pc.is_in(pa.array(column), values).to_numpy(zero_copy_only=False)
    return mask


def _blocks(file: DataFile, wants: Wants, reader: BlockReader) -> Keys | None:
    """Return the blocks that may have matching rows, by the index of a file; None if all may."""
    if file.index is None or () in wants:
        return None
    found = []
    for columns, values in wants.items():
        blocks = reader.find(file, columns, np.array(list(values), np.int64).reshape(-1, len(columns)))
        if blocks is None:
            return None
        found.append(blocks)
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _read(file: DataFile, width: int, wants: Wants) -> Iterator[Columns]:
    """Yield the rows of the row groups that may have matching rows."""
    names = [f"c{n}" for n in range(width)]
    with parquet_file(file.path) as source:
        numbers = sorted(_groups_with(source, wants))
        largest = max((source.metadata.row_group(n).num_rows for n in numbers), default=1)
        together = max(1, _READ_AT_ONCE // largest)
        for at in range(0, len(numbers), together):
            table = source.read_row_groups(numbers[at : at + together], names)
            count_read(len(table))
            yield [column.to_numpy() for column in table.columns]


def _groups_with(file: ParquetFile, wants: Wants) -> set[int]:
    """Return the row groups that may have matching rows, by their least and greatest values."""
    numbers: set[int] = set()
    for columns, values in wants.items():
        here = set(range(file.num_row_groups))
        for n, column in enumerate(columns):
            keys = np.unique(np.array([row[n] for row in values], np.int64))
            here.intersection_update(groups_where(file, f"c{column}", among(keys)))
        numbers |= here
    return numbers


@dataclass(frozen=True)
class _Test:
    """A test whether rows have one of several values in some columns."""

    columns: tuple[int, ...]
    values: set[tuple[int, ...]]
    each: tuple[pa.Array, ...]
    """The values of each column."""

    @classmethod
    def of(cls, columns: tuple[int, ...], values: set[tuple[int, ...]]) -> _Test:
        each = (pa.array({row[n] for row in values}, pa.int64()) for n in range(len(columns)))
        return cls(columns, values, tuple(each))

    def mask(self, data: Columns, rows: int) -> NDArray[np.bool_]:
        """Return for each row whether it has one of the values."""
        mask = np.ones(rows, np.bool_)
        for column, values in zip(self.columns, self.each, strict=True):
            mask &= has_one_of(data[column], values)
        if len(self.columns) > 1 and len(self.values) > 1:
            positions = np.flatnonzero(mask)
            listed = zip(*(data[column][positions].tolist() for column in self.columns), strict=True)
            mask[positions] = [row in self.values for row in listed]
        return mask
