"""The effective fact delta: a task compares facts to insert and to delete with the explicit facts (EDB).

The same task compares the terms of the change with the known ones, and writes the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.spark.lookup.by_key import SliceReader
from zodiacedge.engine.spark.lookup.matching import matching
from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.partition.shuffle import (
    PartitionInput,
    PartitionReader,
    ShuffleInput,
    shuffle,
)
from zodiacedge.engine.spark.storage.compaction import compact, small_files
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, unseen, write_terms
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Fact
from zodiacedge.language.printer import format_atom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.spark.lookup.matching import Wants
    from zodiacedge.engine.spark.storage.embedded_tables import SignedColumns
    from zodiacedge.engine.spark.storage.workspace import Workspace


# The example of a fact that does not exist is the first of so many.
_MOST_EXAMPLES = 1000
# A relation of at least so many layers and at most so many rows is rewritten.
_LAYERS = 6
_REWRITTEN = 50_000
# At most so many facts are looked up by key, if the explicit facts are so many times as many.
FEW = 10_000
_SHARE = 8


@dataclass(frozen=True)
class DeltaTask:
    """A task: facts to insert and to delete, and the explicit facts of their relations."""

    add: Mapping[Relation, tuple[DataFile, ...]]
    remove: Mapping[Relation, tuple[DataFile, ...]]
    explicit: Mapping[Relation, SignedFiles]
    new_terms: TermFiles
    terms: TermFiles
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    partition: PartitionInput | None = None
    """The input of one partition, if the facts are partitioned; the terms are left to another job."""


@dataclass(frozen=True)
class ExplicitDelta:
    """The rows that a change really inserts into and deletes from the explicit facts."""

    inserted: Mapping[Relation, SignedFiles]
    """The rows to insert that do not exist."""
    deleted: Mapping[Relation, SignedFiles]
    """The rows to delete that exist and are not inserted again."""
    idle: int
    missing: int
    example: Fact | None
    terms: tuple[DataFile, ...]
    """The new terms."""
    small_terms: DataFile | None = None
    """The compacted terms of small files."""
    rewritten: Mapping[Relation, DataFile] = field(default_factory=dict)
    """All rows after the change of relations that had too many layers."""

    @property
    def files(self) -> Iterator[DataFile]:
        """All files of the delta."""
        for content in (*self.inserted.values(), *self.deleted.values()):
            yield from content.parts
        yield from (*self.terms, *self.rewritten.values())
        if self.small_terms is not None:
            yield self.small_terms


class _Reads(NamedTuple):
    """The rows of a relation: explicit facts, facts to insert and facts to delete."""

    explicit: SignedColumns
    insert: SignedColumns
    delete: SignedColumns
    is_complete: bool
    """Whether all explicit facts were read."""


def run(task: DeltaTask) -> ExplicitDelta:
    """Compute the effective delta of a task."""
    partition = None if task.partition is None else PartitionReader(task.partition)
    reads = {relation: _read(task, relation, partition) for relation in {**task.add, **task.remove}}
    translation = Translation({}, task.hashing)
    inserted: dict[Relation, SignedFiles] = {}
    deleted: dict[Relation, SignedFiles] = {}
    rewritten: dict[Relation, DataFile] = {}
    absent: dict[Relation, Ids] = {}
    idle = 0

    def write(relation: Relation, rows: Ids) -> DataFile:
        return task.folder.write_indexed(relation, translation.columns(TableName(*relation), rows))

    for relation, read in reads.items():
        table = read.explicit.table(translation)
        insert, delete = (_distinct(side, translation) for side in (read.insert, read.delete))
        new = table.filter(insert.rows, present=False)
        old = insert.filter(table.filter(delete.rows, present=True), present=False)
        absent[relation] = table.filter(delete.rows, present=False)
        idle += len(insert) - len(new)
        for side, rows in ((inserted, new), (deleted, old)):
            if len(rows):
                side[relation] = SignedFiles.of(write(relation, rows))
        fragmented = len(read.explicit.owners[0]) >= _LAYERS and len(table) <= _REWRITTEN
        if read.is_complete and fragmented and (len(new) or len(old)):
            table.delete(old)
            table.insert(new)
            rewritten[relation] = write(relation, table.rows)
    missing, example = sum(map(len, absent.values())), _example(task, absent, translation)
    if partition is not None:
        return ExplicitDelta(inserted, deleted, idle, missing, example, ())
    terms = write_terms(task.folder, unseen(task.new_terms.read(), task.terms))
    small = small_files(task.terms)
    small_terms = compact(task.folder, small) if small else None
    return ExplicitDelta(inserted, deleted, idle, missing, example, (terms,), small_terms, rewritten)


def _read(task: DeltaTask, relation: Relation, partition: PartitionReader | None) -> _Reads:
    reader = partition or SignedFileReader()
    insert, delete = (
        reader.read(relation, [SignedFiles.of(*side.get(relation, ()))]) for side in (task.add, task.remove)
    )
    content = task.explicit.get(relation, SignedFiles())
    rows = sum(len(columns[0]) for read in (insert, delete) for columns in read.files())
    if partition is None and rows <= FEW and content.stored > max(rows * _SHARE, _REWRITTEN):
        explicit = _matching(relation, content, (insert, delete))
        return _Reads(explicit, insert, delete, is_complete=False)
    return _Reads(reader.read(relation, [content]), insert, delete, is_complete=partition is None)


def _distinct(read: SignedColumns, translation: Translation) -> Table:
    """Return the rows of a batch, in whose files a row may occur twice."""
    table = Table(read.relation.arity)
    for columns in read.files():
        table.insert(translation.rows(columns, read.relation.arity))
    return table


def _matching(relation: Relation, content: SignedFiles, reads: Sequence[SignedColumns]) -> SignedColumns:
    """Look up rows among many explicit facts by key."""
    rows = {
        row
        for read in reads
        for columns in read.files()
        for row in zip(*(column.tolist() for column in columns), strict=True)
    }
    wants: Wants = {tuple(range(relation.arity)): rows}
    matches = {}
    for file in content.parts:
        columns = matching(file, relation.width, wants, file.rows)
        if columns is not None:
            matches[file.path] = columns
    return SliceReader(matches).read(relation, [content])


def _example(task: DeltaTask, absent: Mapping[Relation, Ids], translation: Translation) -> Fact | None:
    """Return the first, as text, of the facts to delete that do not exist."""
    keys = {
        relation: translation.columns(TableName(*relation), rows[:_MOST_EXAMPLES])
        for relation, rows in absent.items()
        if len(rows)
    }
    known = task.terms.with_files(*task.new_terms.parts)
    used = [column for relation, columns in keys.items() if relation.arity for column in columns]
    terms = known.decode(np.concatenate(used)) if used else {}
    facts = [
        Fact(relation.name, tuple(terms[key] for key in row))
        for relation, columns in keys.items()
        for row in (zip(*(c.tolist() for c in columns), strict=True) if relation.arity else [()])
    ]
    return min(facts, key=format_atom, default=None)


def run_partitioned(workspace: Workspace, task: DeltaTask) -> ExplicitDelta:
    """Compute the effective delta of facts that are shuffled by their first argument: three jobs."""
    inputs = [
        ShuffleInput(file, relation, 0)
        for relation in {**task.add, **task.remove}
        for files in (
            task.add.get(relation, ()),
            task.remove.get(relation, ()),
            task.explicit.get(relation, SignedFiles()).parts,
        )
        for file in files
    ]
    rows = sum(read.file.rows for read in inputs)
    tasks = [replace(task, partition=part) for part in shuffle(workspace, inputs, rows, ALONE)]
    deltas = workspace.jobs.each(run, tasks, "comparing facts with those that are there")
    inserted = _adopted(workspace, [delta.inserted for delta in deltas])
    deleted = _adopted(workspace, [delta.deleted for delta in deltas])
    known = merged(workspace, task.new_terms, task.terms, ALONE)
    examples = [delta.example for delta in deltas if delta.example is not None]
    return ExplicitDelta(
        inserted,
        deleted,
        sum(delta.idle for delta in deltas),
        sum(delta.missing for delta in deltas),
        min(examples, key=format_atom, default=None),
        known.parts[len(task.terms.parts) :],
    )


def _adopted(
    workspace: Workspace, sides: Iterable[Mapping[Relation, SignedFiles]]
) -> dict[Relation, SignedFiles]:
    """Adopt the files that several partitions wrote."""
    adopted: dict[Relation, SignedFiles] = {}
    for side in sides:
        for relation, content in side.items():
            files = map(workspace.adopt, content.parts)
            adopted[relation] = adopted.get(relation, SignedFiles()).then(files)
    return adopted
