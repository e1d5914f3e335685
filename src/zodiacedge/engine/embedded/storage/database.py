"""Where facts live: explicit facts and the segment of each hyper-node, behind one view per relation.

A relation is a name and an arity; the members of a class are a relation of their own, with one column.
A node that derives `rdf:type` with a variable class keeps all of its `rdf:type` facts in one table of
two columns instead. A reader sees all tables of a relation side by side; nothing is merged by copying.

What a change does to tables is worked out beside them (`versions`) and done to them when it is committed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakSet

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.storage.table import Table, count_distinct
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.errors import Diagnostic, EvaluationProblem
from zodiacedge.language.ast import Atom, Fact, Predicate, Variable
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.terms import Term

    Ids = NDArray[np.int32]

NO_CLASS = -1


class Relation(NamedTuple):
    """A table's name, its number of columns, and the class whose members it holds."""

    name: str
    arity: int
    member_of: int = NO_CLASS


TYPED = Relation(RDF_TYPE, 2)


@dataclass(frozen=True, slots=True)
class TableView:
    """One table of a relation, as an atom sees it."""

    table: Table
    member_of: int


@dataclass(slots=True)
class Segment:
    """The tables that one owner (a node, or the explicit facts) fills.

    `aggregate_rows` are the rows of the aggregates of a node's rules, by rule key: groups, then results.
    `overlays` are the changes under way of both kinds of tables; `seconds` is what the last evaluation from
    scratch took, and `tries` how often in a row maintaining it was given up before.
    """

    tables: dict[Relation, Table] = field(default_factory=dict)
    aggregate_rows: dict[str, Table] = field(default_factory=dict)
    overlays: dict[Relation | str, Overlay] = field(default_factory=dict)
    seconds: float = 0.0
    tries: int = 0

    def __len__(self) -> int:
        """Return the number of facts."""
        return sum(len(table) for table in self.tables.values())

    def table(self, relation: Relation) -> Table:
        """Return the table of a relation, a new one if need be."""
        found = self.tables.get(relation)
        if found is None:
            if relation.arity > L.MOST_COLUMNS:
                raise too_wide(relation.name, relation.arity, L.MOST_COLUMNS)
            found = self.tables[relation] = Table(relation.arity)
        return found


def too_wide(what: str, arity: int, most: int) -> EvaluationProblem:
    """Return the problem of a relation or a function with more arguments than the engine takes."""
    message = f"{what} has {arity} arguments, and the embedded engine takes at most {most}"
    return EvaluationProblem(Diagnostic("E004", message, "use fewer, or the engine reference"))


class TermSpace:
    """What all versions of a state share: the dictionary, results of the host, and working memory."""

    def __init__(self) -> None:
        """Start with no terms."""
        self.dictionary = Dictionary()
        self.host_functions: dict[tuple[str, int, bool], object] = {}
        """Results of host functions by name, arity and whether it is registered: `expressions` fills them."""
        self._buffers = threading.local()
        self._constants: dict[Term, int] = {}
        self._mentioned: dict[int, Term] = {}
        self.predicates: dict[Relation, Predicate] = {}

    def constant(self, term: Term) -> int:
        """Return the id of a term that rules mention: there are few of them, asked for often."""
        found = self._constants.get(term)
        if found is None:
            found = self.dictionary.encode(term)
            self._mentioned[found] = term
            self._constants[term] = found
        return found

    def mentioned(self, number: int) -> Term | None:
        """Return the term of an id if rules mention it."""
        return self._mentioned.get(number)

    def buffers(self, size: int) -> tuple[int, int]:
        """Return where the two output buffers are that all nodes share in a thread, of so many words each."""
        found: tuple[int, int] | None = getattr(self._buffers, "at", None)
        if found is None:
            pair = self._buffers.pair = (np.empty(size, np.int32), np.empty(size, np.int32))
            found = self._buffers.at = MEMORY.address(pair[0]), MEMORY.address(pair[1])
        return found


class Reader(Protocol):
    """Somebody who will look at tables later, unless they change before."""

    def look_before(self, changing: set[int]) -> None:
        """Look now, if some tables, by identity, are among those to look at."""


class Database:
    """The tables of one version, and the terms in them."""

    def __init__(self, terms: TermSpace | None = None, explicit: Segment | None = None) -> None:
        """Start with explicit facts only."""
        self.terms = terms or TermSpace()
        self.explicit = explicit or Segment()
        self.segments: dict[frozenset[str], Segment] = {}
        self._owners: dict[Relation, list[Segment]] = {}
        self._named: dict[str, list[Relation]] = {}
        self._unnamed: list[Relation] = []
        self._classes: set[Relation] = set()
        self._readers: WeakSet[Reader] = WeakSet()
        self.show(self.explicit)

    @property
    def dictionary(self) -> Dictionary:
        """The terms."""
        return self.terms.dictionary

    def keep_for(self, reader: Reader) -> None:
        """Tell a reader before tables change that it has not looked at yet."""
        self._readers.add(reader)

    def release(self, reader: Reader) -> None:
        """Tell a reader no more."""
        self._readers.discard(reader)

    def before_changes(self, tables: Iterable[Table]) -> None:
        """Let those look who want to look at some tables before they change."""
        if self._readers:
            changing = {id(table) for table in tables}
            for reader in list(self._readers):
                reader.look_before(changing)

    def beside(self, segment: Segment) -> Database:
        """Return a store that also shows a segment of a query's own; this one does not."""
        both = Database(self.terms, segment)
        both._owners |= {relation: list(owners) for relation, owners in self._owners.items()}
        both._classes |= self._classes
        return both

    def add_segment(self, rules: frozenset[str], segment: Segment) -> None:
        """Make a node's segment visible."""
        self.segments[rules] = segment
        self.show(segment)

    def remove_segment(self, rules: frozenset[str]) -> None:
        """Let go of the segment of a node."""
        segment = self.segments.pop(rules)
        for relation in segment.tables:
            self._owners[relation] = [one for one in self._owners[relation] if one is not segment]

    def show(self, segment: Segment) -> None:
        """Let a segment's tables be seen, those too that it got since it was shown last."""
        for relation in segment.tables:
            owners = self._owners.get(relation)
            if owners is None:
                owners = self._owners[relation] = []
                self._unnamed.append(relation)
            if not any(one is segment for one in owners):
                owners.append(segment)
            if relation.member_of != NO_CLASS:
                self._classes.add(relation)

    def filled_by(self, head: Atom, *, pairs: bool) -> Relation:
        """Return the relation whose table a node fills with a head; `pairs` if all classes are in one."""
        relation = Relation(head.relation, len(head.args))
        wanted = head.args[-1] if relation == TYPED and not pairs else None
        if wanted is None or isinstance(wanted, Variable):
            return relation
        return Relation(RDF_TYPE, 1, self.terms.constant(wanted))

    def relations(self, atom: Atom) -> list[Relation]:
        """Return the relations whose rows may match an atom."""
        if atom.relation != RDF_TYPE or len(atom.args) != 2:
            return [Relation(atom.relation, len(atom.args))]
        wanted = atom.args[1]
        if isinstance(wanted, Variable):
            return [*self._classes, TYPED]
        return [Relation(RDF_TYPE, 1, self.terms.constant(wanted)), TYPED]

    def outside(self, atom: Atom) -> list[TableView]:
        """Return the tables of all owners so far whose rows may match an atom."""
        owners = self._owners
        return [
            TableView(segment.tables[relation], relation.member_of)
            for relation in self.relations(atom)
            for segment in owners.get(relation, ())
            if len(segment.tables[relation])
        ]

    def inside(self, segment: Segment, atom: Atom) -> list[TableView]:
        """Return the tables of a segment under way whose rows may match an atom."""
        relations = self.relations(atom)
        if atom.relation == RDF_TYPE and len(atom.args) == 2:
            any_class = is_any_class(atom)
            relations = [
                r for r in segment.tables if r in relations or (any_class and r.member_of != NO_CLASS)
            ]
        return [TableView(segment.tables[r], r.member_of) for r in relations if r in segment.tables]

    def visible(self) -> Mapping[Relation, list[Table]]:
        """Return all tables that hold something, by relation."""
        found = {
            relation: [segment.tables[relation] for segment in owners if len(segment.tables[relation])]
            for relation, owners in self._owners.items()
        }
        return {relation: tables for relation, tables in found.items() if tables}

    def stated_names(self) -> set[str]:
        """Return the names of the predicates that explicit facts have."""
        return {
            relation.name if relation.member_of == NO_CLASS else self.predicate(relation).name
            for relation, table in self.explicit.tables.items()
            if table
        }

    def filled(self) -> Iterator[Relation]:
        """Yield the relations that have rows."""
        for relation, owners in self._owners.items():
            for segment in owners:
                if segment.tables[relation]:
                    yield relation
                    break

    def owners(self, relation: Relation) -> Sequence[Segment]:
        """Return the segments that have a table of a relation."""
        return self._owners.get(relation, ())

    def counts(self, segments: Iterable[Segment]) -> dict[Predicate, int]:
        """Count the distinct facts of each predicate over some segments."""
        tables: dict[Relation, list[Table]] = {}
        for segment in segments:
            for relation, table in segment.tables.items():
                if len(table):
                    tables.setdefault(relation, []).append(table)
        typed = [table.rows for table in tables.pop(TYPED, ())]
        if typed:
            # Facts of some class are spread over both kinds of tables: count them class by class.
            for relation in [r for r in tables if r.name == RDF_TYPE]:
                rows = np.concatenate([table.rows for table in tables.pop(relation)])
                typed.append(np.insert(rows, 1, relation.member_of, axis=1))
        found: dict[Predicate, int] = {}
        for relation, group in tables.items():
            # Classes that are no IRIs are one predicate together.
            predicate = self.predicate(relation)
            found[predicate] = found.get(predicate, 0) + count_distinct(group)
        if typed:
            pairs = np.unique(np.concatenate(typed), axis=0)
            for member_of, count in zip(*np.unique(pairs[:, 1], return_counts=True), strict=True):
                predicate = self.predicate(Relation(RDF_TYPE, 1, int(member_of)))
                found[predicate] = found.get(predicate, 0) + int(count)
        return found

    def explicit_predicates(self, names: Collection[str]) -> Iterator[Predicate]:
        """Yield the predicates of some names that explicit facts have."""
        for relation in self._unnamed:
            self._named.setdefault(self.predicate(relation).name, []).append(relation)
        self._unnamed.clear()
        stated = self.explicit.tables
        for relation in (one for name in names for one in self._named.get(name, ())):
            if relation in stated and len(stated[relation]):
                yield self.predicate(relation)

    def predicate(self, relation: Relation) -> Predicate:
        """Return the predicate of a relation; it stands for a class where it holds its members."""
        found = self.terms.predicates.get(relation)
        if found is None:
            found = Predicate(relation.name, relation.arity)
            if relation.member_of != NO_CLASS:
                member_of = self.dictionary.decode(relation.member_of)
                # A class that is no IRI is no predicate of its own.
                found = (
                    Predicate(member_of.value, 1) if isinstance(member_of, IRI) else Predicate(RDF_TYPE, 2)
                )
            self.terms.predicates[relation] = found
        return found

    def facts(self, segment: Segment) -> Iterator[Fact]:
        """Yield a segment's facts."""
        for relation, table in segment.tables.items():
            yield from self.facts_of(relation, table.rows)

    def facts_of(self, relation: Relation, rows: Ids) -> Iterator[Fact]:
        """Yield rows of a relation as facts."""
        decode = self.dictionary.decode
        terms = {number: decode(number) for number in np.unique(rows).tolist()}
        behind = (decode(relation.member_of),) if relation.member_of != NO_CLASS else ()
        for row in rows.tolist():
            yield Fact(relation.name, (*(terms[n] for n in row), *behind))


def by_class(relation: Relation, rows: Ids) -> Iterator[tuple[Relation, Ids]]:
    """Yield rows with those of `rdf:type` as a whole dealt out to their classes."""
    if relation != TYPED:
        yield relation, rows
        return
    for one in np.unique(rows[:, 1]).tolist():
        yield Relation(RDF_TYPE, 1, one), rows[rows[:, 1] == one][:, :1]


def in_pairs(heads: Iterable[Atom]) -> bool:
    """Whether a node with these heads keeps the members of all classes in one table of pairs."""
    return any(map(is_any_class, heads))


def is_any_class(atom: Atom) -> bool:
    """Whether an atom matches the members of any class."""
    return atom.relation == RDF_TYPE and len(atom.args) == 2 and isinstance(atom.args[1], Variable)
