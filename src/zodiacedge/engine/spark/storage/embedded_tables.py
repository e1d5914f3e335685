"""Translation between files of fingerprints and tables of the embedded engine, inside one task.

If rules use values, the terms of the fingerprints are loaded into the task's dictionary. If rules only join,
the fingerprints themselves are encoded as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.embedded.storage.segment import Segment as Tables
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.terms.term_space import TermSpace as TableTerms
from zodiacedge.engine.spark.storage.files import DataFile, Relation, SignedFiles, read_file
from zodiacedge.engine.spark.storage.terms import SCHEMA, columns_of, encode_terms
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Negation,
    Now,
    Unary,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from zodiacedge.engine.embedded.types import Ids, Keys
    from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles
    from zodiacedge.language.ast import Conjunct, Expression, Rule
    from zodiacedge.terms import Term

    Columns = list[Keys]
    Layers = tuple[tuple[bool, Columns], ...]


def needs_values(body: Iterable[Conjunct]) -> bool:
    """Whether a body uses the values of terms, not only their identity."""
    return any(isinstance(c, Comparison | Binding | Aggregate) for c in body)


def constants(rule: Rule) -> Iterator[Term]:
    """Yield the terms in a rule."""
    yield from mentioned((rule.head, *rule.body))


def mentioned(nodes: Iterable[Conjunct | Expression]) -> Iterator[Term]:
    """Yield the terms in conjuncts and expressions."""
    for node in nodes:
        match node:
            case Variable() | Now():
                continue
            case Atom(args=args) | Call(args=args):
                yield from mentioned(args)
            case Negation(atom=inner) | Unary(operand=inner):
                yield from mentioned((inner,))
            case Comparison(left=left, right=right) | Binary(left=left, right=right):
                yield from mentioned((left, right))
            case Binding(expression=expression):
                yield from mentioned((expression,))
            case Aggregate(body=body):
                yield from mentioned(body)
            case _:
                yield node


class _FingerprintSpace(TableTerms):
    """A term space that encodes constants by their fingerprints, like all other terms."""

    def __init__(self, keys: Mapping[Term, int]) -> None:
        super().__init__()
        self._keys = keys
        self._seen: dict[int, Term] = {}

    def constant(self, term: Term) -> int:
        number = int(self.dictionary.encode_integers(np.array([self._keys[term]], np.int64))[0])
        self._seen[number] = term
        return number

    def mentioned(self, number: int) -> Term | None:
        return self._seen.get(number)


class Translation:
    """A mapping between fingerprints and the ids of one task's dictionary."""

    def __init__(self, keys: Mapping[Term, int], hashing: Hashing) -> None:
        """Encode the terms of rules, without values."""
        self._hashing = hashing
        self._keys = keys
        self.terms: TableTerms = _FingerprintSpace(keys)
        self._index = self.terms.dictionary
        self._ids: Ids | None = None
        self._loaded = 0
        self._fingerprints = np.zeros(0, np.int64)
        self._encode_constants()

    @property
    def dictionary(self) -> Dictionary:
        """The terms of this task."""
        return self.terms.dictionary

    def load_values(self, seen: Iterable[Keys], known: TermFiles) -> None:
        """Load the terms of the fingerprints in columns, and those of rules."""
        self.terms = TableTerms()
        self._index = Dictionary()
        for keys in seen:
            self._index.encode_integers(keys)
        mentioned_keys = np.array(list(self._keys.values()), np.int64)
        self._index.encode_integers(mentioned_keys)
        table = known.read(np.sort(self._index.payloads)) if len(self._index) else SCHEMA.empty_table()
        self._ids = np.full(len(self._index), -1, np.int32)
        self._ids[self._index.encode_integers(table["id"].to_numpy())] = encode_terms(table, self.dictionary)
        # A term that occurs only in rules is in no file yet.
        if len(mentioned_keys):
            ids = self.dictionary.encode_all(self._keys)
            self._ids[self._index.encode_integers(mentioned_keys)] = ids
        if (self._ids < 0).any():
            raise AssertionError("a fingerprint has no term")
        self._loaded = len(self.dictionary)
        self._encode_constants()

    def _encode_constants(self) -> None:
        # The source of a class atom is looked up by the term in its rule.
        for term in self._keys:
            self.terms.constant(term)

    def ids(self, keys: Keys) -> Ids:
        """Return the ids of fingerprints."""
        positions = self._index.encode_integers(keys)
        return positions if self._ids is None else self._ids[positions]

    def keys(self, ids: Ids) -> Keys:
        """Return the fingerprints of ids."""
        if self._ids is None:
            return self.dictionary.payloads[ids]
        if len(self._fingerprints) < len(self.dictionary):
            self._fingerprints = self._hashing.keys(self.dictionary)
        return self._fingerprints[ids]

    def key(self, number: int) -> int:
        """Return the fingerprint of an id."""
        return int(self.keys(np.array([number], np.int32))[0])

    def new_terms(self) -> pa.Table:
        """Return the terms that this task created."""
        if self._ids is None or len(self.dictionary) == self._loaded:
            return SCHEMA.empty_table()
        return columns_of(self.dictionary, self._hashing, self._loaded)

    def rows(self, columns: Columns, arity: int) -> Ids:
        """Return columns of fingerprints as rows of ids."""
        if not arity:
            return np.zeros((len(columns[0]), 0), np.int32)
        return np.stack([self.ids(column) for column in columns], axis=1)

    def columns(self, name: TableName, rows: Ids) -> Columns:
        """Return rows of a table as columns of fingerprints; those of a class get a column for it."""
        if name.is_class:
            classes = np.full(len(rows), self.key(name.member_of), np.int64)
            return [self.keys(rows[:, 0]), classes]
        if not name.arity:
            return [np.zeros(len(rows), np.int64)]
        keys = self.keys(np.ascontiguousarray(rows).ravel()).reshape(rows.shape)
        return [keys[:, n] for n in range(name.arity)]

    def tables(
        self, relation: Relation, rows: Ids, *, whole: bool = False
    ) -> Iterator[tuple[TableName, Ids]]:
        """Yield the tables of a relation's rows: for `rdf:type` one per class, unless `whole`."""
        if not relation.typed or whole:
            yield TableName(*relation), rows
            return
        if not len(rows):
            return
        order = np.argsort(rows[:, 1], kind="stable")
        ordered = rows[order]
        names, starts = np.unique(ordered[:, 1], return_index=True)
        for name, piece in zip(names.tolist(), np.split(ordered, starts[1:]), strict=True):
            yield TableName.of_class(name), np.ascontiguousarray(piece[:, :1])


@dataclass(frozen=True)
class SignedColumns:
    """The rows of the signed files of several owners: by owner, a sign and columns per file."""

    relation: Relation
    owners: tuple[Layers, ...]

    def files(self) -> Iterator[Columns]:
        """Yield the columns of each file."""
        return (columns for layers in self.owners for _, columns in layers)

    def table(self, translation: Translation) -> Table:
        """Return the union of the owners' net rows as a table."""
        tables = [self._net(layers, translation) for layers in self.owners]
        if len(tables) == 1:
            return tables[0]
        union = Table(self.relation.arity)
        for table in tables:
            union.insert(table.rows)
        return union

    def _net(self, layers: Layers, translation: Translation) -> Table:
        table = Table(self.relation.arity)
        for plus, columns in layers:
            rows = translation.rows(columns, self.relation.arity)
            if not plus:
                table.delete(rows)
            elif len(layers) == 1:
                table.append_distinct(rows)
            else:
                table.insert(rows)
        return table


class SignedFileReader:
    """A reader of signed files that reads each file once."""

    def __init__(self) -> None:
        """Start without cached files."""
        self._files: dict[tuple[str, frozenset[int] | None], Columns] = {}
        self._reads: list[SignedColumns] = []

    def read(
        self, relation: Relation, contents: Iterable[SignedFiles], classes: frozenset[int] | None = None
    ) -> SignedColumns:
        """Read the signed files of owners; for `rdf:type`, only the rows of given classes."""
        owners = (
            tuple((plus, self._part(file, relation, classes)) for plus, file in content.layers)
            for content in contents
        )
        read = SignedColumns(relation, tuple(owners))
        self._reads.append(read)
        return read

    def _part(self, file: DataFile, relation: Relation, classes: frozenset[int] | None) -> Columns:
        key = (file.path, classes)
        if key not in self._files:
            self._files[key] = read_file(file, relation.width, classes)
        return self._files[key]

    def seen(self) -> Iterator[Keys]:
        """Yield all columns of fingerprints read so far."""
        for read in self._reads:
            if read.relation.arity:
                for columns in read.files():
                    yield from columns


def segment_of(tables: Mapping[Relation, Table], translation: Translation, *, whole: bool = False) -> Tables:
    """Return tables as a segment of the embedded engine; `whole` keeps all class members in one table."""
    segment = Tables()
    for relation, table in tables.items():
        if not relation.typed:
            segment.tables[TableName(*relation)] = table
            continue
        for name, rows in translation.tables(relation, table.rows, whole=whole):
            segment.table(name).append_distinct(rows)
    return segment
