"""Batches of facts to insert or delete, and the fact delta of two batches.

Facts given as values are rows over the batch's own dictionary until they are written; facts of loaded files
are files of fingerprints from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.spark.cluster.task_files import all_or_nothing
from zodiacedge.engine.spark.ingest import fact_delta, fact_split
from zodiacedge.engine.spark.ingest.fact_delta import DeltaTask, ExplicitDelta
from zodiacedge.engine.spark.lookup import count_distinct
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.lookup.row_filter import ALL, RowFilter
from zodiacedge.engine.spark.storage.compaction import compacted, small_files
from zodiacedge.engine.spark.storage.embedded_tables import mentioned
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import TermFiles, columns_of, write_terms
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Predicate
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from zodiacedge.engine.embedded.storage.segment import Segment as Tables
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.spark.storage.files import Folder
    from zodiacedge.engine.spark.storage.terms import Hashing
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.io import Load
    from zodiacedge.io.formats.column_mapping import ColumnMapping
    from zodiacedge.language.ast import Atom, Fact
    from zodiacedge.terms import Term


@dataclass(frozen=True)
class BatchFiles:
    """The files of a batch's rows, of the terms in them, and the names of the classes among them."""

    files: Mapping[Relation, tuple[DataFile, ...]] = field(default_factory=dict)
    terms: TermFiles = field(default_factory=TermFiles)
    names: Mapping[int, Term] = field(default_factory=dict)
    by_tasks: bool = False
    """Whether tasks wrote them; if not, the driver did."""

    def adopted(self, workspace: Workspace) -> BatchFiles:
        """Adopt the files, which a task or the driver wrote."""
        for file in (*(file for files in self.files.values() for file in files), *self.terms.parts):
            workspace.adopt(file)
        return self

    def merged(self, other: BatchFiles) -> BatchFiles:
        """Return the files of both batches."""
        files = dict(self.files)
        for relation, more in other.files.items():
            files[relation] = (*files.get(relation, ()), *more)
        terms = self.terms.with_files(*other.terms.parts)
        names = {**self.names, **other.names}
        return BatchFiles(files, terms, names, self.by_tasks or other.by_tasks)

    @property
    def count(self) -> int:
        """The number of rows, duplicates included."""
        return sum(file.rows for files in self.files.values() for file in files)

    def predicates(self) -> Iterator[Predicate]:
        """Yield the predicates of the rows."""
        for relation, files in self.files.items():
            if not relation.typed:
                yield Predicate(*relation)
                continue
            for key in {key for file in files for key in file.classes}:
                yield class_predicate(self.names[key])


def class_predicate(name: Term) -> Predicate:
    """Return the predicate of a class: that of `rdf:type` if the class is no IRI."""
    return Predicate(name.value, 1) if isinstance(name, IRI) else Predicate(RDF_TYPE, 2)


def predicate_counts(
    relation: Relation, counts: Mapping[int, int], named: Callable[[Iterable[int]], Mapping[int, Term]]
) -> dict[Predicate, int]:
    """Return the counts of a relation by predicate, from counts by class, or of all rows under any key."""
    if not relation.typed:
        return {Predicate(*relation): sum(counts.values())}
    names = named(counts)
    totals: dict[Predicate, int] = {}
    for key, count in counts.items():
        predicate = class_predicate(names[key])
        totals[predicate] = totals.get(predicate, 0) + count
    return totals


class SparkBatch:
    """A batch of facts to insert or delete."""

    def __init__(self, workspace: Workspace) -> None:
        """Start with no facts."""
        self.workspace = workspace
        self.values = EmbeddedBatch(Database())
        """The facts given as values."""
        self._files = BatchFiles()

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts."""
        self.values.add(facts)

    def add_table(self, table: pa.Table, relation: str) -> None:
        """Add the rows of an Arrow table as facts of a relation; raise if a row is no fact."""
        self.values.add_table(table, relation)

    def add_frame(self, frame: DataFrame, relation: str, mapping: ColumnMapping) -> tuple[int, int]:
        """Add the rows of a DataFrame; return their number, and that of rows left out for a null."""
        from zodiacedge.engine.spark.ingest.read_frame import ingest_frame  # noqa: PLC0415 - needed only for these

        files, rows, dropped = ingest_frame(self.workspace, frame, relation, mapping)
        self._files = self._files.merged(files)
        return rows, dropped

    def load(self, load: Load) -> None:
        """Add the facts of files."""
        from zodiacedge.engine.spark.ingest.read_files import ingest  # noqa: PLC0415 - needed only to load files

        self._files = self._files.merged(ingest(self.workspace, load))

    def take(self, files: BatchFiles) -> None:
        """Add the files that a task wrote."""
        self._files = self._files.merged(files.adopted(self.workspace))

    def merge(self, other: SparkBatch) -> None:
        """Add the facts of another batch."""
        self._files = self._files.merged(other.rows())

    def predicates(self) -> frozenset[Predicate]:
        """Return the predicates of the facts."""
        return self.values.predicates().union(self._files.predicates())

    def size(self) -> int:
        """Return the number of distinct facts."""
        rows = 0
        for relation, files in self.rows().files.items():
            owners = [SignedFiles.of(file) for file in files]
            rows += sum(count_distinct.count(self.workspace, relation, owners).values())
        return rows

    def facts(self, name: str | None = None) -> Iterator[Fact]:
        """Yield the distinct facts, all or those of a predicate's name."""
        rows = self.rows()
        decoder = Decoder(self.workspace, rows.terms)
        for relation, files in rows.files.items():
            row_filter = ALL
            if name is not None and relation.typed:
                classes = (key for key, named in rows.names.items() if class_predicate(named).name == name)
                row_filter = RowFilter(frozenset(classes))
            elif name not in {None, relation.name}:
                continue
            yield from decoder.facts(relation, [SignedFiles.of(file) for file in files], row_filter)

    def without_older(self, name: str, position: int, moment: datetime) -> tuple[SparkBatch, SparkBatch]:
        """Return the batch without facts of a predicate whose argument is an earlier moment, and these."""
        values = self.values.without_older(name, position, moment)
        columns: dict[Relation, RowFilter] = {}
        for relation in self._files.files:
            if relation.typed and position == 1:
                classes = (key for key, named in self._files.names.items() if named == IRI(name))
                columns[relation] = RowFilter(frozenset(classes))
            elif relation.name == name and position <= relation.arity and not relation.typed:
                columns[relation] = ALL
        earlier = fact_split.earlier(self.workspace, self._files.terms, moment) if columns else ()
        return self._without(values, columns, position - 1, earlier)

    def without_subjects(self, subjects: Collection[Term]) -> tuple[SparkBatch, SparkBatch]:
        """Return the batch without the facts whose first argument is one of some terms, and these."""
        values = self.values.without_subjects(subjects)
        keys = self.workspace.hashing.keys_of(subjects).values()
        columns = {relation: ALL for relation in self._files.files if relation.arity}
        return self._without(values, columns, 0, keys)

    def _without(
        self,
        values: tuple[EmbeddedBatch, EmbeddedBatch],
        concerned: Mapping[Relation, RowFilter],
        column: int,
        keys: Collection[int],
    ) -> tuple[SparkBatch, SparkBatch]:
        """Return two batches: without the rows of relations that have one of some fingerprints, and these."""
        kept: dict[Relation, tuple[DataFile, ...]] = dict(self._files.files)
        dropped: dict[Relation, tuple[DataFile, ...]] = {}
        folder = self.workspace.scratch.folder
        for relation, row_filter in concerned.items() if keys else ():
            split = fact_split.Split(relation, row_filter.classes, column, keys, folder)
            stay, go = fact_split.run(self.workspace, split, kept.pop(relation))
            kept |= {relation: stay} if stay else {}
            dropped |= {relation: go} if go else {}
        first, second = values
        return self._part(first, kept), self._part(second, dropped)

    def _part(self, values: EmbeddedBatch, files: Mapping[Relation, tuple[DataFile, ...]]) -> SparkBatch:
        part = SparkBatch(self.workspace)
        part.values = values
        part._files = replace(self._files, files=files)
        return part

    def rows(self) -> BatchFiles:
        """Return the facts as files; those given as values are written."""
        segment = self.values.distinct()
        if not segment.tables:
            return self._files
        folder, hashing = self.workspace.scratch.folder, self.workspace.hashing
        written = write_tables(segment, self.values.store.dictionary, folder, hashing, by_tasks=False)
        return self._files.merged(written.adopted(self.workspace))


def write_tables(
    segment: Tables, dictionary: Dictionary, folder: Folder, hashing: Hashing, *, by_tasks: bool
) -> BatchFiles:
    """Write tables of the embedded engine, and the terms of a dictionary."""
    keys = hashing.keys(dictionary)
    files: dict[Relation, tuple[DataFile, ...]] = {}
    names: dict[int, Term] = {}
    members = []
    for name, table in segment.tables.items():
        if name.is_class:
            key = int(keys[name.member_of])
            names[key] = dictionary.decode(name.member_of)
            members.append([keys[table.rows[:, 0]], np.full(len(table), key, np.int64)])
            continue
        relation = Relation(name.name, name.arity)
        columns = [keys[table.rows[:, n]] for n in range(name.arity)] or [np.zeros(len(table), np.int64)]
        files[relation] = (folder.write_rows(relation, columns),)
    if members:
        files[TYPED] = (
            folder.write_rows(TYPED, [np.concatenate(column) for column in zip(*members, strict=True)]),
        )
    terms = TermFiles().with_files(write_terms(folder, columns_of(dictionary, hashing)))
    return BatchFiles(files, terms, names, by_tasks)


@dataclass(frozen=True)
class SparkFactDelta:
    """The change of the explicit facts (EDB) of a state by facts to insert and to delete."""

    workspace: Workspace
    before: Segment
    terms_before: TermFiles
    add: BatchFiles
    remove: BatchFiles

    @cached_property
    def effective_delta(self) -> ExplicitDelta:
        """The rows that are really inserted and deleted."""
        relations = {**self.add.files, **self.remove.files}
        if not relations:
            return ExplicitDelta({}, {}, 0, 0, None, ())
        explicit = {r: self.before.contents[r] for r in relations if r in self.before.contents}
        new_terms = self.add.terms.with_files(*self.remove.terms.parts)
        task = DeltaTask(
            self.add.files,
            self.remove.files,
            explicit,
            new_terms,
            self.terms_before,
            self.workspace.scratch.folder,
            self.workspace.hashing,
        )
        existing = sum(content.rows for content in explicit.values())
        changed = self.add.count + self.remove.count
        by_tasks = self.add.by_tasks or self.remove.by_tasks
        if not (existing or self.terms_before.rows or by_tasks):
            # No facts to compare with, and the driver has all rows: no job is needed.
            with all_or_nothing():
                delta = fact_delta.run(task)
        elif min(changed + existing - self.workspace.options.gather_rows, changed - fact_delta.FEW) > 0:
            return fact_delta.run_partitioned(self.workspace, task)
        else:
            delta = self.workspace.jobs.one(fact_delta.run, task, "comparing facts with those that are there")
        for file in delta.files:
            self.workspace.adopt(file)
        return delta

    @property
    def names(self) -> Mapping[int, Term]:
        """The names of the classes among the facts."""
        return {**self.add.names, **self.remove.names}

    @cached_property
    def after(self) -> Segment:
        """The explicit facts after the change."""
        files, delta = dict(self.before.contents), self.effective_delta
        for relation in {**delta.inserted, **delta.deleted}:
            if relation in delta.rewritten:
                files[relation] = SignedFiles.of(delta.rewritten[relation])
                continue
            inserted, deleted = (
                side.get(relation, SignedFiles()).parts for side in (delta.inserted, delta.deleted)
            )
            after = files.get(relation, SignedFiles()).then(inserted, deleted)
            files[relation] = compacted(self.workspace, relation, after, ALONE)
        return Segment(files)

    @property
    def terms(self) -> TermFiles:
        """The known terms and the new ones."""
        files, delta = self.terms_before.parts, self.effective_delta
        if delta.small_terms is not None:
            small = small_files(self.terms_before)
            files = (*(file for file in files if file not in small), delta.small_terms)
        return TermFiles(files).with_files(*delta.terms)

    @property
    def added(self) -> int:
        """The number of facts inserted."""
        return sum(content.rows for content in self.effective_delta.inserted.values())

    @property
    def removed(self) -> int:
        """The number of facts deleted."""
        return sum(content.rows for content in self.effective_delta.deleted.values())

    @property
    def idle(self) -> int:
        """The number of facts to insert that exist already."""
        return self.effective_delta.idle

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """The number of facts to delete that do not exist, and one of them."""
        return self.effective_delta.missing, self.effective_delta.example

    def matching(self, atom: Atom, most: int | None = None) -> Iterable[Fact]:
        """Return the explicit facts after the change that match an atom, at most so many."""
        relation = Relation.of(atom)
        keys = self.workspace.keys(mentioned((atom,)))
        row_filter = RowFilter.of(atom, keys, typed=relation.typed)
        return Decoder(self.workspace, self.terms).facts(
            relation, [self.after.content(relation)], row_filter, most
        )

    def holds(self, term: Term) -> bool:
        """Whether an explicit fact after the change has this term as an argument."""
        return Decoder(self.workspace, self.terms).holds(term, self.after)
