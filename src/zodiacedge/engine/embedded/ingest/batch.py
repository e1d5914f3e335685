"""Facts that a change inserts or deletes, as rows of term ids, and their delta on a database.

Terms are added to the dictionary at once; terms of a refused change are not state, and are reclaimed later.
Facts of N-Triples, N-Quads, CSV, TSV, Parquet, Arrow and of tables in memory never become Python objects;
those of other formats do, a batch at a time. Where Numba is missing, tables are read row by row, which is
quicker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.embedded.storage.relation import Relation
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.extras import need
from zodiacedge.io import columns_of_table, facts_of_table
from zodiacedge.io.read import column_batches, fact_batches
from zodiacedge.io.sources import Format
from zodiacedge.language.ast import Variable
from zodiacedge.language.printer import format_atom
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.io import Load
    from zodiacedge.io.formats.lines import FileReading
    from zodiacedge.language.ast import Atom, Fact, Predicate
    from zodiacedge.terms import Term


# Missing facts among which an example is chosen.
_MOST_EXAMPLES = 1000


@dataclass(frozen=True, slots=True)
class _TableRows:
    """Rows of a file that is a table, and its relation."""

    relation: str
    rows: Ids

    def __len__(self) -> int:
        return len(self.rows)


def _of_relation(relation: str, batches: Iterable[list[Fact] | Ids]) -> Iterator[list[Fact] | _TableRows]:
    for batch in batches:
        yield batch if isinstance(batch, list) else _TableRows(relation, batch)


@dataclass(slots=True, eq=False, weakref_slot=True)
class EmbeddedBatch:
    """Facts to insert, or facts to delete, of one change."""

    store: Database
    _rows: dict[Relation, list[Ids]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the ids of the facts as long as the batch lives."""
        self.store.terms.add_holder(self)

    def held_ids(self) -> Iterator[Ids]:
        """Yield the ids of the facts."""
        for relation, pieces in self._rows.items():
            yield np.array([relation.member_of], np.int32)
            yield from pieces

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts."""
        facts = list(facts)
        if not facts:
            return
        terms = (term for fact in facts for term in fact.args)
        numbers = iter(self.store.dictionary.encode_all(terms).tolist())
        flat: dict[Relation, list[int]] = {}
        for fact in facts:
            ids = list(islice(numbers, len(fact.args)))
            relation = Relation(fact.relation, len(ids))
            if fact.relation == RDF_TYPE and len(ids) == 2:
                relation = Relation.of_class(ids.pop())
            flat.setdefault(relation, []).extend(ids or [0])
        for relation, ids in flat.items():
            rows = np.array(ids, np.int32).reshape(-1, max(relation.arity, 1))
            self.add_rows(relation, rows[:, : relation.arity])

    def add_rows(self, relation: Relation, rows: Ids) -> None:
        """Add rows of a relation."""
        self._rows.setdefault(relation, []).append(rows)

    def load(self, load: Load) -> None:
        """Add the facts of files."""
        # Changes run while the readers of files hold ids.
        with self.store.terms.held():
            for batch in load.batches(self._read):
                if isinstance(batch, list):
                    self.add(batch)
                elif isinstance(batch, _TableRows):
                    self.add_table_rows(batch.relation, batch.rows)
                else:
                    self.add_triples(batch)

    def _read(self, reading: FileReading) -> Iterator[list[Fact] | Ids] | Iterator[list[Fact] | _TableRows]:
        form, dictionary = reading.source.format, self.store.dictionary
        if form in {Format.NTRIPLES, Format.NQUADS}:
            from zodiacedge.engine.embedded.ingest.ntriples.reader import triple_batches  # noqa: PLC0415 - many kernels

            return triple_batches(reading, dictionary)
        if not COMPILED:
            return fact_batches(reading)
        if form in {Format.CSV, Format.TSV}:
            from zodiacedge.engine.embedded.ingest.tables.tabular import row_batches  # noqa: PLC0415 - many kernels

            return _of_relation(reading.source.relation, row_batches(reading, dictionary))
        if form in {Format.PARQUET, Format.ARROW}:
            return _of_relation(reading.source.relation, self._rows_of(column_batches(reading)))
        return fact_batches(reading)

    def add_table(self, table: pa.Table, relation: str) -> None:
        """Add the rows of an Arrow table as facts of a relation; raise if a row is no fact."""
        if not COMPILED:
            self.add(facts_of_table(table, relation))
            return
        for batch in self._rows_of(columns_of_table(table, relation)):
            if isinstance(batch, list):
                self.add(batch)
            else:
                self.add_table_rows(relation, batch)

    def _rows_of(self, batches: Iterable[list[Fact] | pa.RecordBatch]) -> Iterator[list[Fact] | Ids]:
        need("tables", "a table")
        from zodiacedge.engine.embedded.ingest.tables.arrow_columns import rows_of_batch  # noqa: PLC0415 - many kernels

        for batch in batches:
            yield batch if isinstance(batch, list) else rows_of_batch(self.store.dictionary, batch)

    def add_table_rows(self, name: str, rows: Ids) -> None:
        """Add the rows of a table: one column is a class, and `rdf:type` has a class in each row."""
        width = rows.shape[1]
        if width == 1:
            self.add_rows(Relation.of_class(self.store.dictionary.encode(IRI(name))), rows)
        elif width == 2 and name == RDF_TYPE:
            for number in np.unique(rows[:, 1]).tolist():
                self.add_rows(Relation.of_class(number), rows[rows[:, 1] == number, :1])
        else:
            self.add_rows(Relation(name, width), rows)

    def add_triples(self, triples: Ids) -> None:
        """Add triples as rows of subject, predicate and object."""
        from zodiacedge.engine.embedded.ingest.ntriples.reader import group_triples  # noqa: PLC0415 - many kernels

        dictionary = self.store.dictionary
        groups = group_triples(triples, dictionary)
        for name, rows in groups.predicates.items():
            predicate = dictionary.decode(name)
            if isinstance(predicate, IRI):
                self.add_rows(Relation(predicate.value, 2), rows)
        for name, rows in groups.classes.items():
            self.add_rows(Relation.of_class(name), rows)

    def merge(self, other: EmbeddedBatch) -> None:
        """Add the facts of another batch."""
        if other.store is not self.store:
            # Its ids are those of another dictionary.
            hint = "load them again there: with kb.change() as c: c.load(…)"
            raise UsageProblem(Diagnostic("U024", "facts were loaded for another knowledge base", hint))
        for relation, arrays in other._rows.items():
            self._rows.setdefault(relation, []).extend(arrays)

    def predicates(self) -> frozenset[Predicate]:
        """Return the predicates of the facts."""
        return frozenset(map(self.store.predicate, self._rows))

    def size(self) -> int:
        """Return the number of distinct facts."""
        return len(self.distinct())

    def facts(self, name: str | None = None) -> Iterator[Fact]:
        """Yield the distinct facts, all or those of a predicate's name."""
        for relation, table in self.distinct().tables.items():
            if name is None or self.store.predicate(relation).name == name:
                yield from self.store.facts_of(relation, table.rows)

    def without_older(
        self, name: str, position: int, moment: datetime
    ) -> tuple[EmbeddedBatch, EmbeddedBatch]:
        """Return the batch without facts of a predicate whose argument is an earlier moment, and these."""

        def are_older(relation: Relation, rows: Ids) -> NDArray[np.bool_] | None:
            if position > rows.shape[1] or self.store.predicate(relation).name != name:
                return None
            return self.store.terms.are_earlier(rows[:, position - 1], moment)

        return self._without(are_older)

    def without_subjects(self, subjects: Collection[Term]) -> tuple[EmbeddedBatch, EmbeddedBatch]:
        """Return the batch without the facts whose first argument is one of some terms, and these."""
        wanted = [number for number in map(self.store.dictionary.find, subjects) if number >= 0]

        def are_about(_: Relation, rows: Ids) -> NDArray[np.bool_] | None:
            return np.isin(rows[:, 0], wanted) if rows.shape[1] and wanted else None

        return self._without(are_about)

    def _without(
        self, concerned: Callable[[Relation, Ids], NDArray[np.bool_] | None]
    ) -> tuple[EmbeddedBatch, EmbeddedBatch]:
        kept, dropped = EmbeddedBatch(self.store), EmbeddedBatch(self.store)
        for relation, arrays in self._rows.items():
            for rows in arrays:
                those = concerned(relation, rows)
                if those is None or not those.any():
                    kept.add_rows(relation, rows)
                    continue
                dropped.add_rows(relation, rows[those])
                if not those.all():
                    kept.add_rows(relation, rows[~those])
        return kept, dropped

    def distinct(self) -> Segment:
        """Return the facts, without duplicates."""
        segment = Segment()
        for relation, arrays in self._rows.items():
            if len(arrays) == 1 and len(arrays[0]) == 1:
                # The usual case of a small change.
                segment.tables[relation] = Table.of(arrays[0])
                continue
            table = segment.table(relation)
            table.reserve(sum(map(len, arrays)))
            for rows in arrays:
                table.insert(rows)
            table.trim()
        return segment


@dataclass(frozen=True)
class EmbeddedFactDelta:
    """The effective delta of facts to insert and to delete, on the explicit facts of a database."""

    store: Database
    add: Segment
    remove: Segment

    @cached_property
    def inserted(self) -> Mapping[Relation, Ids]:
        """The rows to insert that are not explicit yet."""
        return dict(_filtered(self.add, self.store.explicit, present=False))

    @cached_property
    def deleted(self) -> Mapping[Relation, Ids]:
        """The rows to delete that are explicit and are not among the rows to insert."""
        deleted = dict(_filtered(self.remove, self.store.explicit, present=True))
        for relation, rows in deleted.items():
            inserted = self.add.tables.get(relation)
            if inserted is not None:
                deleted[relation] = inserted.filter(rows, present=False)
        return {relation: rows for relation, rows in deleted.items() if len(rows)}

    @cached_property
    def added(self) -> int:
        """The number of facts inserted."""
        return sum(map(len, self.inserted.values()))

    @cached_property
    def removed(self) -> int:
        """The number of facts deleted."""
        return sum(map(len, self.deleted.values()))

    @property
    def idle(self) -> int:
        """The number of facts to insert that are explicit already."""
        return len(self.add) - self.added

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """The number of facts to delete that are not explicit, and an example."""
        if len(self.remove) == self.removed:
            return 0, None
        rows = dict(_filtered(self.remove, self.store.explicit, present=False))
        facts = [f for relation, r in rows.items() for f in self.store.facts_of(relation, r[:_MOST_EXAMPLES])]
        return sum(map(len, rows.values())), min(facts, key=format_atom, default=None)

    def matching(self, atom: Atom, most: int | None = None) -> Iterator[Fact]:
        """Yield the explicit facts of the next version that are instances of an atom, at most so many."""
        find = self.store.dictionary.find
        ids = [arg if isinstance(arg, Variable) else find(arg) for arg in atom.args]
        if -1 in ids:
            return
        tables = self.store.explicit.tables
        for name in _tables_of(atom.relation, ids, {**tables, **self.inserted}):
            instances = [self._kept(name, _instances(name, tables[name].rows, ids))] if name in tables else []
            instances += [_instances(name, self.inserted[name], ids)] if name in self.inserted else []
            for rows in instances:
                yield from self.store.facts_of(name, rows[:most])
                most = None if most is None else max(most - len(rows), 0)

    def holds(self, term: Term) -> bool:
        """Whether an explicit fact of the next version has this term as an argument."""
        number = self.store.dictionary.find(term)
        if number < 0:
            return False
        return any(
            len(self._kept(name, rows_with(name, table.rows, number)))
            for name, table in self.store.explicit.tables.items()
        ) or any(len(rows_with(name, rows, number)) for name, rows in self.inserted.items())

    def _kept(self, relation: Relation, rows: Ids) -> Ids:
        """Return the explicit rows that are not deleted."""
        if relation not in self.deleted:
            return rows
        return Table.of(self.deleted[relation]).filter(rows, present=False)


def _filtered(segment: Segment, other: Segment, *, present: bool) -> Iterator[tuple[Relation, Ids]]:
    """Yield the rows of a segment that are in another segment, or those that are not."""
    for relation, table in segment.tables.items():
        existing = other.tables.get(relation)
        if existing is not None:
            rows = existing.filter(table.rows, present=present)
        else:
            rows = table.rows[:0] if present else table.rows
        if len(rows):
            yield relation, rows


def _tables_of(
    relation: str, ids: Sequence[int | Variable], tables: Mapping[Relation, object]
) -> list[Relation]:
    """Return the tables that may hold instances of an atom, whose terms are given by their ids."""
    if relation != RDF_TYPE or len(ids) != 2:
        name = Relation(relation, len(ids))
    elif isinstance(ids[1], Variable):
        return [name for name in tables if name.is_class]
    else:
        name = Relation.of_class(ids[1])
    return [name] if name in tables else []


def _instances(relation: Relation, rows: Ids, ids: Sequence[int | Variable]) -> Ids:
    """Return the rows of a table that are instances of an atom, whose terms are given by their ids."""
    columns: list[Ids | int] = list(rows.T)
    if relation.is_class:
        columns.append(relation.member_of)
    matches = np.ones(len(rows), np.bool_)
    first: dict[Variable, Ids | int] = {}
    for column, arg in zip(columns, ids, strict=True):
        matches &= column == (first.setdefault(arg, column) if isinstance(arg, Variable) else arg)
    return rows[matches]


def rows_with(relation: Relation, rows: Ids, term: int) -> Ids:
    """Return the rows of a relation that hold a term, as an argument or as their class."""
    return rows if relation.member_of == term else rows[(rows == term).any(axis=1)]
