"""Where facts live: explicit facts and the segment of each hyper-node, behind one view per relation.

A relation is a name and an arity; the members of a class are a relation of their own, with one column.
A node that derives `rdf:type` with a variable class keeps all of its `rdf:type` facts in one table of
two columns instead. A reader sees all tables of a relation side by side; nothing is merged by copying.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.dictionary import Dictionary
from zodiacedge.engine.embedded.host import HostFunction
from zodiacedge.engine.embedded.table import Table, count_distinct
from zodiacedge.language.ast import Atom, Fact, Predicate, Variable
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from zodiacedge.engine.registry import Function, Registry

NO_CLASS = -1


class Relation(NamedTuple):
    """A table's name, its number of columns, and the class whose members it holds."""

    name: str
    arity: int
    member_of: int = NO_CLASS


@dataclass(frozen=True, slots=True)
class Part:
    """One table of a relation, as an atom sees it."""

    table: Table
    member_of: int


@dataclass(slots=True)
class Segment:
    """The tables that one owner (a node, or the explicit facts) fills."""

    tables: dict[Relation, Table] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of facts."""
        return sum(len(table) for table in self.tables.values())


class Store:
    """All tables of an engine, and its dictionary."""

    def __init__(self) -> None:
        """Start with no facts."""
        self.dictionary = Dictionary()
        self.explicit = Segment()
        self.segments: dict[frozenset[str], Segment] = {}
        self._hosts: dict[tuple[str, int, bool], tuple[Function | None, HostFunction]] = {}
        self._readable: dict[str, list[Segment]] = {}
        self._buffers: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None

    def host(self, function: str, arity: int, registry: Registry, *, registered: bool) -> HostFunction:
        """Return a function of the host with what it gave so far; one registered anew gave nothing yet."""
        key = (function, arity, registered)
        meant = registry.functions.get(function) if registered else None
        known = self._hosts.get(key)
        if known is None or known[0] is not meant:
            known = self._hosts[key] = (meant, HostFunction(function, arity, registered=registered))
        return known[1]

    def buffers(self, size: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the two output buffers that all nodes share, of so many words each."""
        if self._buffers is None:
            self._buffers = (np.empty(size, np.int32), np.empty(size, np.int32))
        return self._buffers

    def table(self, segment: Segment, relation: Relation) -> Table:
        """Return a segment's table of a relation, a new one if need be."""
        found = segment.tables.get(relation)
        if found is None:
            found = segment.tables[relation] = Table(relation.arity)
        return found

    def load(self, facts: Iterable[Fact]) -> None:
        """Add explicit facts."""
        columns: dict[Relation, list[int]] = {}
        encode = self.dictionary.encode
        for fact in facts:
            ids = [encode(term) for term in fact.args]
            relation = Relation(fact.relation, len(ids))
            if fact.relation == RDF_TYPE and len(ids) == 2:
                relation = Relation(RDF_TYPE, 1, ids.pop())
            columns.setdefault(relation, []).extend(ids or [0])
        for relation, flat in columns.items():
            rows = np.array(flat, np.int32).reshape(-1, max(relation.arity, 1))
            self.table(self.explicit, relation).insert(rows[:, : relation.arity])

    def parts(self, segment: Segment, atom: Atom) -> Iterator[Part]:
        """Yield the tables of a segment whose rows may match an atom."""
        if atom.relation != RDF_TYPE or len(atom.args) != 2:
            table = segment.tables.get(Relation(atom.relation, len(atom.args)))
            if table is not None:
                yield Part(table, NO_CLASS)
            return
        wanted = atom.args[1]
        if isinstance(wanted, Variable):
            for relation, table in segment.tables.items():
                if relation.name == RDF_TYPE:
                    yield Part(table, relation.member_of)
            return
        members = segment.tables.get(Relation(RDF_TYPE, 1, self.dictionary.encode(wanted)))
        if members is not None:
            yield Part(members, self.dictionary.encode(wanted))
        typed = segment.tables.get(Relation(RDF_TYPE, 2))
        if typed is not None:
            yield Part(typed, NO_CLASS)

    def add_segment(self, rules: frozenset[str], segment: Segment) -> None:
        """Make a node's segment visible."""
        self.segments[rules] = segment
        for name in {relation.name for relation in segment.tables}:
            self._readable.setdefault(name, []).append(segment)

    def outside(self, atom: Atom) -> list[Part]:
        """Return the tables of all owners so far whose rows may match an atom."""
        owners = (self.explicit, *self._readable.get(atom.relation, ()))
        return [part for segment in owners for part in self.parts(segment, atom)]

    def counts(self, segments: Iterable[Segment]) -> dict[Predicate, int]:
        """Count the distinct facts of each predicate over some segments."""
        tables: dict[Relation, list[Table]] = {}
        for segment in segments:
            for relation, table in segment.tables.items():
                if len(table):
                    tables.setdefault(relation, []).append(table)
        typed = [table.rows for table in tables.pop(Relation(RDF_TYPE, 2), ())]
        if typed:
            # Facts of some class are spread over both kinds of tables: count them class by class.
            for relation in [r for r in tables if r.name == RDF_TYPE]:
                rows = np.concatenate([table.rows for table in tables.pop(relation)])
                typed.append(np.insert(rows, 1, relation.member_of, axis=1))
        found = {self._predicate(relation): count_distinct(group) for relation, group in tables.items()}
        if typed:
            pairs = np.unique(np.concatenate(typed), axis=0)
            for member_of, count in zip(*np.unique(pairs[:, 1], return_counts=True), strict=True):
                predicate = self._predicate(Relation(RDF_TYPE, 1, int(member_of)))
                found[predicate] = found.get(predicate, 0) + int(count)
        return found

    def _predicate(self, relation: Relation) -> Predicate:
        if relation.member_of == NO_CLASS:
            return Predicate(relation.name, relation.arity)
        member_of = self.dictionary.decode(relation.member_of)
        # A class that is no IRI is no predicate of its own.
        return Predicate(member_of.value, 1) if isinstance(member_of, IRI) else Predicate(RDF_TYPE, 2)

    def facts(self, segment: Segment) -> Iterator[Fact]:
        """Yield a segment's facts."""
        for relation, table in segment.tables.items():
            yield from self.facts_of(relation, table.rows)

    def facts_of(self, relation: Relation, rows: NDArray[np.int32]) -> Iterator[Fact]:
        """Yield rows of a relation as facts."""
        decode = self.dictionary.decode
        terms = {number: decode(number) for number in np.unique(rows).tolist()}
        behind = (decode(relation.member_of),) if relation.member_of != NO_CLASS else ()
        for row in rows.tolist():
            yield Fact(relation.name, (*(terms[n] for n in row), *behind))
