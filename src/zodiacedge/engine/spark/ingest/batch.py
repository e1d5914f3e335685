"""Batches of facts to insert or delete, and the fact delta that two batches come to.

Facts given as values are rows of the batch's own dictionary until their files are needed; facts of files are
files of rows from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.spark.cluster.task_files import all_or_nothing
from zodiacedge.engine.spark.ingest import fact_delta
from zodiacedge.engine.spark.ingest.fact_delta import DeltaTask, ExplicitDelta
from zodiacedge.engine.spark.lookup.decode import Lookup
from zodiacedge.engine.spark.lookup.row_filter import RowFilter
from zodiacedge.engine.spark.storage.compaction import compacted, small_files
from zodiacedge.engine.spark.storage.embedded_tables import mentioned
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import ClassNames, TermFiles, columns_of, write_terms
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Predicate
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from zodiacedge.engine.embedded.storage.segment import Segment as Tables
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.spark.storage.files import Folder
    from zodiacedge.engine.spark.storage.terms import Hashing
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.io import Load
    from zodiacedge.language.ast import Atom, Fact
    from zodiacedge.terms import Term


@dataclass(frozen=True)
class BatchFiles:
    """Rows of a batch as files, the terms in them, and the names of the classes among them."""

    parts: Mapping[Relation, tuple[DataFile, ...]] = field(default_factory=dict)
    terms: TermFiles = field(default_factory=TermFiles)
    names: ClassNames = field(default_factory=lambda: ClassNames({}))
    from_files: bool = False
    """Whether tasks read them from files; if not, the driver had them."""

    def beside(self, other: BatchFiles) -> BatchFiles:
        """Return both."""
        parts = dict(self.parts)
        for relation, more in other.parts.items():
            parts[relation] = (*parts.get(relation, ()), *more)
        terms = TermFiles((*self.terms.parts, *other.terms.parts))
        names = self.names.with_terms(other.names.known)
        return BatchFiles(parts, terms, names, self.from_files or other.from_files)

    @property
    def count(self) -> int:
        """How many rows there are, duplicates included."""
        return sum(part.rows for parts in self.parts.values() for part in parts)

    def predicates(self) -> Iterator[Predicate]:
        """Yield the predicates of the rows."""
        for relation, parts in self.parts.items():
            if not relation.typed:
                yield Predicate(*relation)
                continue
            for key in {key for part in parts for key in part.classes}:
                yield class_predicate(self.names.known[key])


def class_predicate(name: Term) -> Predicate:
    """Return the predicate of a class; a class that is no IRI has none of its own."""
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
    """Facts of one change."""

    def __init__(self, workspace: Workspace) -> None:
        """Start with no facts."""
        self.workspace = workspace
        self._given = EmbeddedBatch(Database())
        self._files = BatchFiles()

    def add(self, facts: Iterable[Fact]) -> None:
        """Take facts."""
        self._given.add(facts)

    def load(self, load: Load) -> None:
        """Take the facts of files."""
        from zodiacedge.engine.spark.ingest.read_files import ingest  # noqa: PLC0415 - needed only to load files

        self._files = self._files.beside(ingest(self.workspace, load))

    def take(self, parts: Mapping[Relation, DataFile], terms: DataFile, names: Mapping[int, Term]) -> None:
        """Take files of rows that a task wrote, the terms in them, and the names of their classes."""
        adopted = {relation: (self.workspace.adopt(part),) for relation, part in parts.items()}
        known = TermFiles((self.workspace.adopt(terms),) if terms.rows else ())
        self._files = self._files.beside(BatchFiles(adopted, known, ClassNames(names), from_files=True))

    def merge(self, other: SparkBatch) -> None:
        """Take the facts of another batch."""
        self._files = self._files.beside(other.rows())

    @property
    def given(self) -> EmbeddedBatch:
        """The facts that were given as values."""
        return self._given

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of the facts taken so far."""
        return self._given.predicates().union(self._files.predicates())

    def rows(self) -> BatchFiles:
        """Return the facts taken so far as files of rows."""
        return self._files.beside(self._written())

    def _written(self) -> BatchFiles:
        segment = self._given.distinct()
        if not segment.tables:
            return BatchFiles()
        dictionary, workspace = self._given.store.dictionary, self.workspace
        folder = workspace.scratch.folder
        written, names = write_tables(segment, dictionary, folder, workspace.hashing)
        parts = {relation: (workspace.adopt(part),) for relation, part in written.items()}
        terms = workspace.adopt(write_terms(folder, columns_of(dictionary, workspace.hashing)))
        return BatchFiles(parts, TermFiles((terms,) if terms.rows else ()), ClassNames(names))


def write_tables(
    segment: Tables, dictionary: Dictionary, folder: Folder, hashing: Hashing
) -> tuple[dict[Relation, DataFile], dict[int, Term]]:
    """Write tables of the embedded engine; return their files, and the names of the classes among them."""
    keys = hashing.keys(dictionary)
    parts: dict[Relation, DataFile] = {}
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
        parts[relation] = folder.write_rows(relation, columns)
    if members:
        columns = [np.concatenate(column) for column in zip(*members, strict=True)]
        parts[TYPED] = folder.write_rows(TYPED, columns)
    return parts, names


@dataclass(frozen=True)
class SparkFactDelta:
    """The change that facts to insert and to delete make to the explicit facts (EDB) of a state."""

    workspace: Workspace
    before: Segment
    terms_before: TermFiles
    add: BatchFiles
    remove: BatchFiles

    @cached_property
    def effective_delta(self) -> ExplicitDelta:
        """The rows that are really inserted and deleted."""
        relations = {**self.add.parts, **self.remove.parts}
        if not relations:
            return ExplicitDelta({}, {}, 0, 0, None, ())
        explicit = {r: self.before.contents[r] for r in relations if r in self.before.contents}
        new_terms = TermFiles((*self.add.terms.parts, *self.remove.terms.parts))
        task = DeltaTask(
            self.add.parts,
            self.remove.parts,
            explicit,
            new_terms,
            self.terms_before,
            self.workspace.scratch.folder,
            self.workspace.hashing,
        )
        compared = any(content.rows for content in explicit.values()) or self.terms_before.rows
        given = self.add.count + self.remove.count
        rows = given + sum(content.rows for content in explicit.values())
        if not compared and not (self.add.from_files or self.remove.from_files):
            # There are no facts to compare with, and the driver has all rows: no job is needed.
            with all_or_nothing():
                delta = fact_delta.run(task)
        elif min(rows - self.workspace.options.gather_rows, given - fact_delta.FEW) > 0:
            return fact_delta.run_partitioned(self.workspace, task)
        else:
            delta = self.workspace.jobs.one(fact_delta.run, task, "comparing facts with those that are there")
        for part in delta.files:
            self.workspace.adopt(part)
        return delta

    @property
    def names(self) -> ClassNames:
        """The names of the classes among the facts."""
        return self.add.names.with_terms(self.remove.names.known)

    @cached_property
    def after(self) -> Segment:
        """The explicit facts as they will be."""
        files, delta = dict(self.before.contents), self.effective_delta
        for relation in {**delta.inserted, **delta.deleted}:
            if relation in delta.rewritten:
                files[relation] = SignedFiles.of(delta.rewritten[relation])
                continue
            after = files.get(relation, SignedFiles()).then(
                delta.inserted.get(relation, ()), delta.deleted.get(relation, ())
            )
            files[relation] = compacted(self.workspace, relation, after, ALONE)
        return Segment(files)

    @property
    def terms(self) -> TermFiles:
        """The known terms and the new ones."""
        parts, delta = self.terms_before.parts, self.effective_delta
        if delta.small_terms is not None:
            small = small_files(self.terms_before)
            parts = (*(part for part in parts if part not in small), delta.small_terms)
        return TermFiles((*parts, *delta.terms))

    @property
    def added(self) -> int:
        """How many facts are new."""
        return sum(part.rows for parts in self.effective_delta.inserted.values() for part in parts)

    @property
    def removed(self) -> int:
        """How many facts are deleted."""
        return sum(part.rows for parts in self.effective_delta.deleted.values() for part in parts)

    @property
    def idle(self) -> int:
        """How many facts to insert exist already."""
        return self.effective_delta.idle

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """How many facts to delete do not exist, and one of them."""
        return self.effective_delta.missing, self.effective_delta.example

    def matching(self, atom: Atom, most: int | None = None) -> Iterable[Fact]:
        """The explicit facts that are instances of an atom, as they will be: all of them, or so many."""
        relation = Relation.of(atom)
        content = self.after.content(relation)
        keys = self.workspace.keys(mentioned((atom,)))
        choice = RowFilter.of(atom, keys, typed=relation.typed)
        return Lookup(self.workspace, self.terms).facts(relation, [content], choice, most)

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact will have this term as an argument."""
        return Lookup(self.workspace, self.terms).holds(term, self.after)
