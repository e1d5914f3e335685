"""The facts of one version: explicit facts and the segment of each hyper-node, behind one view per relation.

An atom reads the union of all tables of its relation, which are not merged by copying. A change prepares the
next version in overlays (`versions`) and writes to the tables when it is committed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

import numpy as np

from zodiacedge.engine.embedded.storage.reclaim import Reclamation
from zodiacedge.engine.embedded.storage.relation import (
    TYPED,
    Relation,
    TableView,
    as_pairs,
    class_of,
    is_any_class,
    is_type_atom,
)
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import count_distinct, count_terms
from zodiacedge.engine.embedded.terms.term_space import TermSpace
from zodiacedge.language.ast import Fact, Predicate
from zodiacedge.language.vocabulary import WINDOW_RELATION
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Atom


WINDOWS = Relation(WINDOW_RELATION, 2)


class DeferredReader(Protocol):
    """A deferred reader of tables: it reads them later, or just before they change."""

    def look_before(self, changing: set[int]) -> None:
        """Read the tables now if one of them is among the tables that change, given by identity."""


class FactTables(ABC):
    """Tables of facts as the atoms of rules read them, and the terms in them."""

    def __init__(self, terms: TermSpace) -> None:
        """Take the terms."""
        self.terms = terms

    @abstractmethod
    def tables(self, relation: Relation) -> Sequence[Table]:
        """Return the tables of a relation that have rows."""

    @abstractmethod
    def classes(self) -> Iterable[Relation]:
        """Return the relations of classes."""

    @property
    def dictionary(self) -> Dictionary:
        """The terms."""
        return self.terms.dictionary

    def filled_by(self, head: Atom, *, pairs: bool) -> Relation:
        """Return the relation that a node stores a head in; `pairs` if all classes share one table."""
        member_of = class_of(head)
        if member_of is None or pairs:
            return Relation(head.relation, len(head.args))
        return Relation.of_class(self.terms.constant(member_of))

    def relations(self, atom: Atom) -> list[Relation]:
        """Return the relations whose rows may match an atom."""
        member_of = class_of(atom)
        if member_of is not None:
            return [Relation.of_class(self.terms.constant(member_of)), TYPED]
        if is_type_atom(atom):
            return [*self.classes(), TYPED]
        return [Relation(atom.relation, len(atom.args))]

    def outside(self, atom: Atom) -> list[TableView]:
        """Return the tables whose rows may match an atom."""
        return [
            TableView(table, relation.member_of)
            for relation in self.relations(atom)
            for table in self.tables(relation)
        ]

    def inside(self, segment: Segment, atom: Atom) -> list[TableView]:
        """Return the tables of a segment under evaluation whose rows may match an atom."""
        relations = self.relations(atom)
        if is_type_atom(atom):
            any_class = is_any_class(atom)
            relations = [r for r in segment.tables if r in relations or (any_class and r.is_class)]
        return [TableView(segment.tables[r], r.member_of) for r in relations if r in segment.tables]


class InputTables(FactTables):
    """The tables that a node reads while it is evaluated."""

    def __init__(self, terms: TermSpace, tables: Mapping[Relation, Sequence[Table]]) -> None:
        """Take the tables of each relation; they have rows."""
        super().__init__(terms)
        self._tables = tables

    def tables(self, relation: Relation) -> Sequence[Table]:
        """Return the tables of a relation."""
        return self._tables.get(relation, ())

    def classes(self) -> Iterable[Relation]:
        """Return the relations of classes."""
        return [relation for relation in self._tables if relation.is_class]


class Database(FactTables):
    """The tables of one version and the terms in them; the paper's DataStoreBag."""

    def __init__(self, terms: TermSpace | None = None, explicit: Segment | None = None) -> None:
        """Start with explicit facts only."""
        super().__init__(terms or TermSpace())
        self.explicit = explicit or Segment()
        self.windows = Segment()
        """The moments in windows, (moment, window): hidden, and neither explicit nor derived."""
        self.segments: dict[frozenset[str], Segment] = {}
        self.tracked = False
        """Whether changed tables get new revisions, for a store that writes the changed tables only."""
        self._owners: dict[Relation, list[Segment]] = {}
        self._named: dict[str, list[Relation]] = {}
        self._unnamed: list[Relation] = []
        self._classes: set[Relation] = set()
        self._readers: WeakSet[DeferredReader] = WeakSet()
        self.reclamation = Reclamation(self)
        self.show(self.explicit)
        self.windows.table(WINDOWS)
        self.show(self.windows)

    def mark_classes(self) -> None:
        """Mark the classes that have a table as used terms."""
        owned = [relation.member_of for relation, owners in self._owners.items() if owners]
        self.dictionary.mark(np.array(owned, np.int32))

    def forget_unowned(self) -> None:
        """Drop relations that have no table any more, and classes that no fact and no rule mentions."""
        is_used = self.dictionary.is_used
        for relation in [relation for relation, owners in self._owners.items() if not owners]:
            if relation.is_class and is_used(relation.member_of):
                continue
            del self._owners[relation]
            self._classes.discard(relation)
            if relation in self._unnamed:
                self._unnamed.remove(relation)
            for named in self._named.values():
                if relation in named:
                    named.remove(relation)
        self._named = {name: named for name, named in self._named.items() if named}
        known = self.terms.predicates
        for relation in [Relation(*key) for key in known]:
            if relation not in self._owners and not (relation.is_class and is_used(relation.member_of)):
                del known[relation]

    def add_reader(self, reader: DeferredReader) -> None:
        """Notify a reader before tables change."""
        self._readers.add(reader)

    def remove_reader(self, reader: DeferredReader) -> None:
        """Stop notifying a reader."""
        self._readers.discard(reader)

    def notify_readers(self, tables: Iterable[Table]) -> None:
        """Let readers read tables before they change."""
        if self._readers:
            changing = {id(table) for table in tables}
            for reader in list(self._readers):
                reader.look_before(changing)

    def with_segment(self, segment: Segment) -> Database:
        """Return a database that also shows the segment of a query."""
        extended = Database(self.terms, segment)
        extended._owners |= {relation: list(owners) for relation, owners in self._owners.items()}
        extended._classes |= self._classes
        return extended

    def add_segment(self, rules: frozenset[str], segment: Segment) -> None:
        """Add the segment of a node and show its tables."""
        self.segments[rules] = segment
        self.show(segment)

    def remove_segment(self, rules: frozenset[str]) -> None:
        """Remove the segment of a node."""
        segment = self.segments.pop(rules)
        for relation in segment.tables:
            self._owners[relation] = [owner for owner in self._owners[relation] if owner is not segment]

    def show(self, segment: Segment) -> None:
        """Make the tables of a segment visible, including those added since the last call."""
        for relation in segment.tables:
            if relation not in self._owners:
                self._owners[relation] = []
                self._unnamed.append(relation)
            owners = self._owners[relation]
            if not any(owner is segment for owner in owners):
                owners.append(segment)
            if relation.is_class:
                self._classes.add(relation)

    def tables(self, relation: Relation) -> Sequence[Table]:
        """Return the tables of a relation in all visible segments."""
        owners = self._owners.get(relation, ())
        return [table for segment in owners if len(table := segment.tables[relation])]

    def classes(self) -> Iterable[Relation]:
        """Return the relations of classes."""
        return self._classes

    def predicates(self) -> frozenset[Predicate]:
        """Return the predicates of all visible facts."""
        typed = [segment.tables[TYPED].rows[:, 1] for segment in self.owners(TYPED)]
        classes = np.unique(np.concatenate(typed)).tolist() if typed else []
        relations = {*self._filled(), *map(Relation.of_class, classes)} - {TYPED}
        return frozenset(map(self.predicate, relations))

    def predicate_names(self) -> set[str]:
        """Return the names of the predicates of all visible facts, perhaps without those that rules name."""
        if self.owners(TYPED):
            return {predicate.name for predicate in self.predicates()}
        return {
            self.predicate(relation).name if relation.is_class else relation.name
            for relation, table in self.explicit.tables.items()
            if table
        }

    def _filled(self) -> Iterator[Relation]:
        """Yield the relations that have rows."""
        for relation, owners in self._owners.items():
            if relation != WINDOWS and any(segment.tables[relation] for segment in owners):
                yield relation

    def owners(self, relation: Relation) -> Sequence[Segment]:
        """Return the segments that have a table of a relation."""
        return self._owners.get(relation, ())

    def counts(self, segments: Iterable[Segment]) -> dict[Predicate, int]:
        """Count the distinct facts of each predicate in the union of segments."""
        tables: dict[Relation, list[Table]] = {}
        for segment in segments:
            for relation, table in segment.tables.items():
                if len(table):
                    tables.setdefault(relation, []).append(table)
        typed = [table.rows for table in tables.pop(TYPED, ())]
        if typed:
            # The members of a class may be in tables of both layouts: count pairs.
            for relation in [r for r in tables if r.is_class]:
                members = np.concatenate([table.rows for table in tables.pop(relation)])
                typed.append(as_pairs(relation, members))
        counts: dict[Predicate, int] = {}
        unary = [r for r, group in tables.items() if r.arity == 1 and len(group) > 1]
        known = dict(zip(unary, count_terms([tables[r] for r in unary], len(self.dictionary)), strict=True))
        for relation, group in tables.items():
            # Classes that are no IRIs are one predicate together.
            predicate = self.predicate(relation)
            count = known[relation] if relation in known else count_distinct(group)
            counts[predicate] = counts.get(predicate, 0) + count
        if typed:
            pairs = np.unique(np.concatenate(typed), axis=0)
            for member_of, count in zip(*np.unique(pairs[:, 1], return_counts=True), strict=True):
                predicate = self.predicate(Relation.of_class(int(member_of)))
                counts[predicate] = counts.get(predicate, 0) + int(count)
        return counts

    def held_among(self, ids: Collection[int], apart: Relation) -> set[int]:
        """Return those of some terms that facts have, explicit or derived, apart from those of a relation."""
        wanted = np.zeros(len(self.dictionary) + 1, np.bool_)
        wanted[list(ids)] = True
        held: set[int] = set()
        for segment in (self.explicit, *self.segments.values()):
            for relation, table in segment.tables.items():
                if relation != apart:
                    rows = table.rows
                    held.update(rows[wanted[rows]].tolist())
        return held

    def explicit_predicates(self, names: Collection[str]) -> Iterator[Predicate]:
        """Yield the predicates of explicit facts that have one of these names."""
        for relation in self._unnamed:
            self._named.setdefault(self.predicate(relation).name, []).append(relation)
        self._unnamed.clear()
        tables = self.explicit.tables
        for relation in (relation for name in names for relation in self._named.get(name, ())):
            if relation in tables and len(tables[relation]):
                yield self.predicate(relation)

    def predicate(self, relation: Relation) -> Predicate:
        """Return the predicate of a relation; that of a class's members is the class."""
        predicate = self.terms.predicates.get(relation)
        if predicate is None:
            predicate = Predicate(relation.name, relation.arity)
            if relation.is_class:
                member_of = self.dictionary.decode(relation.member_of)
                # A class that is no IRI is no predicate of its own.
                name, arity = (member_of.value, 1) if isinstance(member_of, IRI) else TYPED[:2]
                predicate = Predicate(name, arity)
            self.terms.predicates[relation] = predicate
        return predicate

    def facts(self, segment: Segment) -> Iterator[Fact]:
        """Yield the facts of a segment."""
        for relation, table in segment.tables.items():
            yield from self.facts_of(relation, table.rows)

    def facts_of(self, relation: Relation, rows: Ids) -> Iterator[Fact]:
        """Yield rows of a relation as facts."""
        decode = self.dictionary.decode
        terms = {number: decode(number) for number in np.unique(rows).tolist()}
        member_of = (decode(relation.member_of),) if relation.is_class else ()
        for row in rows.tolist():
            yield Fact(relation.name, (*(terms[n] for n in row), *member_of))
