"""Counts of the distinct facts of several owners.

The rows of one owner are distinct, and their number is known. So only the rows of the smaller owners are made
distinct, and those that the largest owner has too are subtracted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.partition.shuffle import (
    PartitionInput,
    ShuffleInput,
    reader_of,
    shuffle,
)
from zodiacedge.engine.spark.storage.embedded_tables import Translation
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
    from zodiacedge.engine.spark.storage.workspace import Workspace

    Counts = dict[int, int]
    """By class, or all rows under 0."""


@dataclass(frozen=True)
class _CountTask:
    """The input of a task: the files of several owners of a relation."""

    relation: Relation
    contents: tuple[SignedFiles, ...]
    hashing: Hashing = field(default_factory=Hashing)
    partition: PartitionInput | None = None
    """The rows of one hash partition; None to count all rows."""


def count(workspace: Workspace, relation: Relation, contents: Sequence[SignedFiles]) -> Counts:
    """Count the distinct rows of several owners."""
    filled = sorted((content for content in contents if content.rows), key=lambda content: content.rows)
    if not filled:
        return {}
    if len(filled) == 1:
        return dict(filled[0].classes) if relation.typed else {0: filled[0].rows}
    task = _CountTask(relation, tuple(filled), workspace.hashing)
    stored = sum(content.stored for content in filled)
    if stored <= workspace.options.driver_rows:
        return _count_rows(task)
    if workspace.options.gathers(stored):
        return workspace.jobs.one(_count_rows, task, "counting facts")
    return _count_partitioned(workspace, task, stored)


def _count_rows(task: _CountTask) -> Counts:
    reader, translation = reader_of(task.partition), Translation({}, task.hashing)
    relation = task.relation
    rest, largest = (
        reader.read(relation, contents).table(translation)
        for contents in (task.contents[:-1], task.contents[-1:])
    )
    both = rest.filter(largest.rows, present=True)
    if not relation.typed:
        return {0: len(largest) + len(rest) - len(both)}
    counts = _by_class(translation, largest.rows) + _by_class(translation, rest.rows)
    counts.subtract(_by_class(translation, both))
    return {key: number for key, number in counts.items() if number}


def _by_class(translation: Translation, rows: Ids) -> Counter[int]:
    ids, counts = np.unique(rows[:, 1], return_counts=True)
    return Counter(dict(zip(translation.keys(ids).tolist(), counts.tolist(), strict=True)))


def _count_partitioned(workspace: Workspace, task: _CountTask, stored: int) -> Counts:
    """Count rows hash-partitioned by their first argument: equal rows are in the same partition."""
    files = {file.path: file for content in task.contents for file in content.parts}
    inputs = [ShuffleInput(file, task.relation, 0) for file in files.values()]
    tasks = [replace(task, partition=part) for part in shuffle(workspace, inputs, stored, ALONE)]
    total: Counter[int] = Counter()
    for counts in workspace.jobs.each(_count_rows, tasks, "counting facts"):
        total.update(counts)
    return dict(total)
