"""The shuffle: tasks hash-partition rows of relations and write one file each, with a block per partition.

A partition reads its block of each file, so a row is read twice and written once, however many partitions
there are, and no row passes through the JVM. A block has the rows of one file of a relation after the other,
column by column; their counts are kept by the driver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.row_algebra import row_hashes
from zodiacedge.engine.spark.cluster.task_files import located
from zodiacedge.engine.spark.storage.bin_packing import groups, tasks_for
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Columns = list[Keys]
    Classes = frozenset[int] | None

_BYTES = 8
# A partition of less than this fraction of what one task takes is not worth its task.
_LEAST_FRACTION = 16
_PARTITIONS_PER_CORE = 2


@dataclass(frozen=True)
class ShuffleInput:
    """A file of a relation, and the position of its partition key."""

    file: DataFile
    relation: Relation
    position: int | None
    """None for the whole row."""
    classes: Classes = None
    """For `rdf:type`, the classes whose members are read; None for all."""


@dataclass(frozen=True)
class _ShuffleTask:
    """A task: files to hash-partition."""

    inputs: tuple[ShuffleInput, ...]
    partitions: int
    folder: Folder


@dataclass(frozen=True)
class Block:
    """The rows that one partition has of the files of one task: path, relation and count, in order."""

    file: DataFile
    """The file of blocks; it lives as long as the driver refers to one of its blocks."""
    offset: int
    rows: tuple[tuple[str, Relation, int], ...]


@dataclass(frozen=True)
class PartitionInput:
    """The input of one partition: its blocks, and the relations that are broadcast, `rdf:type` by classes."""

    blocks: tuple[Block, ...]
    broadcast: Mapping[Relation, Classes] = field(default_factory=dict)


def partition_count(workspace: Workspace, rows: int) -> int:
    """Return the number of partitions for so many rows: each fits one task, and all cores have work."""
    most, cores = workspace.options.gather_rows, workspace.jobs.cores
    if not most or workspace.options.strategy != "choose":
        return cores * _PARTITIONS_PER_CORE
    worth = -(-rows * _LEAST_FRACTION // most)
    return max(-(-rows // most), min(cores, worth), 1)


def shuffle(
    workspace: Workspace, inputs: Sequence[ShuffleInput], rows: int, yield_point: YieldPoint
) -> list[PartitionInput]:
    """Hash-partition the rows of files, in one job; `rows` determines the number of partitions."""
    return shuffle_into(workspace, inputs, partition_count(workspace, rows), yield_point)


def shuffle_into(
    workspace: Workspace, inputs: Sequence[ShuffleInput], partitions: int, yield_point: YieldPoint
) -> list[PartitionInput]:
    """Hash-partition the rows of files, in one job."""
    stored = sum(read.file.rows for read in inputs)
    grouped = groups(inputs, lambda read: read.file.rows, tasks_for(workspace, stored))
    tasks = [_ShuffleTask(tuple(group), partitions, workspace.scratch.folder) for group in grouped]
    written = workspace.jobs.each(_write_blocks, tasks, "shuffling facts", yield_point)
    files = [workspace.adopt(DataFile(path, int(counts.sum()))) for path, counts in written]
    return [
        PartitionInput(
            tuple(
                _block(task, file, counts, n)
                for task, file, (_, counts) in zip(tasks, files, written, strict=True)
            )
        )
        for n in range(partitions)
    ]


def partitions_of(columns: Sequence[Keys], position: int | None, partitions: int) -> Keys:
    """Return the partition of each row, by the term at a position or by the whole row."""
    # Fingerprints are hashes already.
    hashes = row_hashes(columns, len(columns[0]), 0) if position is None else columns[position]
    return (hashes % hashes.dtype.type(partitions)).astype(np.min_scalar_type(partitions))


def _write_blocks(task: _ShuffleTask) -> tuple[str, NDArray[np.int64]]:
    """Write a block per partition; return the file, and how many rows of each input each partition has."""
    counts = np.zeros((task.partitions, len(task.inputs)), np.int64)
    pieces: list[tuple[Columns, Keys]] = []
    for number, read in enumerate(task.inputs):
        columns = read_file(read.file, read.relation.width, read.classes)
        targets = partitions_of(columns, read.position, task.partitions)
        order = np.argsort(targets, kind="stable")
        counts[:, number] = np.bincount(targets, minlength=task.partitions)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts[:, number])))
        pieces.append(([np.ascontiguousarray(column[order]) for column in columns], ends))
    path = task.folder.new_file("shuffled")
    system, inner_path = located(path)
    with system.open_output_stream(inner_path) as stream:
        for n in range(task.partitions):
            for columns, ends in pieces:
                for column in columns:
                    stream.write(column[ends[n] : ends[n + 1]])
    return path, counts


def _block(task: _ShuffleTask, file: DataFile, counts: NDArray[np.int64], number: int) -> Block:
    widths = np.array([read.relation.width for read in task.inputs], np.int64)
    before = int((counts[:number] * widths).sum()) * _BYTES
    rows = tuple(
        (read.file.path, read.relation, int(count))
        for read, count in zip(task.inputs, counts[number], strict=True)
        if count
    )
    return Block(file, before, rows)


class PartitionReader(SignedFileReader):
    """Reads the rows of one partition: its blocks of partitioned files, and all of broadcast relations."""

    def __init__(self, partition: PartitionInput) -> None:
        """Read the blocks of a partition."""
        super().__init__()
        self._broadcast = partition.broadcast
        self._partitioned: dict[tuple[str, Relation], Columns] = {}
        for block in partition.blocks:
            self._partitioned |= read_block(block)

    def _part(self, part: DataFile, relation: Relation, classes: Classes) -> Columns:
        del classes  # The shuffle has filtered them.
        own = self._partitioned.get((part.path, relation))
        pieces = [] if own is None else [own]
        if relation in self._broadcast:
            pieces.append(read_file(part, relation.width, self._broadcast[relation]))
        if not pieces:
            return [np.zeros(0, np.int64) for _ in range(relation.width)]
        return pieces[0] if len(pieces) == 1 else [np.concatenate(c) for c in zip(*pieces, strict=True)]


def reader_of(partition: PartitionInput | None) -> SignedFileReader:
    """Return the reader of one partition, or of all rows."""
    return SignedFileReader() if partition is None else PartitionReader(partition)


def write_blocks(
    folder: Folder, blocks: Sequence[Sequence[tuple[str, Relation, Columns]]]
) -> tuple[Block, ...]:
    """Write the named rows of several blocks into one file."""
    path = folder.new_file("shuffled")
    system, inner_path = located(path)
    offsets = [0]
    with system.open_output_stream(inner_path) as stream:
        for block in blocks:
            for _, _, columns in block:
                for column in columns:
                    stream.write(np.ascontiguousarray(column))
            offsets.append(stream.tell())
    rows = [tuple((name, relation, len(columns[0])) for name, relation, columns in block) for block in blocks]
    file = DataFile(path, sum(count for block in rows for _, _, count in block))
    return tuple(Block(file, offset, block) for offset, block in zip(offsets, rows, strict=False))


def read_block(block: Block) -> dict[tuple[str, Relation], Columns]:
    """Return the rows of a block by name and relation."""
    size = sum(relation.width * count for _, relation, count in block.rows)
    if not size:
        return {}
    system, inner_path = located(block.file.path)
    with system.open_input_file(inner_path) as source:
        values = np.frombuffer(source.read_at(size * _BYTES, block.offset), np.int64)
    read: dict[tuple[str, Relation], Columns] = {}
    start = 0
    for path, relation, count in block.rows:
        starts = [start + n * count for n in range(relation.width)]
        read[path, relation] = [values[at : at + count] for at in starts]
        start += relation.width * count
    return read
