"""Facts on their way into or out of a state, and what they come to.

Facts that are given as such are rows of a dictionary of the batch's own until somebody asks; facts of files
are files of rows from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
from zodiacedge.engine.embedded.storage.database import NO_CLASS, Database
from zodiacedge.engine.spark.cluster.task_files import all_or_nothing
from zodiacedge.engine.spark.ingest import fact_delta
from zodiacedge.engine.spark.ingest.fact_delta import DeltaTask, ExplicitDelta
from zodiacedge.engine.spark.lookup.decode import Lookup
from zodiacedge.engine.spark.lookup.row_filter import RowFilter
from zodiacedge.engine.spark.storage.compaction import compacted, small_parts
from zodiacedge.engine.spark.storage.embedded_tables import mentioned
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import Names, TermFiles, columns_of, write_terms
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.language.ast import Predicate
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.engine.embedded.storage.database import Segment as Tables
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.spark.storage.files import Folder
    from zodiacedge.engine.spark.storage.terms import Hashing
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.io import Load
    from zodiacedge.language.ast import Atom, Fact
    from zodiacedge.terms import Term


@dataclass(frozen=True)
class Rows:
    """Rows of a batch as files, the terms in them, and the names of the classes among them."""

    parts: Mapping[Relation, tuple[DataFile, ...]] = field(default_factory=dict)
    terms: TermFiles = field(default_factory=TermFiles)
    names: Names = field(default_factory=lambda: Names({}))
    from_files: bool = False
    """Whether tasks read them from files; else they were the driver's."""

    def beside(self, other: Rows) -> Rows:
        """Return both."""
        parts = dict(self.parts)
        for relation, more in other.parts.items():
            parts[relation] = (*parts.get(relation, ()), *more)
        terms = TermFiles((*self.terms.parts, *other.terms.parts))
        names = self.names.with_terms(other.names.known)
        return Rows(parts, terms, names, self.from_files or other.from_files)

    @property
    def count(self) -> int:
        """How many rows there are; one that stands twice counts as two."""
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
    """Return the predicate of a class; one that is no IRI is no predicate of its own."""
    return Predicate(name.value, 1) if isinstance(name, IRI) else Predicate(RDF_TYPE, 2)


class SparkBatch:
    """Facts of one change."""

    def __init__(self, place: Workspace) -> None:
        """Start with no facts."""
        self.workspace = place
        self._given = EmbeddedBatch(Database())
        self._files = Rows()

    def add(self, facts: Iterable[Fact]) -> None:
        """Take facts."""
        self._given.add(facts)

    def load(self, load: Load) -> None:
        """Take the facts of files."""
        from zodiacedge.engine.spark.ingest.read_files import ingest  # noqa: PLC0415 - only who loads pays for it

        self._files = self._files.beside(ingest(self.workspace, load))

    def take(self, parts: Mapping[Relation, DataFile], terms: DataFile, names: Mapping[int, Term]) -> None:
        """Take files of rows that a task wrote, the terms in them, and the names of their classes."""
        adopted = {relation: (self.workspace.adopt(part),) for relation, part in parts.items()}
        known = TermFiles((self.workspace.adopt(terms),) if terms.rows else ())
        self._files = self._files.beside(Rows(adopted, known, Names(names), from_files=True))

    def merge(self, other: SparkBatch) -> None:
        """Take the facts of another batch."""
        self._files = self._files.beside(other.rows())

    @property
    def given(self) -> EmbeddedBatch:
        """The facts that were given as such."""
        return self._given

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of the facts taken so far."""
        return self._given.predicates().union(self._files.predicates())

    def rows(self) -> Rows:
        """Return the facts taken so far as files of rows."""
        return self._files.beside(self._written())

    def _written(self) -> Rows:
        segment = self._given.distinct()
        if not segment.tables:
            return Rows()
        dictionary, place = self._given.store.dictionary, self.workspace
        folder = place.scratch.folder
        written, names = write_tables(segment, dictionary, folder, place.hashing)
        parts = {relation: (place.adopt(part),) for relation, part in written.items()}
        terms = place.adopt(write_terms(folder, columns_of(dictionary, place.hashing)))
        return Rows(parts, TermFiles((terms,) if terms.rows else ()), Names(names))


def write_tables(
    segment: Tables, dictionary: Dictionary, folder: Folder, hashing: Hashing
) -> tuple[dict[Relation, DataFile], dict[int, Term]]:
    """Write tables of the embedded engine; return their files, and the names of the classes among them."""
    keys = hashing.keys(dictionary)
    parts: dict[Relation, DataFile] = {}
    names: dict[int, Term] = {}
    members = []
    for name, table in segment.tables.items():
        if name.member_of != NO_CLASS:
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
    """What facts to add and to remove come to on the explicit facts of a state."""

    workspace: Workspace
    before: Segment
    terms_before: TermFiles
    add: Rows
    remove: Rows

    @cached_property
    def sifted(self) -> ExplicitDelta:
        """What really comes and goes."""
        relations = {**self.add.parts, **self.remove.parts}
        if not relations:
            return ExplicitDelta({}, {}, 0, 0, None, ())
        there = {r: self.before.contents[r] for r in relations if r in self.before.contents}
        new_terms = TermFiles((*self.add.terms.parts, *self.remove.terms.parts))
        job = DeltaTask(
            self.add.parts,
            self.remove.parts,
            there,
            new_terms,
            self.terms_before,
            self.workspace.scratch.folder,
            self.workspace.hashing,
        )
        compared = any(content.rows for content in there.values()) or self.terms_before.rows
        given = self.add.count + self.remove.count
        rows = given + sum(content.rows for content in there.values())
        if not compared and not (self.add.from_files or self.remove.from_files):
            # There is nothing to compare them with, and all of it is the driver's own.
            with all_or_nothing():
                found = fact_delta.run(job)
        elif min(rows - self.workspace.options.gather_rows, given - fact_delta.FEW) > 0:
            return fact_delta.in_parts(self.workspace, job)
        else:
            found = self.workspace.jobs.one(fact_delta.run, job, "comparing facts with those that are there")
        small = () if found.small_terms is None else (found.small_terms,)
        for parts in (*found.new.values(), *found.old.values(), found.whole.values(), found.terms, small):
            for part in parts:
                self.workspace.adopt(part)
        return found

    @property
    def names(self) -> Names:
        """The names of the classes among the facts."""
        return self.add.names.with_terms(self.remove.names.known)

    @cached_property
    def after(self) -> Segment:
        """The explicit facts as they will be."""
        found = dict(self.before.contents)
        for relation in {**self.sifted.new, **self.sifted.old}:
            if relation in self.sifted.whole:
                found[relation] = SignedFiles.of(self.sifted.whole[relation])
                continue
            there = found.get(relation, SignedFiles())
            plus, minus = self.sifted.new.get(relation, ()), self.sifted.old.get(relation, ())
            found[relation] = compacted(self.workspace, relation, there.then(plus, minus), ALONE)
        return Segment(found)

    @property
    def terms(self) -> TermFiles:
        """The terms, with those that came."""
        parts = self.terms_before.parts
        if self.sifted.small_terms is not None:
            small = small_parts(self.terms_before)
            parts = (*(part for part in parts if part not in small), self.sifted.small_terms)
        return TermFiles((*parts, *self.sifted.terms))

    @property
    def added(self) -> int:
        """How many facts are new."""
        return sum(part.rows for parts in self.sifted.new.values() for part in parts)

    @property
    def removed(self) -> int:
        """How many facts go."""
        return sum(part.rows for parts in self.sifted.old.values() for part in parts)

    @property
    def idle(self) -> int:
        """How many facts to add are there already."""
        return self.sifted.idle

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """How many facts to remove are not there, and one of them."""
        return self.sifted.missing, self.sifted.example

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
