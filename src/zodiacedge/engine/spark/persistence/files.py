"""Tasks that read the partitions of a store into rows of fingerprints, and tasks that write them.

A `Holder` names the owner of rows: the explicit facts, a node, or a rule with an aggregate. The driver reads
and writes few rows itself; tasks translate more by a dictionary of the embedded engine; rows that are too
many for a task are joined with their terms by a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from zodiacedge.engine.embedded.persistence import columns
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.embedded.storage.relation import by_class
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.terms.term_space import TermSpace as TableTerms
from zodiacedge.engine.persistence import BadPartitionError, PartitionFile, PartitionKey
from zodiacedge.engine.spark.lookup.row_filter import RowFilter
from zodiacedge.engine.spark.partition.merge_terms import with_terms
from zodiacedge.engine.spark.storage.dataframes import Frames, in_tables
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Folder, Relation, SignedFiles
from zodiacedge.engine.spark.storage.terms import (
    Hashing,
    TermFiles,
    columns_of,
    distinct,
    enter_rows,
    write_terms,
)
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.persistence import Kind, Partitions, PartitionWriter
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.terms import Term

    Written = list[tuple[PartitionKey, PartitionFile]]

# A plan writes so many rows to a file.
_ROWS_PER_FILE = 1 << 20


class Holder(NamedTuple):
    """The owner of rows: explicit facts, a node, or the aggregate of a rule, which names the relation."""

    kind: Kind
    owner: frozenset[str]
    relation: Relation


@dataclass(frozen=True)
class HolderRows:
    """Rows of a holder: all, or for `rdf:type` those of some classes."""

    holder: Holder
    content: SignedFiles
    classes: frozenset[int] | None = None

    @property
    def rows(self) -> int:
        """The number of stored rows, plus and minus."""
        return self.content.stored

    @property
    def expected(self) -> int:
        """The number of rows after the minus files are applied."""
        if self.classes is None:
            return self.content.rows
        return sum(count for key, count in self.content.classes.items() if key in self.classes)


# Reading a store.


@dataclass(frozen=True)
class Loading:
    """A task: files of a store into rows of fingerprints."""

    partitions: Partitions
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)


@dataclass(frozen=True)
class Loaded:
    """The result of a task: rows by holder, their terms, and the names of classes; or an error."""

    rows: Mapping[Holder, DataFile] = field(default_factory=dict)
    terms: DataFile = field(default_factory=lambda: DataFile("", 0))
    names: Mapping[int, Term] = field(default_factory=dict)
    bad: str = ""


def load(loading: Loading) -> Loaded:
    """Read files of a store."""
    try:
        return _loaded(loading)
    except (BadPartitionError, pa.ArrowException, KeyError) as error:
        return Loaded(bad=str(error))


def _loaded(loading: Loading) -> Loaded:
    dictionary = Dictionary()
    rows_of: dict[Holder, list[Ids]] = {}
    classes: set[int] = set()
    for key, table in loading.partitions:
        rows = columns.rows_of(dictionary, key, table)
        # The store may be written by another program, and a duplicate would count twice.
        if Table(key.arity).insert(np.ascontiguousarray(rows)) != len(rows):
            raise BadPartitionError("a row occurs twice")
        holder = Holder(key.kind, key.owner, Relation(key.predicate, key.arity))
        if key.kind != "aggregate" and (key.arity == 1 or holder.relation.typed):
            holder = holder._replace(relation=TYPED)
            if key.arity == 1:
                rows = np.insert(rows, 1, dictionary.encode(IRI(key.predicate)), axis=1)
            classes.update(np.unique(rows[:, 1]).tolist())
        rows_of.setdefault(holder, []).append(rows)
    keys = loading.hashing.keys(dictionary)
    files = {}
    for holder, pieces in rows_of.items():
        rows = np.concatenate(pieces)
        keyed = [keys[rows[:, n]] for n in range(holder.relation.arity)] or [np.zeros(len(rows), np.int64)]
        files[holder] = loading.folder.write_indexed(holder.relation, keyed)
    terms = write_terms(loading.folder, distinct(columns_of(dictionary, loading.hashing)))
    return Loaded(files, terms, {int(keys[number]): dictionary.decode(number) for number in classes})


# Writing a store.


@dataclass(frozen=True)
class ReadableRows:
    """Rows of fingerprints as tables of readable terms."""

    held: tuple[HolderRows, ...]
    terms: TermFiles
    hashing: Hashing = field(default_factory=Hashing)

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the partitions that have rows, each once."""
        reader, translation = SignedFileReader(), Translation({}, self.hashing)
        reads = [
            (rows.holder, reader.read(rows.holder.relation, [rows.content], rows.classes))
            for rows in self.held
        ]
        translation.load_values(reader.seen(), self.terms)
        for holder, read in reads:
            yield from partitions_of(holder, read.table(translation).rows, translation.terms)


def write_partitions(write: PartitionWriter, rows: ReadableRows) -> Written:
    """Write rows into files of a store."""
    return [(key, write(key, table)) for key, table in rows]


def partitions_of(holder: Holder, rows: Ids, terms: TableTerms) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield rows of ids as partitions, those of `rdf:type` by class."""
    kind, owner, relation = holder
    store = Database(terms)
    if kind == "aggregate":
        if len(rows):
            yield PartitionKey(kind, owner, *relation), columns.table_of(store, TableName(*relation), rows)
        return
    partitions: dict[PartitionKey, list[pa.Table]] = {}
    for name, class_rows in by_class(TableName(*relation), rows):
        if len(class_rows):
            key = PartitionKey(kind, owner, *store.predicate(name))
            partitions.setdefault(key, []).append(columns.table_of(store, name, class_rows))
    # Classes that are no IRIs are one partition together.
    for key, tables in partitions.items():
        yield key, pa.concat_tables(tables)


def write_by_plan(
    workspace: Workspace, held: HolderRows, terms: TermFiles, write: PartitionWriter
) -> Written:
    """Write rows that are too many for one task: Spark joins them with their terms."""
    relation = held.holder.relation
    frame = Frames(workspace).content(relation, held.content)
    if held.classes is not None:
        frame = frame.where(RowFilter(held.classes).condition)
    readable = with_terms(frame, relation.arity, terms)
    last = partial(_write_terms, held.holder, write)
    written = workspace.jobs.each_partition(last, readable, "writing a store")
    if sum(file.rows for _, file in written) != held.expected:
        # The join drops a row with a fingerprint without a term.
        raise AssertionError("a fingerprint has no term")
    return written


def _write_terms(
    holder: Holder, write: PartitionWriter, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[PartitionKey, PartitionFile]]:
    """Write rows of terms, as kinds, bits and texts, to files of a store: the last stage of a plan."""
    for rows in in_tables(batches, _ROWS_PER_FILE):
        terms = TableTerms()
        ids = enter_rows(rows, holder.relation.arity, terms.dictionary)
        for key, table in partitions_of(holder, np.stack(ids, axis=1), terms):
            yield key, write(key, table)
