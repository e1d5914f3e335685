"""The digest of all visible facts: their number, and a sum of 256 bits.

Facts are hashed as texts, so that every engine computes the same digest. The driver sums few rows itself,
tasks sum the relations that fit one task, and larger relations are joined with their terms by a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.spark.lookup.decode import Decoder, facts_of
from zodiacedge.engine.spark.storage.bin_packing import groups, tasks_for
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles
from zodiacedge.engine.state_compare import added, summed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

    Sum = tuple[int, int]

_WHY = "summing up what facts say"


@dataclass(frozen=True)
class _Owned:
    """The files of several owners of a relation."""

    relation: Relation
    contents: tuple[SignedFiles, ...]

    @property
    def rows(self) -> int:
        return sum(content.stored for content in self.contents)


@dataclass(frozen=True)
class _SumTask:
    """A task: relations to sum."""

    owned: tuple[_Owned, ...]
    terms: TermFiles
    hashing: Hashing = field(default_factory=Hashing)


def digest(
    workspace: Workspace,
    visible: Mapping[Relation, Sequence[SignedFiles]],
    terms: TermFiles,
    yield_point: YieldPoint,
) -> Sum:
    """Count the distinct facts of several owners, and add up the hashes of their texts."""
    owned = [_Owned(relation, tuple(contents)) for relation, contents in visible.items()]
    if sum(o.rows for o in owned) <= workspace.options.driver_rows:
        return _sum(_SumTask(tuple(owned), terms, workspace.hashing))
    small: list[_Owned] = []
    large: list[_Owned] = []
    for o in owned:
        # A proposition has no terms that a plan could join it with.
        fits = o.rows <= workspace.options.gather_rows or not o.relation.arity
        (small if fits else large).append(o)
    count = tasks_for(workspace, sum(o.rows for o in small))
    tasks = [
        _SumTask(tuple(group), terms, workspace.hashing) for group in groups(small, lambda o: o.rows, count)
    ]
    sums = workspace.jobs.each(_sum, tasks, _WHY, yield_point) if tasks else []
    lookup = Decoder(workspace, terms)
    for o in large:
        frame = lookup.readable(o.relation, o.contents)
        sums += workspace.jobs.each_partition(partial(_sum_partition, o.relation), frame, _WHY, yield_point)
    return added(sums)


def _sum(task: _SumTask) -> Sum:
    reader, translation = SignedFileReader(), Translation({}, task.hashing)
    reads = [reader.read(o.relation, o.contents) for o in task.owned]
    translation.load_values(reader.seen(), task.terms)
    store = Database(translation.terms)
    return added(
        summed(store.facts_of(TableName(*read.relation), read.table(translation).rows)) for read in reads
    )


def _sum_partition(relation: Relation, batches: Iterator[pa.RecordBatch]) -> Iterator[Sum]:
    """Sum the facts of a partition: the last stage of a plan."""
    yield added(summed(facts_of(relation, batch)) for batch in batches)
