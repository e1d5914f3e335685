"""A table: rows of term ids, a row-set, and indexes, each built when first asked for.

The rows and what finds them are arrays that kernels reach through the table's record. Rows are distinct. A
row-set that nobody asked for yet costs nothing: a module that knows its rows to be distinct just appends
them. A deleted row leaves its place to the last one, so rows have no lasting number.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage.delete_rows import delete_rows, fill_previous
from zodiacedge.engine.embedded.storage.hash_index import (
    count_runs,
    fill_index,
    fill_slots,
    find_row,
    insert_by_bits,
    insert_rows,
    locate_rows,
    mark_rows,
    move_heads,
    sift_rows,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Flags, Ids


_FIRST_ROWS = 8
# Rows that tell about how many different keys there are; where there are few, all may be different.
_SAMPLE = 1024
_SMALL = 16_384
_GROWTH = 1.6


class Scratch(threading.local):
    """Where kernels build a row, one for each thread."""

    def __init__(self) -> None:
        """Make room."""
        # One more than a row has columns: the class of a row may stand behind it.
        self.key = words(L.MOST_COLUMNS + 1)
        self.address = MEMORY.address(self.key)


SCRATCH = Scratch()


class Table:
    """Distinct rows of some arity."""

    __slots__ = (
        "_bits",
        "_heads",
        "_masks",
        "_next",
        "_previous",
        "_rows",
        "_slots",
        "arity",
        "at",
        "cells",
        "record",
    )

    def __init__(self, arity: int) -> None:
        """Start with no rows."""
        if arity > L.MOST_COLUMNS:
            # Kernels build rows in memory that is no larger. Users are told long before.
            raise ValueError(arity)
        self.arity = arity
        self.record = words(L.TABLE_WORDS)
        # The same words: one of them is read and written three times as quickly this way.
        self.cells = self.record.data
        self.at = MEMORY.address(self.record)
        self._rows: Ids = np.zeros(_FIRST_ROWS * max(arity, 1), np.int32)
        self._slots: Ids | None = None
        self._heads: list[Ids] = []
        self._next: list[Ids] = []
        self._previous: list[Ids] = []
        self._masks: list[int] = []
        self._bits: NDArray[np.uint8] | None = None
        self.cells[L.T_ARITY] = arity
        self.cells[L.T_CAPACITY] = _FIRST_ROWS
        self.cells[L.T_ROWS] = MEMORY.address(self._rows)

    @classmethod
    def of(cls, rows: Ids) -> Table:
        """Return a table of rows that are known to be distinct."""
        found = cls(rows.shape[1])
        found.append_distinct(rows)
        return found

    def __len__(self) -> int:
        """Return the number of rows."""
        count: int = self.cells[L.T_COUNT]
        return count

    @property
    def rows(self) -> Ids:
        """The rows, as a view: one row per line."""
        count = self.cells[L.T_COUNT]
        return self._rows[: count * self.arity].reshape(count, self.arity)

    @property
    def nbytes(self) -> tuple[int, int]:
        """Allocated bytes: of the rows, and of what finds them."""
        finders = [*self._heads, *self._next, *self._previous]
        if self._slots is not None:
            finders.append(self._slots)
        return self._rows.nbytes, sum(array.nbytes for array in finders)

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        capacity: int = self.cells[L.T_CAPACITY]
        return capacity

    @property
    def is_marked(self) -> bool:
        """Whether bits tell which rows are here, while a node fills the table."""
        return self._bits is not None

    @property
    def has_row_set(self) -> bool:
        """Whether the row-set is there already."""
        return self._slots is not None

    def share(self, number: int, of: int) -> Table:
        """Return a view for readers whose delta is one of several equal shares of the rows."""
        view = Table.__new__(Table)
        for name in Table.__slots__:
            setattr(view, name, getattr(self, name))
        view.record = self.record.copy()
        view.cells = view.record.data
        view.at = MEMORY.address(view.record)
        view.record[L.T_LOW] = len(self) * number // of
        view.record[L.T_HIGH] = len(self) * (number + 1) // of
        return view

    def insert_unmarked(self, rows: Ids) -> None:
        """Insert rows, those that are here left out, while bits tell which are."""
        self.reserve(len(rows))
        given = _flat(rows)
        insert_by_bits(self.at, MEMORY.address(given), len(rows))

    def insert(self, rows: Ids) -> int:
        """Insert rows, one per line, those that are there already left out; return how many were new."""
        cells, count = self.cells, len(rows)
        before = cells[L.T_COUNT]
        if self._slots is None:
            self.need_rows()
        self.reserve(count)
        given = _flat(rows)
        insert_rows(self.at, MEMORY.address(given), count, SCRATCH.address)
        after: int = cells[L.T_COUNT]
        cells[L.T_LOW] = cells[L.T_HIGH] = after
        return after - before

    def delete(self, rows: Ids) -> int:
        """Delete rows, those that are not there passed over; return how many were there."""
        before = len(self)
        self.need_rows()
        self._need_previous()
        given = _flat(rows)
        delete_rows(self.at, MEMORY.address(given), len(rows), SCRATCH.address)
        self.settle()
        return before - len(self)

    def sift(self, rows: Ids, *, present: bool) -> Ids:
        """Return those of some rows that are here, or those that are not."""
        self.need_rows()
        given = _flat(rows)
        out = np.empty(max(len(given), 1), np.int32)
        found = sift_rows(
            self.at, MEMORY.address(given), len(rows), present, MEMORY.address(out), SCRATCH.address
        )
        return out[: found * self.arity].reshape(found, self.arity)

    def mask(self, rows: Ids) -> Flags:
        """Tell of each of some rows whether it is here."""
        found = np.zeros(len(rows), np.int8)
        if len(self) and len(rows):
            self.need_rows()
            given = _flat(rows)
            mark_rows(self.at, MEMORY.address(given), len(rows), MEMORY.address(found), SCRATCH.address)
        return found.view(np.bool_)

    def places(self, rows: Ids) -> Ids:
        """Tell of each of some rows where it stands, or -1 if it is not here."""
        found = np.full(len(rows), -1, np.int32)
        if len(self) and len(rows):
            self.need_rows()
            given = _flat(rows)
            locate_rows(self.at, MEMORY.address(given), len(rows), MEMORY.address(found), SCRATCH.address)
        return found

    def count_present(self, rows: Ids) -> int:
        """Count those of some rows that are here."""
        self.need_rows()
        given = _flat(rows)
        return int(sift_rows(self.at, MEMORY.address(given), len(rows), True, 0, SCRATCH.address))

    def count_pairs_present(self, rows: Ids) -> int:
        """Count those of some pairs that are here; quick where equal first columns stand together."""
        self.need_rows()
        number, _ = self.need_index(1)
        given = _flat(rows)
        return int(count_runs(self.at, number, MEMORY.address(given), len(rows)))

    def append_distinct(self, rows: Ids) -> None:
        """Append rows that are known to be new and distinct; the row-set follows when it is needed."""
        count = len(self)
        self.reserve(len(rows))
        self._rows[count * self.arity : (count + len(rows)) * self.arity] = rows.ravel()
        self.close_rows(len(rows))

    def refill(self, rows: Ids) -> None:
        """Drop all rows and take others, distinct ones; what finds rows stays and finds these."""
        self.clear()
        if self._slots is not None:
            self.insert(rows)
        else:
            self.append_distinct(rows)

    def is_plain(self, count: int) -> bool:
        """Whether there is room for so many rows, and nothing that finds rows."""
        return self._slots is None and not self._masks and count <= self.cells[L.T_CAPACITY]

    def clear(self) -> None:
        """Drop all rows; what finds them stays, empty."""
        if self._slots is not None:
            self._slots[:] = 0
        for number, heads in enumerate(self._heads):
            heads[:] = 0
            self.record[_index(number) + L.I_USED] = 0
        # Last, so that a table that was not cleared to the end does not look empty.
        self.cells[L.T_COUNT] = 0
        self.settle()

    @property
    def slot_count(self) -> int:
        """How many slots the row-set and the indexes have."""
        return (0 if self._slots is None else len(self._slots)) + sum(map(len, self._heads))

    def open_rows(self) -> tuple[int, int, int]:
        """Return the address of the rows, how many there are, and how many fit, for a kernel that appends."""
        return MEMORY.address(self._rows), len(self), self.capacity

    def close_rows(self, more: int) -> None:
        """Take note of rows, new and distinct, that a kernel wrote behind the last one."""
        count = len(self)
        self.forget_rows()
        self.cells[L.T_COUNT] = count + more
        for number in range(len(self._masks)):
            self._fill(number, count)
        self.settle()

    def contains(self, row: Sequence[int]) -> bool:
        """Whether a row is here."""
        self.need_rows()
        SCRATCH.key[: self.arity] = row
        return int(find_row(self.at, SCRATCH.address)) >= 0

    def mark(self, terms: int) -> None:
        """Keep a bit per term or pair of terms, no row-set, while a node fills this empty table."""
        bits = terms if self.arity == 1 else terms * terms
        self._bits = np.zeros((bits + 7) // 8 + 1, np.uint8)
        self.record[L.T_BITS] = MEMORY.address(self._bits)
        self.record[L.T_TERMS] = terms

    def unmark(self) -> None:
        """Drop the bits; the row-set follows when it is needed."""
        self._bits = None
        self.record[L.T_BITS] = 0

    def settle(self) -> None:
        """Make all rows old: the delta is empty."""
        own = self.cells
        own[L.T_LOW] = own[L.T_HIGH] = own[L.T_COUNT]

    def need_rows(self) -> None:
        """Build the row-set, unless it is there."""
        if self._slots is None:
            self._fill_new_slots(len(self))

    def forget_rows(self) -> None:
        """Drop the row-set; it follows when it is needed."""
        self._slots = None
        self.cells[L.T_SLOTS] = 0
        self.cells[L.T_SLOT_COUNT] = 0

    @property
    def has_indexes(self) -> bool:
        """Whether there is an index already."""
        return bool(self._masks)

    def has_index(self, mask: int) -> bool:
        """Whether the index on some columns is there already."""
        return mask in self._masks

    def need_index(self, mask: int) -> tuple[int, int]:
        """Return the number of the index on some columns, and its columns; build it, unless it is there.

        A table takes few indexes. Where they are used up, the best one on fewer columns must do; if there
        is none, the columns are none either.
        """
        if mask in self._masks:
            return self._masks.index(mask), mask
        number = len(self._masks)
        if number == L.MOST_INDEXES:
            best = max((m for m in self._masks if m & mask == m), key=int.bit_count, default=0)
            return (self._masks.index(best), best) if best else (0, 0)
        try:
            self._new_index(number, mask)
        except BaseException:
            self.record[L.T_INDEXES] = number
            for kept in (self._masks, self._heads, self._next):
                del kept[number:]
            raise
        return number, mask

    def _new_index(self, number: int, mask: int) -> None:
        self._masks.append(mask)
        self._heads.append(np.zeros(_slots_for(self._expected_keys(mask)), np.int32))
        self._next.append(np.zeros(self.capacity, np.int32))
        here = _index(number)
        self.record[here + L.I_MASK] = mask
        self.record[here + L.I_USED] = 0
        self.record[here + L.I_NEXT] = MEMORY.address(self._next[number])
        self.record[here + L.I_PREVIOUS] = 0
        self._describe_heads(number)
        self.record[L.T_INDEXES] = number + 1
        self._fill(number, 0)

    def _expected_keys(self, mask: int) -> int:
        """Return about how many different keys the rows have, so that an index need not grow too often."""
        count = len(self)
        if count <= _SMALL:
            return count
        columns = [column for column in range(self.arity) if mask >> column & 1]
        sample = self.rows[:: count // _SAMPLE][:, columns]
        # What a sample hardly repeats is many; what it repeats is about all there is.
        different = len(np.unique(sample, axis=0))
        return self._runs(columns) if different > len(sample) // 2 else 2 * different

    def _runs(self, columns: list[int]) -> int:
        """Return how many runs of rows have the same key: no more keys are different than that."""
        rows = self.rows
        changes = np.zeros(len(rows) - 1, np.bool_)
        for column in columns:
            changes |= rows[1:, column] != rows[:-1, column]
        return int(np.count_nonzero(changes)) + 1

    def reserve(self, more: int) -> None:
        """Make room for so many more rows, in everything that is built."""
        cells = self.cells
        count = cells[L.T_COUNT]
        if count + more > cells[L.T_CAPACITY]:
            self._resize(max(count + more, int(self.capacity * _GROWTH)))
        if self._slots is not None and _too_full(count + more, len(self._slots)):
            self._fill_new_slots(max(count + more, int(count * _GROWTH)))
        for number, heads in enumerate(self._heads):
            used = cells[_index(number) + L.I_USED]
            if _too_full(used + more, len(heads)):
                self._grow_heads(number, max(used + more, int(used * _GROWTH)))

    def make_ready(self, more: int, *, deleting: bool) -> None:
        """Get all memory that inserting so many rows, or deleting some, will take."""
        self.need_rows()
        if deleting:
            self._need_previous()
        self.reserve(more)

    def trim(self) -> None:
        """Give back room that growing left over."""
        count = len(self)
        if self.capacity > count + count // 8 + _FIRST_ROWS:
            self._resize(count + _FIRST_ROWS)
        if self._slots is not None and len(self._slots) > 2 * _slots_for(count):
            self._fill_new_slots(count)
        for number, heads in enumerate(self._heads):
            used = int(self.record[_index(number) + L.I_USED])
            if len(heads) > 2 * _slots_for(used):
                self._grow_heads(number, used)

    def _resize(self, capacity: int) -> None:
        count = len(self)
        rows = _resized(self._rows, capacity * max(self.arity, 1), count * self.arity)
        following = [_resized(one, capacity, count) for one in self._next]
        previous = [_resized(one, capacity, count) for one in self._previous]
        arrays = (rows, *following, *previous)
        addresses = np.array([MEMORY.address(array) for array in arrays], np.int64)
        places = [L.T_ROWS]
        places += [_index(number) + L.I_NEXT for number in range(len(following))]
        places += [_index(number) + L.I_PREVIOUS for number in range(len(previous))]
        where, record = np.array(places), self.record
        # No call from here on: an interrupt finds all of it done, or nothing.
        self._rows = rows
        self._next = following
        self._previous = previous
        record[where] = addresses
        record[L.T_CAPACITY] = capacity

    def _fill_new_slots(self, rows: int) -> None:
        try:
            self._new_slots(rows)
            fill_slots(self.at)
        except BaseException:
            # Others have this table too: half a row-set must not be taken for one.
            self.forget_rows()
            raise

    def _new_slots(self, rows: int) -> None:
        self._slots = np.zeros(_slots_for(rows), np.int32)
        self.cells[L.T_SLOTS] = MEMORY.address(self._slots)
        self.cells[L.T_SLOT_COUNT] = len(self._slots)

    def _fill(self, number: int, first: int) -> None:
        while first < len(self):
            first = int(fill_index(self.at, number, first))
            if first < len(self):
                used = int(self.record[_index(number) + L.I_USED])
                self._grow_heads(number, max(16, 2 * used))

    def _need_previous(self) -> None:
        for number in range(len(self._previous), len(self._masks)):
            previous = np.zeros(self.capacity, np.int32)
            try:
                self._previous.append(previous)
                self.record[_index(number) + L.I_PREVIOUS] = MEMORY.address(previous)
                fill_previous(self.at, number)
            except BaseException:
                self.record[_index(number) + L.I_PREVIOUS] = 0
                del self._previous[number:]
                raise

    def _grow_heads(self, number: int, keys: int) -> None:
        old = self._heads[number]
        heads = np.zeros(_slots_for(keys), np.int32)
        try:
            self._heads[number] = heads
            self._describe_heads(number)
            move_heads(self.at, number, MEMORY.address(old), len(old))
        except BaseException:
            self._heads[number] = old
            self._describe_heads(number)
            raise

    def _describe_heads(self, number: int) -> None:
        here = _index(number)
        self.record[here + L.I_HEADS] = MEMORY.address(self._heads[number])
        self.record[here + L.I_HEAD_COUNT] = len(self._heads[number])


def count_distinct(tables: Sequence[Table]) -> int:
    """Count the rows that are in at least one of some tables of one arity."""
    *smaller, largest = sorted(tables, key=len)
    if not smaller:
        return len(largest)
    others = smaller[0] if len(smaller) == 1 else Table(largest.arity)
    if len(smaller) > 1:
        for table in smaller:
            others.insert(table.rows)
    # What is small goes into the row-set, or is looked up in the one that is there.
    if largest.has_row_set:
        common = largest.count_present(others.rows)
    elif others.arity == 2:
        common = others.count_pairs_present(largest.rows)
    else:
        common = others.count_present(largest.rows)
    return len(largest) + len(others) - common


def _index(number: int) -> int:
    return L.T_FIRST_INDEX + number * L.INDEX_WORDS


def _flat(rows: Ids) -> Ids:
    # Never empty, so that it has an address.
    return np.ascontiguousarray(rows, np.int32).ravel() if rows.size else np.zeros(1, np.int32)


def _slots_for(entries: int) -> int:
    return entries * L.FULL_DENOMINATOR // L.FULL_NUMERATOR + 8


def _too_full(entries: int, slots: int) -> bool:
    return entries * L.FULL_DENOMINATOR > slots * L.FULL_NUMERATOR


def _resized(array: Ids, size: int, used: int) -> Ids:
    larger = np.zeros(size, np.int32)
    larger[:used] = array[:used]
    return larger
