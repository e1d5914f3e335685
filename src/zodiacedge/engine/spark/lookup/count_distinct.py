"""Counts the distinct facts of several owners: those of the largest owner, and those that the others add.

The rows of one owner are distinct, and their number is known. So not all rows are compared: it is enough to
find the rows of the other owners that the largest has, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.spark.partition.shuffle import (
    PartitionInput,
    PartitionReader,
    ShuffleInput,
    partition_count,
    shuffle,
)
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation, union
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
    from zodiacedge.engine.spark.storage.workspace import Workspace

    Counts = dict[int, int]
    """By class, or as a whole under 0."""


@dataclass(frozen=True)
class Owned:
    """A task: the files of several owners of a relation."""

    relation: Relation
    contents: tuple[SignedFiles, ...]
    hashing: Hashing = field(default_factory=Hashing)
    partition: PartitionInput | None = None
    """The input of one partition, if not all rows are counted."""


def count(workspace: Workspace, relation: Relation, contents: Sequence[SignedFiles]) -> Counts:
    """Count the distinct rows of several owners."""
    held = sorted((content for content in contents if content.rows), key=lambda content: content.rows)
    if not held:
        return {}
    if len(held) == 1:
        return _known_count(relation, held[0])
    owned = Owned(relation, tuple(held), workspace.hashing)
    stored = sum(content.stored for content in held)
    if stored <= workspace.options.driver_rows:
        return count_here(owned)
    if workspace.options.gathers(stored):
        return workspace.jobs.one(count_here, owned, "counting facts")
    return _count_partitioned(workspace, owned, stored)


def count_here(owned: Owned) -> Counts:
    """Count rows by reading all of them."""
    reader = SignedFileReader() if owned.partition is None else PartitionReader(owned.partition)
    translation = Translation({}, owned.hashing)
    relation = owned.relation
    *others, largest = (reader.read(relation, content).table(translation) for content in owned.contents)
    more = union(others, relation.arity)
    both = more.filter(largest.rows, present=True)
    if not relation.typed:
        return {0: len(largest) + len(more) - len(both)}
    found = _by_class(translation, largest.rows) + _by_class(translation, more.rows)
    found.subtract(_by_class(translation, both))
    return {key: number for key, number in found.items() if number}


def _by_class(translation: Translation, rows: Ids) -> Counter[int]:
    ids, counts = np.unique(rows[:, 1], return_counts=True)
    return Counter(dict(zip(translation.keys(ids).tolist(), counts.tolist(), strict=True)))


def _known_count(relation: Relation, content: SignedFiles) -> Counts:
    return dict(content.classes()) if relation.typed else {0: content.rows}


def _count_partitioned(workspace: Workspace, owned: Owned, stored: int) -> Counts:
    """Count rows that are shuffled by their first argument: equal rows come to the same partition."""
    files = {part.path: part for content in owned.contents for part in content.parts}
    inputs = [ShuffleInput(part, owned.relation, 0) for part in files.values()]
    shuffled = shuffle(workspace, inputs, partition_count(workspace, stored), ALONE)
    tasks = [replace(owned, partition=PartitionInput(blocks)) for blocks in shuffled.blocks]
    total: Counter[int] = Counter()
    for counts in workspace.jobs.each(count_here, tasks, "counting facts"):
        total.update(counts)
    return dict(total)
