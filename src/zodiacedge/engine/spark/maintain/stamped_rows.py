"""The rows that maintenance by stamps looks up, with what they were before a change and are after it.

A task reads the rows of a few keys by the indexes of files, as its joins ask for them. For each row it knows
whether another owner has it before and after the change, and the stamp that the node gave it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.spark.cluster.task_files import rows_read
from zodiacedge.engine.spark.storage.blocks import BlockReader
from zodiacedge.engine.spark.storage.files import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.embedded.types import Flags, Ids, Keys
    from zodiacedge.engine.spark.storage.embedded_tables import Translation
    from zodiacedge.engine.spark.storage.files import DataFile, Relation, SignedFiles

    Columns = list[Keys]

NEVER = np.int32(np.iinfo(np.int32).max)
"""The stamp of a row that the node does not derive."""
_CALLS = 16
# Of a block most rows are not among those that are looked up: it costs as much as one of so many of them.
_PASSED_OVER = 8
# A sorted piece of a column is merged with the one before it unless that has so many times its rows.
_LARGER = 8


class TooMuchError(Exception):
    """The change leads to more rows than are worth looking up."""


class View(Enum):
    """The rows that a join sees, and how early it takes them to be derived."""

    EITHER = "before the change or after it"
    AFTER = "after the change, as far as it is known"
    BOTH = "before the change and after it"


class Source(NamedTuple):
    """The files of a relation: those of other owners before and after the change, and the node's own."""

    relation: Relation
    before: tuple[SignedFiles, ...]
    after: tuple[SignedFiles, ...]
    own: SignedFiles


@dataclass
class Budget:
    """What a task may read, and how long it may take."""

    rows: int
    seconds: float
    _end: float = field(init=False)
    _calls: int = 0

    def __post_init__(self) -> None:
        """Start the clock."""
        self._end = time.thread_time() + self.seconds

    def take(self, rows: int) -> None:
        """Count rows that are read; raise if the change is no small one."""
        self.rows -= rows
        self._calls += 1
        # Asking for the time takes longer than most of what is done in between.
        is_late = not self._calls % _CALLS and time.thread_time() > self._end
        if self.rows < 0 or is_late:
            raise TooMuchError


@dataclass
class KeyedFiles:
    """Reads the rows of keys, by indexes where files have them."""

    budget: Budget
    _reader: BlockReader = field(default_factory=BlockReader)
    _whole: dict[str, Columns] = field(default_factory=dict)

    def rows(self, file: DataFile, relation: Relation, column: int, keys: Keys) -> Columns:
        """Return the rows of a file with one of several keys in a column, with their stamps if there are."""
        if file.path in self._whole or self.cost(file, column, len(keys)) >= file.rows:
            return _with_keys(self.all(file, relation), column, keys)
        with rows_read() as read:
            blocks = self._reader.find(file, (column,), keys[:, None])
            if blocks is None:
                raise AssertionError(column)
            found = [_with_keys(some, column, keys) for some in self._reader.columns(file, blocks)]
        nothing = [np.zeros(0, np.int64)] * (relation.width + file.stamped)
        rows = [np.concatenate(pieces) for pieces in zip(nothing, *found, strict=True)]
        self.budget.take(len(rows[0]) + read.rows // _PASSED_OVER)
        return rows

    def cost(self, file: DataFile, column: int, keys: int) -> int:
        """Return about how many rows are read for so many keys."""
        if file.path in self._whole:
            return 0
        if file.index is None:
            return file.rows
        return min(int(file.index.blocks_of_key(column) * keys) * file.index.block, file.rows)

    def all(self, file: DataFile, relation: Relation) -> Columns:
        """Return all rows of a file, which is read once."""
        if file.path not in self._whole:
            self.budget.take(file.rows)
            self._whole[file.path] = read_file(file, relation.width + file.stamped)
        return self._whole[file.path]


def _with_keys(columns: Columns, column: int, keys: Keys) -> Columns:
    """Return the rows with one of several keys in a column."""
    chosen = pc.is_in(pa.array(columns[column]), pa.array(keys)).to_numpy(zero_copy_only=False)
    return [values[chosen] for values in columns]


class Rows:
    """The rows of one relation that were looked up so far; those that no owner has may be among them."""

    def __init__(self, source: Source, translation: Translation, files: KeyedFiles) -> None:
        """Start with no rows."""
        self.source = source
        self.relation = source.relation
        self.table = Table(self.relation.arity)
        self.before: Flags = np.zeros(0, np.bool_)
        """Whether another owner has a row before the change."""
        self.after: Flags = np.zeros(0, np.bool_)
        self.was: Ids = np.zeros(0, np.int32)
        """The node's stamp of a row before the change."""
        self.now: Ids = np.zeros(0, np.int32)
        self._translation = translation
        self._keyed = files
        contents = (*source.before, *source.after, source.own)
        self._files = {part.path: part for content in contents for part in content.parts if part.rows}
        self._fetched: list[Flags] = [np.zeros(0, np.bool_) for _ in range(self.relation.arity)]
        # By column: how many rows are sorted, and the sorted pieces as positions and terms.
        self._sorted: dict[int, tuple[int, list[tuple[Ids, Ids]]]] = {}

    @property
    def size(self) -> int:
        """The number of stored rows."""
        return sum(file.rows for file in self._files.values())

    def stamps(self, view: View, positions: Ids) -> Ids:
        """Return the stamps of rows as a view has them: 0 for what others have, `NEVER` for what none has."""
        if view is View.AFTER:
            return np.where(self.after[positions], np.int32(0), self.now[positions])
        before, after = self.before[positions], self.after[positions]
        if view is View.BOTH:
            return np.where(before & after, np.int32(0), NEVER)
        return np.where(before | after, np.int32(0), self.was[positions])

    @property
    def visible(self) -> tuple[Flags, Flags]:
        """Whether each row is a fact before the change, and after it."""
        return self.before | (self.was < NEVER), self.after | (self.now < NEVER)

    def positions(self, rows: Ids) -> Ids:
        """Return the positions of rows, which are looked up."""
        positions = self.table.positions(rows)
        missing = rows[positions < 0]
        if len(missing):
            wanted = Table(self.relation.arity)
            wanted.insert(missing)
            missing = wanted.rows
            column = self.cheapest({n: missing[:, n] for n in range(missing.shape[1])})
            unread = missing[~self._known(column, missing[:, column])]
            if len(unread):
                pieces = self._read(column, np.unique(unread[:, column]))
                kept = {path: (found, wanted.mask(found), stamps) for path, (found, stamps) in pieces.items()}
                self._add({path: (found[mask], stamps[mask]) for path, (found, mask, stamps) in kept.items()})
            # Those that were not found are rows that no owner has.
            self._add({"": (missing, np.zeros(len(missing), np.int32))})
            positions = self.table.positions(rows)
        return positions

    def fetch(self, column: int, ids: Ids) -> None:
        """Look up all rows with some terms in a column."""
        new = np.unique(ids[~self._known(column, ids)])
        if len(new):
            self._add(self._read(column, new))
            self._fetched[column][new] = True

    def all_positions(self) -> Ids:
        """Look up all rows, which should be few; return their positions."""
        pieces = {
            path: self._ids(file, self._keyed.all(file, self.relation)) for path, file in self._files.items()
        }
        self._add(pieces)
        return np.arange(len(self.table), dtype=np.int32)

    def pieces(self, column: int) -> list[tuple[Ids, Ids]]:
        """Return the positions of all rows, sorted by the term in a column, and these terms, in pieces."""
        first, pieces = self._sorted.get(column, (0, []))
        if first < len(self.table):
            pieces = list(pieces)
            while pieces and (len(self.table) - first) * _LARGER > len(pieces[-1][0]):
                first -= len(pieces.pop()[0])
            terms = self.table.rows[first:, column]
            order = np.argsort(terms, kind="stable")
            pieces.append(((order + first).astype(np.int32), terms[order]))
            self._sorted[column] = len(self.table), pieces
        return pieces

    def cheapest(self, terms: Mapping[int, Ids]) -> int:
        """Return the column by which rows are looked up for the least."""
        if len(terms) == 1:
            return next(iter(terms))

        def cost(column: int) -> tuple[int, int]:
            ids = terms[column]
            unread = len(np.unique(ids[~self._known(column, ids)]))
            if not unread:
                return 0, len(np.unique(ids))
            files = self._files.values()
            return sum(self._keyed.cost(file, column, unread) for file in files), unread

        return min(terms, key=cost)

    def _known(self, column: int, ids: Ids) -> Flags:
        flags = self._fetched[column]
        count = len(self._translation.dictionary)
        if len(flags) < count:
            flags = self._fetched[column] = np.concatenate((flags, np.zeros(count - len(flags), np.bool_)))
        return flags[ids]

    def _read(self, column: int, ids: Ids) -> dict[str, tuple[Ids, Ids]]:
        """Return the rows with terms in a column, and their stamps, by file."""
        keys = self._translation.keys(ids)
        pieces = {}
        for path, file in self._files.items():
            columns = self._keyed.rows(file, self.relation, column, keys)
            if len(columns[0]):
                pieces[path] = self._ids(file, columns)
        return pieces

    def _ids(self, file: DataFile, columns: Columns) -> tuple[Ids, Ids]:
        """Return the rows in columns of a file, and their stamps."""
        arity = self.relation.arity
        stamps = columns[arity] if file.stamped else np.zeros(len(columns[0]))
        return self._translation.rows(columns[:arity], arity), stamps.astype(np.int32)

    def _add(self, pieces: Mapping[str, tuple[Ids, Ids]]) -> None:
        """Add rows of files, all that there are of each."""
        first = len(self.table)
        for rows, _ in pieces.values():
            self.table.insert(rows)
        count = len(self.table) - first
        if not count:
            return
        places = {path: self.table.positions(rows) - first for path, (rows, _) in pieces.items()}

        def held(content: SignedFiles) -> Ids:
            stamps = np.full(count, NEVER, np.int32)
            for plus, file in content.layers:
                if file.path in places:
                    fresh = places[file.path] >= 0
                    given = pieces[file.path][1][fresh]
                    stamps[places[file.path][fresh]] = given if plus else NEVER
            return stamps

        before, after = (
            np.logical_or.reduce([np.zeros(count, np.bool_), *(held(content) < NEVER for content in side)])
            for side in (self.source.before, self.source.after)
        )
        own = held(self.source.own)
        self.before, self.after = np.append(self.before, before), np.append(self.after, after)
        self.was, self.now = np.append(self.was, own), np.append(self.now, own)
