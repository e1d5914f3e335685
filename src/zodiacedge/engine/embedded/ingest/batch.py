"""Facts on their way into or out of a state, as rows of term ids.

Terms go into the dictionary at once: it only grows, and entries that a refused change left behind are not
state. N-Triples and N-Quads never become Python objects; other formats do, a batch at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.database import NO_CLASS, Database, Relation, Segment
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.io.read import fact_batches
from zodiacedge.io.sources import Format
from zodiacedge.language.ast import Variable
from zodiacedge.language.printer import format_atom
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.io import Load
    from zodiacedge.io.formats.lines import FileReading
    from zodiacedge.language.ast import Atom, Fact, Predicate
    from zodiacedge.terms import Term


# How many facts that are not there an example is looked for among.
_MOST_EXAMPLES = 1000


@dataclass(slots=True)
class EmbeddedBatch:
    """Facts of one change."""

    store: Database
    _rows: dict[Relation, list[Ids]] = field(default_factory=dict)

    def add(self, facts: Iterable[Fact]) -> None:
        """Take facts."""
        given = list(facts)
        if not given:
            return
        numbers = self.store.dictionary.encode_all(term for fact in given for term in fact.args).tolist()
        flat: dict[Relation, list[int]] = {}
        at = 0
        for fact in given:
            ids = numbers[at : at + len(fact.args)]
            at += len(ids)
            relation = Relation(fact.relation, len(ids))
            if fact.relation == RDF_TYPE and len(ids) == 2:
                relation = Relation(RDF_TYPE, 1, ids.pop())
            flat.setdefault(relation, []).extend(ids or [0])
        for relation, ids in flat.items():
            rows = np.array(ids, np.int32).reshape(-1, max(relation.arity, 1))
            self.add_rows(relation, rows[:, : relation.arity])

    def add_rows(self, relation: Relation, rows: Ids) -> None:
        """Take rows of a relation."""
        self._rows.setdefault(relation, []).append(rows)

    def load(self, load: Load) -> None:
        """Take the facts of files."""
        for batch in load.batches(self._read):
            if isinstance(batch, list):
                self.add(batch)
            else:
                self._add_triples(batch)

    def _read(self, one: FileReading) -> Iterator[list[Fact] | Ids]:
        if one.source.format in {Format.NTRIPLES, Format.NQUADS}:
            from zodiacedge.engine.embedded.ingest.ntriples.reader import triple_batches  # noqa: PLC0415 - many kernels

            return triple_batches(one, self.store.dictionary)
        return fact_batches(one)

    def _add_triples(self, triples: Ids) -> None:
        from zodiacedge.engine.embedded.ingest.ntriples.reader import group_triples  # noqa: PLC0415 - many kernels

        dictionary = self.store.dictionary
        groups = group_triples(triples, dictionary)
        for name, rows in groups.predicates.items():
            predicate = dictionary.decode(name)
            if isinstance(predicate, IRI):
                self.add_rows(Relation(predicate.value, 2), rows)
        for name, rows in groups.classes.items():
            self.add_rows(Relation(RDF_TYPE, 1, name), rows)

    def merge(self, other: EmbeddedBatch) -> None:
        """Take the facts of another batch."""
        if other.store is not self.store:
            # Its rows are numbers of other terms.
            hint = "load them again there: with kb.change() as c: c.load(…)"
            raise UsageProblem(Diagnostic("U024", "facts were loaded for another knowledge base", hint))
        for relation, pieces in other._rows.items():
            self._rows.setdefault(relation, []).extend(pieces)

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of the facts taken so far."""
        return frozenset(map(self.store.predicate, self._rows))

    def distinct(self) -> Segment:
        """Return the facts taken, each once."""
        found = Segment()
        for relation, pieces in self._rows.items():
            table = found.table(relation)
            table.reserve(sum(map(len, pieces)))
            for rows in pieces:
                table.insert(rows)
            table.trim()
        return found


@dataclass(frozen=True)
class EmbeddedFactDelta:
    """What facts to add and to remove come to on a store."""

    store: Database
    add: Segment
    remove: Segment

    @cached_property
    def new(self) -> Mapping[Relation, Ids]:
        """The rows to add that are not there."""
        return dict(_sifted(self.add, self.store.explicit, present=False))

    @cached_property
    def old(self) -> Mapping[Relation, Ids]:
        """The rows to remove that are there and are not added again."""
        there = dict(_sifted(self.remove, self.store.explicit, present=True))
        for relation, rows in there.items():
            again = self.add.tables.get(relation)
            if again is not None:
                there[relation] = again.sift(rows, present=False)
        return {relation: rows for relation, rows in there.items() if len(rows)}

    @property
    def added(self) -> int:
        """How many facts are new."""
        return sum(map(len, self.new.values()))

    @property
    def removed(self) -> int:
        """How many facts go."""
        return sum(map(len, self.old.values()))

    @property
    def idle(self) -> int:
        """How many facts to add are there already."""
        return len(self.add) - self.added

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """How many facts to remove are not there, and one of them."""
        if len(self.remove) == self.removed:
            return 0, None
        rows = dict(_sifted(self.remove, self.store.explicit, present=False))
        some = [f for relation, r in rows.items() for f in self.store.facts_of(relation, r[:_MOST_EXAMPLES])]
        return sum(map(len, rows.values())), min(some, key=format_atom, default=None)

    def matching(self, atom: Atom, most: int | None = None) -> Iterator[Fact]:
        """Yield the explicit facts that are instances of an atom, as they will be: all, or so many."""
        find = self.store.dictionary.find
        ids = [arg if isinstance(arg, Variable) else find(arg) for arg in atom.args]
        if -1 in ids:
            return
        tables = self.store.explicit.tables
        for name in _tables_of(atom.relation, ids, {**tables, **self.new}):
            found = [self._left(name, _instances(name, tables[name].rows, ids))] if name in tables else []
            found += [_instances(name, self.new[name], ids)] if name in self.new else []
            for rows in found:
                some = rows[:most]
                yield from self.store.facts_of(name, some)
                most = None if most is None else most - len(some)

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact will have this term as an argument."""
        number = self.store.dictionary.find(term)
        if number < 0:
            return False
        there = ((name, table.rows) for name, table in self.store.explicit.tables.items())
        return any(len(self._left(name, rows_with(name, rows, number))) for name, rows in there) or any(
            len(rows_with(name, rows, number)) for name, rows in self.new.items()
        )

    def _left(self, relation: Relation, rows: Ids) -> Ids:
        """Return those of some explicit rows that stay."""
        if relation not in self.old:
            return rows
        gone = Table(relation.arity)
        gone.insert(self.old[relation])
        return gone.sift(rows, present=False)


def _sifted(segment: Segment, among: Segment, *, present: bool) -> Iterator[tuple[Relation, Ids]]:
    for relation, table in segment.tables.items():
        there = among.tables.get(relation)
        if there is not None:
            rows = there.sift(table.rows, present=present)
        else:
            rows = table.rows[:0] if present else table.rows
        if len(rows):
            yield relation, rows


def _tables_of(
    relation: str, ids: Sequence[int | Variable], tables: Mapping[Relation, object]
) -> list[Relation]:
    """Return the tables that may hold instances of an atom, whose terms are given by their ids."""
    if relation != RDF_TYPE or len(ids) != 2:
        one = Relation(relation, len(ids))
    elif isinstance(ids[1], Variable):
        return [name for name in tables if name.name == RDF_TYPE and name.member_of != NO_CLASS]
    else:
        one = Relation(RDF_TYPE, 1, ids[1])
    return [one] if one in tables else []


def _instances(relation: Relation, rows: Ids, ids: Sequence[int | Variable]) -> Ids:
    """Return the rows of a table that are instances of an atom, whose terms are given by their ids."""
    columns: list[Ids | int] = list(rows.T)
    if relation.member_of != NO_CLASS:
        columns.append(relation.member_of)
    chosen = np.ones(len(rows), np.bool_)
    first: dict[Variable, Ids | int] = {}
    for column, one in zip(columns, ids, strict=True):
        chosen &= column == (first.setdefault(one, column) if isinstance(one, Variable) else one)
    return rows[chosen]


def rows_with(relation: Relation, rows: Ids, term: int) -> Ids:
    """Return the rows of a relation that hold a term, as an argument or as their class."""
    return rows if relation.member_of == term else rows[(rows == term).any(axis=1)]
