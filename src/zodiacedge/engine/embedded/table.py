"""A table: rows of term ids, a row-set, and indexes, each built when first asked for.

The rows and what finds them are arrays that kernels reach through the table's record in `Tables`. Rows
are distinct. A row-set that nobody asked for yet costs nothing: a module that knows its rows to be
distinct just appends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.compiled import MEMORY, words
from zodiacedge.engine.embedded.layout import (
    FULL_DENOMINATOR,
    FULL_NUMERATOR,
    I_HEAD_COUNT,
    I_HEADS,
    I_MASK,
    I_NEXT,
    I_PREVIOUS,
    I_USED,
    INDEX_WORDS,
    MOST_COLUMNS,
    MOST_INDEXES,
    T_ARITY,
    T_BITS,
    T_CAPACITY,
    T_COUNT,
    T_FIRST_INDEX,
    T_HIGH,
    T_INDEXES,
    T_LOW,
    T_ROWS,
    T_SLOT_COUNT,
    T_SLOTS,
    T_TERMS,
    TABLE_WORDS,
)
from zodiacedge.engine.embedded.rowset import fill_index, fill_slots, find_row, insert_rows, move_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ids = NDArray[np.int32]

_FIRST_ROWS = 8
_GROWTH = 1.6


class Tables:
    """The records of all tables of an engine, in one array of words."""

    def __init__(self) -> None:
        """Start with no tables."""
        self.words = words(64 * TABLE_WORDS)
        self.address = MEMORY.address(self.words)
        self._free = list(range(63, -1, -1))
        self.key = words(MOST_COLUMNS)
        self.key_address = MEMORY.address(self.key)

    def take(self) -> int:
        """Return where a new table's record starts."""
        if not self._free:
            count = len(self.words) // TABLE_WORDS
            larger = words(2 * len(self.words))
            larger[: len(self.words)] = self.words
            self.words = larger
            self.address = MEMORY.address(larger)
            self._free = list(range(2 * count - 1, count - 1, -1))
        at = self._free.pop() * TABLE_WORDS
        self.words[at : at + TABLE_WORDS] = 0
        return at

    def give_back(self, at: int) -> None:
        """Take back the record of a table that is gone."""
        self._free.append(at // TABLE_WORDS)


class Table:
    """Distinct rows of some arity."""

    def __init__(self, tables: Tables, arity: int) -> None:
        """Start with no rows."""
        self._tables = tables
        self.arity = arity
        self.at = tables.take()
        self._rows: Ids = np.zeros(_FIRST_ROWS * max(arity, 1), np.int32)
        self._slots: Ids | None = None
        self._heads: list[Ids] = []
        self._next: list[Ids] = []
        self._masks: list[int] = []
        self._bits: NDArray[np.uint8] | None = None
        record = tables.words
        record[self.at + T_ARITY] = arity
        record[self.at + T_CAPACITY] = _FIRST_ROWS
        record[self.at + T_ROWS] = MEMORY.address(self._rows)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._tables.words[self.at + T_COUNT])

    @property
    def rows(self) -> Ids:
        """The rows, as a view: one row per line."""
        return self._rows[: len(self) * self.arity].reshape(len(self), self.arity)

    @property
    def nbytes(self) -> tuple[int, int]:
        """Allocated bytes: of the rows, and of what finds them."""
        finders = [*self._heads, *self._next]
        if self._slots is not None:
            finders.append(self._slots)
        return self._rows.nbytes, sum(array.nbytes for array in finders)

    def insert(self, rows: Ids) -> int:
        """Insert rows, one per line, those that are there already left out; return how many were new."""
        before = len(self)
        self.need_rows()
        self.reserve(len(rows))
        given = np.ascontiguousarray(rows, np.int32).ravel()
        insert_rows(self._tables.address, self.at, MEMORY.address(given), len(rows), self._tables.key_address)
        self.settle()
        return len(self) - before

    def append_distinct(self, rows: Ids) -> None:
        """Append rows that are known to be new and distinct; the row-set follows when it is needed."""
        count = len(self)
        self.reserve(len(rows))
        self._rows[count * self.arity : (count + len(rows)) * self.arity] = rows.ravel()
        self.close_rows(len(rows))

    def clear(self) -> None:
        """Drop all rows; the table must have no index."""
        self._tables.words[self.at + T_COUNT] = 0
        if self._slots is not None:
            self._slots[:] = 0
        self.settle()

    def open_rows(self) -> tuple[int, int, int]:
        """Return the address of the rows, how many there are, and how many fit, for a kernel that appends."""
        return MEMORY.address(self._rows), len(self), self._capacity()

    def close_rows(self, more: int) -> None:
        """Take note of rows, new and distinct, that a kernel wrote behind the last one."""
        count = len(self)
        self._slots = None
        self._tables.words[self.at + T_SLOTS] = 0
        self._tables.words[self.at + T_COUNT] = count + more
        for number in range(len(self._masks)):
            self._fill(number, count)
        self.settle()

    def contains(self, row: Sequence[int]) -> bool:
        """Whether a row is here."""
        self.need_rows()
        self._tables.key[: self.arity] = row
        return int(find_row(self._tables.address, self.at, self._tables.key_address)) >= 0

    def mark_pairs(self, terms: int) -> None:
        """Keep a bit per pair of terms instead of a row-set, while a node fills this empty table."""
        self._bits = np.zeros((terms * terms + 7) // 8 + 1, np.uint8)
        self._tables.words[self.at + T_BITS] = MEMORY.address(self._bits)
        self._tables.words[self.at + T_TERMS] = terms

    def unmark_pairs(self) -> None:
        """Drop the bits; the row-set follows when it is needed."""
        self._bits = None
        self._tables.words[self.at + T_BITS] = 0

    def settle(self) -> None:
        """Make all rows old: the delta is empty."""
        record = self._tables.words
        record[self.at + T_LOW] = record[self.at + T_HIGH] = record[self.at + T_COUNT]

    def need_rows(self) -> None:
        """Build the row-set, unless it is there."""
        if self._slots is None:
            self._new_slots(len(self))
            fill_slots(self._tables.address, self.at)

    def need_index(self, mask: int) -> int:
        """Return the number of the index on some columns; build it, unless it is there."""
        if mask in self._masks:
            return self._masks.index(mask)
        number = len(self._masks)
        if number == MOST_INDEXES:
            message = f"a table takes at most {MOST_INDEXES} indexes"
            raise OverflowError(message)
        self._masks.append(mask)
        self._heads.append(np.zeros(16, np.int32))
        self._next.append(np.zeros(self._capacity(), np.int32))
        here = self.at + T_FIRST_INDEX + number * INDEX_WORDS
        record = self._tables.words
        record[here + I_MASK] = mask
        record[here + I_USED] = 0
        record[here + I_PREVIOUS] = 0
        record[here + I_NEXT] = MEMORY.address(self._next[number])
        self._describe_heads(number)
        record[self.at + T_INDEXES] = number + 1
        self._fill(number, 0)
        return number

    def reserve(self, more: int) -> None:
        """Make room for so many more rows, in everything that is built."""
        count = len(self)
        record = self._tables.words
        if count + more > self._capacity():
            self._resize(max(count + more, int(self._capacity() * _GROWTH)))
        if self._slots is not None and _too_full(count + more, len(self._slots)):
            self._new_slots(max(count + more, int(count * _GROWTH)))
            fill_slots(self._tables.address, self.at)
        for number in range(len(self._masks)):
            here = self.at + T_FIRST_INDEX + number * INDEX_WORDS
            used = int(record[here + I_USED])
            if _too_full(used + more, len(self._heads[number])):
                self._grow_heads(number, max(used + more, int(used * _GROWTH)))

    def trim(self) -> None:
        """Give back room that growing left over."""
        count = len(self)
        if self._capacity() > count + count // 8 + _FIRST_ROWS:
            self._resize(count + _FIRST_ROWS)
        if self._slots is not None and len(self._slots) > 2 * _slots_for(count):
            self._new_slots(count)
            fill_slots(self._tables.address, self.at)
        for number, heads in enumerate(self._heads):
            used = int(self._tables.words[self.at + T_FIRST_INDEX + number * INDEX_WORDS + I_USED])
            if len(heads) > 2 * _slots_for(used):
                self._grow_heads(number, used)

    def drop(self) -> None:
        """Give everything back; the table must not be used any more."""
        self._tables.give_back(self.at)

    def _capacity(self) -> int:
        return int(self._tables.words[self.at + T_CAPACITY])

    def _resize(self, capacity: int) -> None:
        record = self._tables.words
        self._rows = _resized(self._rows, capacity * max(self.arity, 1), len(self) * self.arity)
        record[self.at + T_ROWS] = MEMORY.address(self._rows)
        record[self.at + T_CAPACITY] = capacity
        for number, following in enumerate(self._next):
            self._next[number] = _resized(following, capacity, len(self))
            here = self.at + T_FIRST_INDEX + number * INDEX_WORDS
            record[here + I_NEXT] = MEMORY.address(self._next[number])

    def _new_slots(self, rows: int) -> None:
        self._slots = np.zeros(_slots_for(rows), np.int32)
        self._tables.words[self.at + T_SLOTS] = MEMORY.address(self._slots)
        self._tables.words[self.at + T_SLOT_COUNT] = len(self._slots)

    def _fill(self, number: int, first: int) -> None:
        while first < len(self):
            first = int(fill_index(self._tables.address, self.at, number, first))
            if first < len(self):
                here = self.at + T_FIRST_INDEX + number * INDEX_WORDS
                used = int(self._tables.words[here + I_USED])
                self._grow_heads(number, max(16, 2 * used))

    def _grow_heads(self, number: int, keys: int) -> None:
        old = self._heads[number]
        self._heads[number] = np.zeros(_slots_for(keys), np.int32)
        self._describe_heads(number)
        move_heads(self._tables.address, self.at, number, MEMORY.address(old), len(old))

    def _describe_heads(self, number: int) -> None:
        here = self.at + T_FIRST_INDEX + number * INDEX_WORDS
        self._tables.words[here + I_HEADS] = MEMORY.address(self._heads[number])
        self._tables.words[here + I_HEAD_COUNT] = len(self._heads[number])


def _slots_for(entries: int) -> int:
    return entries * FULL_DENOMINATOR // FULL_NUMERATOR + 8


def _too_full(entries: int, slots: int) -> bool:
    return entries * FULL_DENOMINATOR > slots * FULL_NUMERATOR


def _resized(array: Ids, size: int, used: int) -> Ids:
    larger = np.zeros(size, np.int32)
    larger[:used] = array[:used]
    return larger
