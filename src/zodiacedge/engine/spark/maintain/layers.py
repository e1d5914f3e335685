"""A recomputed segment beside the old one: where few rows changed, a layer on the old files.

The nodes that read the segment, and the store, then see the rows that changed and no others. Rows are
compared in hash partitions, by the tables of the embedded engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.partition.shuffle import (
    PartitionInput,
    ShuffleInput,
    partition_count,
    reader_of,
    shuffle_into,
)
from zodiacedge.engine.spark.storage.embedded_tables import Translation
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.storage.files import Segment
    from zodiacedge.engine.spark.storage.terms import Hashing
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    # The rows of a relation before and after.
    Sides = tuple[SignedFiles, SignedFiles]

# Where at most one row in so many was inserted or deleted, the old files are kept and get one more layer.
_SHARE = 4
_MOST_LAYERS = 16


def layered(
    workspace: Workspace,
    old: Segment,
    after: Mapping[Relation, SignedFiles],
    yield_point: YieldPoint,
    *,
    stamped: bool = False,
) -> dict[Relation, SignedFiles]:
    """Compare a recomputed segment with the old one; where few rows changed, put a layer on the old files.

    If the new rows have stamps, they are compared with them: stamps hold only together.
    """
    before = old.contents
    contents = dict.fromkeys(before, SignedFiles()) | dict(after)
    if stamped and not old.stamped:
        return contents
    both = {
        relation: (before[relation], content)
        for relation, content in contents.items()
        if content.rows and before.get(relation, SignedFiles()).rows
    }
    compared = _compared(workspace, both, yield_point, stamped=stamped)
    for relation, (plus, minus) in compared.items():
        rows = sum(file.rows for file in (*plus, *minus))
        layers = len(before[relation].layers)
        if not rows:
            contents[relation] = before[relation]
        elif rows * _SHARE <= contents[relation].rows and layers < _MOST_LAYERS:
            contents[relation] = before[relation].then(plus, minus)
    return contents


def _compared(
    workspace: Workspace, relations: Mapping[Relation, Sides], yield_point: YieldPoint, *, stamped: bool
) -> dict[Relation, tuple[list[DataFile], list[DataFile]]]:
    """Write the rows that only the second side of each relation has, and those that only the first has."""
    contents = [(relation, side) for relation, sides in relations.items() for side in sides]
    rows = sum(side.stored for _, side in contents)
    count = partition_count(workspace, rows)
    partitions: list[PartitionInput | None] = [None]
    if count > 1:
        inputs = [
            ShuffleInput(file, relation.with_stamps if stamped else relation, None)
            for relation, side in contents
            for file in side.parts
        ]
        partitions = list(shuffle_into(workspace, inputs, count, yield_point)) if inputs else []
    folder, hashing = workspace.scratch.folder, workspace.hashing
    tasks = [_Comparison(relations, part, stamped, folder, hashing) for part in partitions if relations]
    written = workspace.jobs.each(_compare, tasks, "comparing with the version before", yield_point)
    changed: dict[Relation, tuple[list[DataFile], list[DataFile]]] = {}
    for relation in relations:
        plus, minus = zip(*(files[relation] for files in written), strict=True)
        changed[relation] = list(map(workspace.adopt, plus)), list(map(workspace.adopt, minus))
    return changed


@dataclass(frozen=True)
class _Comparison:
    """The input of a task: the files of relations, of which it compares all rows or those of a partition."""

    relations: Mapping[Relation, Sides]
    partition: PartitionInput | None
    stamped: bool
    folder: Folder
    hashing: Hashing


def _compare(task: _Comparison) -> dict[Relation, tuple[DataFile, DataFile]]:
    """Write the inserted and the deleted rows of each relation."""
    reader = reader_of(task.partition)
    written = {}
    for relation, sides in task.relations.items():
        translation = Translation({}, task.hashing)
        compared = relation.with_stamps if task.stamped else relation
        was, will = (reader.read(compared, [side]).table(translation) for side in sides)
        positions = was.positions(will.rows)
        kept = np.zeros(len(was), np.bool_)
        kept[positions[positions >= 0]] = True
        inserted, deleted = will.rows[positions < 0], was.rows[~kept]
        plus, minus = (_write(task.folder, relation, rows, translation) for rows in (inserted, deleted))
        written[relation] = plus, minus
    return written


def _write(folder: Folder, relation: Relation, rows: Ids, translation: Translation) -> DataFile:
    columns = [translation.keys(np.ascontiguousarray(column)) for column in rows.T]
    return folder.write_indexed(relation, columns or [np.zeros(len(rows), np.int64)])
