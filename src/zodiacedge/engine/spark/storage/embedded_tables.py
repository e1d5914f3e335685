"""Between files of fingerprints and the tables of the embedded engine, inside one task.

Where rules look at values, the terms behind the fingerprints are loaded and the dictionary is a real one.
Where they only join, it need not know what its ids stand for: fingerprints are taken as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.database import NO_CLASS
from zodiacedge.engine.embedded.storage.database import Relation as TableName
from zodiacedge.engine.embedded.storage.database import Segment as Tables
from zodiacedge.engine.embedded.storage.database import TermSpace as TableTerms
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Relation, SignedFiles, read_file
from zodiacedge.engine.spark.storage.terms import columns_of, enter
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Negation,
    Unary,
    Variable,
)
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from zodiacedge.engine.embedded.types import Ids, Keys
    from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles
    from zodiacedge.language.ast import Conjunct, Expression, Rule
    from zodiacedge.terms import Term

    Columns = list[Keys]


def needs_values(body: Iterable[Conjunct]) -> bool:
    """Whether a body looks at what its terms are, and not only at which."""
    return any(isinstance(c, Comparison | Binding | Aggregate) for c in body)


def constants(rule: Rule) -> Iterator[Term]:
    """Yield the terms that a rule mentions."""
    yield from mentioned((rule.head, *rule.body))


def mentioned(nodes: Iterable[Conjunct | Expression]) -> Iterator[Term]:
    """Yield the terms that parts of a rule mention."""
    for node in nodes:
        match node:
            case Variable():
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


class _Mentioned(TableTerms):
    """Terms that rules mention go by their fingerprints, as all others do."""

    def __init__(self, keys: Mapping[Term, int]) -> None:
        super().__init__()
        self._keys = keys
        self._seen: dict[int, Term] = {}

    def constant(self, term: Term) -> int:
        found = int(self.dictionary.encode_integers(np.array([self._keys[term]], np.int64))[0])
        self._seen[found] = term
        return found

    def mentioned(self, number: int) -> Term | None:
        return self._seen.get(number)


class Translation:
    """From fingerprints to the ids of one task's dictionary, and back."""

    def __init__(self, keys: Mapping[Term, int], hashing: Hashing) -> None:
        """Start with the terms that rules mention, and know no values."""
        self._hashing = hashing
        self._keys = keys
        self.terms: TableTerms = _Mentioned(keys)
        self._index = self.terms.dictionary
        self._ids: Ids | None = None
        self._loaded = 0
        self._fingerprints = np.zeros(0, np.int64)
        self._mention()

    @property
    def dictionary(self) -> Dictionary:
        """The terms of this task."""
        return self.terms.dictionary

    def load_values(self, seen: Iterable[Keys], known: TermFiles) -> None:
        """Learn what fingerprints stand for: those that are seen, and those that rules mention."""
        self.terms = TableTerms()
        self._index = Dictionary()
        for keys in seen:
            self._index.encode_integers(keys)
        mentioned_keys = np.array(list(self._keys.values()), np.int64)
        self._index.encode_integers(mentioned_keys)
        table = known.read(np.sort(self._index.payloads))
        self._ids = np.full(len(self._index), -1, np.int32)
        self._ids[self._index.encode_integers(table["id"].to_numpy())] = enter(table, self.dictionary)
        # A term that only rules mention is in no file yet.
        if len(mentioned_keys):
            own = self.dictionary.encode_all(self._keys)
            self._ids[self._index.encode_integers(mentioned_keys)] = own
        if (self._ids < 0).any():
            raise AssertionError("a fingerprint stands for nothing")
        self._loaded = len(self.dictionary)
        self._mention()

    def _mention(self) -> None:
        # Who reads a class is found by what rules call it.
        for term in self._keys:
            self.terms.constant(term)

    def ids(self, keys: Keys) -> Ids:
        """Return the ids of fingerprints."""
        found = self._index.encode_integers(keys)
        return found if self._ids is None else self._ids[found]

    def keys(self, ids: Ids) -> Keys:
        """Return the fingerprints of ids."""
        if self._ids is None:
            return self.dictionary.payloads[ids]
        if len(self._fingerprints) < len(self.dictionary):
            self._fingerprints = self._hashing.keys(self.dictionary)
        return self._fingerprints[ids]

    def key(self, number: int) -> int:
        """Return the fingerprint of one id."""
        return int(self.keys(np.array([number], np.int32))[0])

    def new_terms(self) -> pa.Table | None:
        """Return the terms that came up in this task, if there are some."""
        if self._ids is None or len(self.dictionary) == self._loaded:
            return None
        return columns_of(self.dictionary, self._hashing, self._loaded)

    # Rows.

    def rows(self, columns: Columns, arity: int) -> Ids:
        """Return columns of fingerprints as rows of ids."""
        if not arity:
            return np.zeros((len(columns[0]), 0), np.int32)
        return np.stack([self.ids(column) for column in columns], axis=1)

    def columns(self, name: TableName, rows: Ids) -> tuple[Relation, Columns]:
        """Return rows of a table as columns of fingerprints."""
        if name.member_of != NO_CLASS:
            classes = np.full(len(rows), self.key(name.member_of), np.int64)
            return TYPED, [self.keys(rows[:, 0]), classes]
        if not name.arity:
            return Relation(name.name, 0), [np.zeros(len(rows), np.int64)]
        keys = self.keys(np.ascontiguousarray(rows).ravel()).reshape(rows.shape)
        return Relation(name.name, name.arity), [keys[:, n] for n in range(name.arity)]

    def tables(
        self, relation: Relation, rows: Ids, *, whole: bool = False
    ) -> Iterator[tuple[TableName, Ids]]:
        """Yield the tables that rows of a relation go to: members by class, unless they stay together."""
        if not relation.typed or whole:
            yield TableName(*relation), rows
            return
        if not len(rows):
            return
        order = np.argsort(rows[:, 1], kind="stable")
        ordered = rows[order]
        names, starts = np.unique(ordered[:, 1], return_index=True)
        for name, piece in zip(names.tolist(), np.split(ordered, starts[1:]), strict=True):
            yield TableName(RDF_TYPE, 1, name), np.ascontiguousarray(piece[:, :1])


@dataclass(frozen=True)
class Read:
    """A content that was read: columns per layer."""

    relation: Relation
    layers: tuple[tuple[bool, Columns], ...]

    def columns(self) -> Iterator[Keys]:
        """Yield all columns of fingerprints."""
        if self.relation.arity:
            for _, columns in self.layers:
                yield from columns

    def table(self, translation: Translation) -> Table:
        """Return the rows that there are."""
        found = Table(self.relation.arity)
        for came, columns in self.layers:
            rows = translation.rows(columns, self.relation.arity)
            if not came:
                found.delete(rows)
            elif len(self.layers) == 1:
                found.append_distinct(rows)
            else:
                found.insert(rows)
        return found


class Reader:
    """Reads contents, each file once."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._files: dict[tuple[str, frozenset[int] | None], Columns] = {}
        self._reads: list[Read] = []

    def read(self, relation: Relation, content: SignedFiles, classes: frozenset[int] | None = None) -> Read:
        """Read a content; of members, those of some classes only if not of all."""
        layers = tuple((came, self._part(part, relation, classes)) for came, part in content.layers)
        found = Read(relation, layers)
        self._reads.append(found)
        return found

    def _part(self, part: DataFile, relation: Relation, classes: frozenset[int] | None) -> Columns:
        key = (part.path, classes)
        if key not in self._files:
            self._files[key] = read_file(part, relation.width, classes)
        return self._files[key]

    def seen(self) -> Iterator[Keys]:
        """Yield all columns of fingerprints that were read."""
        for read in self._reads:
            yield from read.columns()


def union(tables: Sequence[Table], arity: int) -> Table:
    """Return the rows of several tables, each once."""
    if len(tables) == 1:
        return tables[0]
    found = Table(arity)
    for table in tables:
        found.insert(table.rows)
    return found


def segment_of(given: Mapping[Relation, Table], translation: Translation, *, whole: bool = False) -> Tables:
    """Return tables of relations as a segment of the embedded engine; `whole` keeps members in one table."""
    found = Tables()
    for relation, table in given.items():
        if not relation.typed:
            found.tables[TableName(*relation)] = table
            continue
        for name, rows in translation.tables(relation, table.rows, whole=whole):
            found.table(name).append_distinct(rows)
    return found
