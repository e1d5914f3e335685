"""Blocks of the rows of files: those in which an index finds some terms, read alone.

A block is a row group of a Parquet file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zodiacedge.engine.spark.cluster.task_files import count_read, located
from zodiacedge.engine.spark.storage.indexes import IndexReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.files import DataFile

    Columns = list[Keys]

# So many blocks are read at once, and kept.
_TOGETHER = 1 << 7
_KEPT = 1 << 10
_MOST_OPEN = 1 << 6


class _File:
    """An open file, and its index."""

    def __init__(self, file: DataFile) -> None:
        if file.index is None:
            raise AssertionError(file.path)
        self.index = IndexReader(file.index)
        system, inner_path = located(file.path)
        self._rows = pq.ParquetFile(system.open_input_file(inner_path), metadata=_metadata(file.path))

    def read(self, blocks: Sequence[int]) -> pa.Table:
        table = self._rows.read_row_groups(blocks, use_threads=False)
        count_read(len(table))
        return table


class BlockReader:
    """Reads blocks of files; some are kept, as the next look-up may read them again, and some files open."""

    def __init__(self) -> None:
        """Start without files."""
        self._open: dict[str, _File] = {}
        self._kept: dict[tuple[str, int], Columns] = {}

    def find(self, file: DataFile, columns: Sequence[int], values: Keys) -> Keys | None:
        """Return the blocks that may have some values in some columns; None if all may."""
        return self._file(file).index.blocks(columns, values)

    def tables(self, file: DataFile, columns: Sequence[int], values: Keys) -> Iterator[pa.Table]:
        """Yield the rows of the blocks that may have some values in some columns, some blocks at a time."""
        blocks = self.find(file, columns, values)
        return self._tables(
            file, np.arange(self._file(file).index.index.blocks) if blocks is None else blocks
        )

    def columns(self, file: DataFile, blocks: Keys) -> Iterator[Columns]:
        """Yield the rows of blocks as columns, some blocks at a time."""
        if len(blocks) > _TOGETHER:
            for table in self._tables(file, blocks):
                yield [column.to_numpy() for column in table.columns]
        elif len(blocks):
            absent = [block for block in blocks.tolist() if (file.path, block) not in self._kept]
            if len(self._kept) + len(absent) > _KEPT:
                self._kept.clear()
                absent = blocks.tolist()
            if absent:
                self._keep(file, absent)
            kept = (self._kept[file.path, block] for block in blocks.tolist())
            yield [np.concatenate(column) for column in zip(*kept, strict=True)]

    def _tables(self, file: DataFile, blocks: Keys) -> Iterator[pa.Table]:
        for first in range(0, len(blocks), _TOGETHER):
            yield self._file(file).read(blocks[first : first + _TOGETHER].tolist())

    def _keep(self, file: DataFile, blocks: Sequence[int]) -> None:
        opened = self._file(file)
        size = opened.index.index.block
        read = [column.to_numpy() for column in opened.read(blocks).columns]
        for number, block in enumerate(blocks):
            # All but the last block of a file are of one size.
            part = slice(number * size, (number + 1) * size)
            self._kept[file.path, block] = [column[part].copy() for column in read]

    def _file(self, file: DataFile) -> _File:
        if file.path not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._open.clear()
            self._open[file.path] = _File(file)
        return self._open[file.path]


@lru_cache(maxsize=128)
def _metadata(path: str) -> pq.FileMetaData:
    """Return where the blocks of a file are; that of large files takes longer than reading a block."""
    system, inner_path = located(path)
    with system.open_input_file(inner_path) as source:
        return pq.read_metadata(source)
