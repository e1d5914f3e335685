"""Rows dealt out to parts: tasks read files of relations and write one file each, with a block per part.

A part reads its block of each of them, so a row is read twice and written once, however many parts there are,
and no Java process ever sees it. A block has the rows of one file of a relation after the other, column by
column; how many there are is told beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.spark.cluster.task_files import located
from zodiacedge.engine.spark.storage.bin_packing import groups, tasks_for
from zodiacedge.engine.spark.storage.embedded_tables import Reader
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
# A part that has less than this share of what one task takes is not worth its task.
_LEAST_SHARE = 16
_PARTS_PER_CORE = 2


@dataclass(frozen=True)
class ShuffleInput:
    """A file of a relation, and the position that its rows are dealt out by."""

    part: DataFile
    relation: Relation
    position: int
    classes: Classes = None
    """Of members, those of some classes only."""


@dataclass(frozen=True)
class _Hand:
    """A task: files to deal out to so many parts."""

    units: tuple[ShuffleInput, ...]
    parts: int
    folder: Folder


class _Written(NamedTuple):
    """A file of blocks: how many rows of each unit each part has."""

    path: str
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """What one part has of the files that one task dealt out: file, relation and rows, in order."""

    path: str
    offset: int
    rows: tuple[tuple[str, Relation, int], ...]


@dataclass(frozen=True)
class PartitionInput:
    """What one part reads: its blocks, and the relations that it reads whole, of members some classes."""

    blocks: tuple[Block, ...]
    whole: Mapping[Relation, Classes] = field(default_factory=dict)


class Shuffled(NamedTuple):
    """The blocks of each part, and who holds their files."""

    blocks: tuple[tuple[Block, ...], ...]
    held: tuple[DataFile, ...]


def partition_count(place: Workspace, rows: int) -> int:
    """Return how many parts so many rows fall into: each fits one task, and every core has some."""
    most, cores = place.options.gather_rows, place.jobs.cores
    if not most or place.options.strategy != "choose":
        return cores * _PARTS_PER_CORE
    worth = -(-rows * _LEAST_SHARE // most)
    return max(-(-rows // most), min(cores, worth), 1)


def shuffle(place: Workspace, units: Sequence[ShuffleInput], parts: int, turn: YieldPoint) -> Shuffled:
    """Deal out the rows of some files: one job."""
    if not units:
        return Shuffled(((),) * parts, ())
    tasks = tasks_for(place, sum(unit.part.rows for unit in units))
    grouped = groups(units, lambda unit: unit.part.rows, tasks)
    hands = [_Hand(tuple(group), parts, place.scratch.folder) for group in grouped]
    written = place.jobs.each(_dealt_out, hands, "dealing out facts", turn)
    held = tuple(place.adopt(DataFile(one.path, int(one.counts.sum()))) for one in written)
    return Shuffled(
        tuple(
            tuple(_block(hand, one, n) for hand, one in zip(hands, written, strict=True))
            for n in range(parts)
        ),
        held,
    )


def _dealt_out(hand: _Hand) -> _Written:
    """Write the rows of some files, those of one part together."""
    counts = np.zeros((hand.parts, len(hand.units)), np.int64)
    pieces: list[tuple[Columns, Keys]] = []
    for number, unit in enumerate(hand.units):
        columns = read_file(unit.part, unit.relation.width, unit.classes)
        # Terms are hashes: the rest of a division is as good as any other.
        targets = (columns[unit.position] % hand.parts).astype(np.min_scalar_type(hand.parts))
        order = np.argsort(targets, kind="stable")
        counts[:, number] = np.bincount(targets, minlength=hand.parts)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts[:, number])))
        pieces.append(([np.ascontiguousarray(column[order]) for column in columns], ends))
    path = hand.folder.new_file("dealt")
    system, place = located(path)
    with system.open_output_stream(place) as stream:
        for n in range(hand.parts):
            for columns, ends in pieces:
                for column in columns:
                    stream.write(column[ends[n] : ends[n + 1]])
    return _Written(path, counts)


def _block(hand: _Hand, written: _Written, number: int) -> Block:
    widths = np.array([unit.relation.width for unit in hand.units], np.int64)
    before = int((written.counts[:number] * widths).sum()) * _BYTES
    rows = tuple(
        (unit.part.path, unit.relation, int(count))
        for unit, count in zip(hand.units, written.counts[number], strict=True)
        if count
    )
    return Block(written.path, before, rows)


class PartitionReader(Reader):
    """Reads contents of which a part has some rows, and others whole."""

    def __init__(self, share: PartitionInput) -> None:
        """Read the blocks of a part."""
        super().__init__()
        self._whole = share.whole
        self._dealt: dict[tuple[str, Relation], Columns] = {}
        for block in share.blocks:
            self._dealt |= _read(block)

    def _part(self, part: DataFile, relation: Relation, classes: Classes) -> Columns:
        del classes  # a share has no others
        dealt = self._dealt.get((part.path, relation))
        pieces = [] if dealt is None else [dealt]
        if relation in self._whole:
            pieces.append(read_file(part, relation.width, self._whole[relation]))
        if not pieces:
            return [np.zeros(0, np.int64) for _ in range(relation.width)]
        return pieces[0] if len(pieces) == 1 else [np.concatenate(c) for c in zip(*pieces, strict=True)]


def _read(block: Block) -> dict[tuple[str, Relation], Columns]:
    size = sum(relation.width * count for _, relation, count in block.rows)
    if not size:
        return {}
    system, place = located(block.path)
    with system.open_input_file(place) as source:
        values = np.frombuffer(source.read_at(size * _BYTES, block.offset), np.int64)
    found: dict[tuple[str, Relation], Columns] = {}
    start = 0
    for path, relation, count in block.rows:
        starts = [start + n * count for n in range(relation.width)]
        found[path, relation] = [values[at : at + count] for at in starts]
        start += relation.width * count
    return found
