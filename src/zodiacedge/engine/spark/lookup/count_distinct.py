"""How many facts several owners have, each counted once: the largest owner's, and what the others add to it.

The rows of an owner are all different, and those of the largest are counted already. So nobody has to make
all rows distinct: it is enough to find out which rows of the others it has too.
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
from zodiacedge.engine.spark.storage.embedded_tables import Reader, Translation, union
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
    """What several owners have of a relation."""

    relation: Relation
    contents: tuple[SignedFiles, ...]
    hashing: Hashing = field(default_factory=Hashing)
    share: PartitionInput | None = None
    """What of it one part has, if not all."""


def count(place: Workspace, relation: Relation, contents: Sequence[SignedFiles]) -> Counts:
    """Count the rows that some owners have, each once."""
    held = sorted((content for content in contents if content.rows), key=lambda content: content.rows)
    if not held:
        return {}
    if len(held) == 1:
        return _told(relation, held[0])
    owned = Owned(relation, tuple(held), place.hashing)
    stored = sum(content.stored for content in held)
    if stored <= place.options.driver_rows:
        return count_here(owned)
    if place.options.gathers(stored):
        return place.jobs.one(count_here, owned, "counting facts")
    return _count_in_parts(place, owned, stored)


def count_here(owned: Owned) -> Counts:
    """Count rows by reading all of them."""
    reader = Reader() if owned.share is None else PartitionReader(owned.share)
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


def _told(relation: Relation, content: SignedFiles) -> Counts:
    return dict(content.classes()) if relation.typed else {0: content.rows}


def _count_in_parts(place: Workspace, owned: Owned, stored: int) -> Counts:
    """Count rows that are dealt out by their first argument: equal ones come to the same part."""
    files = {part.path: part for content in owned.contents for part in content.parts}
    units = [ShuffleInput(part, owned.relation, 0) for part in files.values()]
    dealt = shuffle(place, units, partition_count(place, stored), ALONE)
    shares = [replace(owned, share=PartitionInput(blocks)) for blocks in dealt.blocks]
    found: Counter[int] = Counter()
    for counts in place.jobs.each(count_here, shares, "counting facts"):
        found.update(counts)
    return dict(found)
