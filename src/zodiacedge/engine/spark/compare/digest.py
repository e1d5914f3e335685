"""The digest of all visible facts, summed by tasks that return a count and a number of 256 bits.

Facts are hashed as texts, so that every engine has the same digest. Few rows the driver reads itself;
relations that fit one task are summed there, several together; the others Spark joins with their terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.spark.lookup.decode import Lookup, facts_of
from zodiacedge.engine.spark.storage.bin_packing import groups, tasks_for
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation, union
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
    """A task: whole relations to sum."""

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
    if sum(one.rows for one in owned) <= workspace.options.driver_rows:
        return _summed(_SumTask(tuple(owned), terms, workspace.hashing))
    # A proposition is one row, and there is nothing to join it with.
    small: list[_Owned] = []
    large: list[_Owned] = []
    for one in owned:
        fits = one.rows <= workspace.options.gather_rows or not one.relation.arity
        (small if fits else large).append(one)
    tasks = tasks_for(workspace, sum(one.rows for one in small))
    work = [
        _SumTask(tuple(group), terms, workspace.hashing)
        for group in groups(small, lambda one: one.rows, tasks)
    ]
    found = workspace.jobs.each(_summed, work, _WHY, yield_point) if work else []
    lookup = Lookup(workspace, terms)
    for one in large:
        frame = lookup.readable(one.relation, one.contents)
        found += workspace.jobs.each_partition(_ByPlan(one.relation), frame, _WHY, yield_point)
    return added(found)


def _summed(work: _SumTask) -> Sum:
    reader, translation = SignedFileReader(), Translation({}, work.hashing)
    reads = [
        (one.relation, [reader.read(one.relation, content) for content in one.contents]) for one in work.owned
    ]
    seen = [keys for keys in reader.seen() if len(keys)]
    if seen:
        translation.load_values(seen, work.terms)
    store = Database(translation.terms)
    tables = ((one, union([read.table(translation) for read in found], one.arity)) for one, found in reads)
    return added(summed(store.facts_of(TableName(*one), table.rows)) for one, table in tables)


@dataclass(frozen=True)
class _ByPlan:
    """The last stage of a plan: sums rows of terms."""

    relation: Relation

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Sum]:
        yield added(summed(facts_of(self.relation, batch)) for batch in batches)
