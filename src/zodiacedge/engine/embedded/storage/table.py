"""A table: distinct rows of term ids, with a hash set and hash indexes that are built on demand.

Kernels access the arrays of rows, slots and chains through the table's record. Until a lookup needs the hash
set, rows that are known to be distinct are appended without it. The last row moves into the position of a
deleted row, so positions are not stable.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage.delete_rows import delete_rows, fill_previous
from zodiacedge.engine.embedded.storage.hash_index import (
    build_hash_set,
    collect_terms,
    count_members,
    count_pairs_by_run,
    fill_index,
    filter_rows,
    find_row,
    insert_by_bits,
    insert_rows,
    locate_rows,
    rehash_heads,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Flags, Ids


_FIRST_ROWS = 8
# Rows in a sample that estimates the number of distinct keys; small tables are not sampled.
_SAMPLE = 1024
_SMALL = 16_384
_GROWTH = 1.6
# The terms of a column are told apart by a bit per term, up to so many terms for each row.
_TERMS_PER_ROW = 64
_LEAST_TERMS = 1 << 16
_NO_TERMS: Ids = np.zeros(0, np.int32)


class WorkingMemory(threading.local):
    """A buffer in which kernels build a row, one for each thread."""

    def __init__(self) -> None:
        """Allocate the buffer."""
        # One word more than the widest row: the class of a row may follow it.
        self.key = words(L.MOST_COLUMNS + 1)
        self.address = MEMORY.address(self.key)


SCRATCH = WorkingMemory()


class Table:
    """Distinct rows of one arity."""

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
        "cycle",
        "record",
    )

    def __init__(self, arity: int, room: int = _FIRST_ROWS) -> None:
        """Start with no rows, and with room for so many."""
        if arity > L.MOST_COLUMNS:
            # The buffers of kernels are no larger. Users get a diagnostic earlier.
            raise ValueError(arity)
        self.arity = arity
        # The last cycle of `reclaim` that has marked the rows.
        self.cycle = 0
        self.record = words(L.TABLE_WORDS)
        # The same words: Python reads and writes a word three times as quickly through a memoryview.
        self.cells = self.record.data
        self.at = MEMORY.address(self.record)
        # Never empty, so that it has an address.
        room = max(room, _FIRST_ROWS)
        self._rows: Ids = np.zeros(room * max(arity, 1), np.int32)
        self._slots: Ids | None = None
        self._heads: list[Ids] = []
        self._next: list[Ids] = []
        self._previous: list[Ids] = []
        self._masks: list[int] = []
        self._bits: NDArray[np.uint8] | None = None
        self.cells[L.T_ARITY] = arity
        self.cells[L.T_CAPACITY] = room
        self.cells[L.T_ROWS] = MEMORY.address(self._rows)

    @classmethod
    def of(cls, rows: Ids) -> Table:
        """Return a table of rows that are known to be distinct."""
        table = cls(rows.shape[1])
        table.append_distinct(rows)
        return table

    @classmethod
    def union(cls, arity: int, pieces: Iterable[Ids]) -> Table:
        """Return a table of the rows of several arrays, each row once."""
        table = cls(arity)
        for rows in pieces:
            table.insert(rows)
        return table

    def __len__(self) -> int:
        """Return the number of rows."""
        count: int = self.cells[L.T_COUNT]
        return count

    @property
    def rows(self) -> Ids:
        """The rows, as a view."""
        count = self.cells[L.T_COUNT]
        return self._rows[: count * self.arity].reshape(count, self.arity)

    @property
    def nbytes(self) -> tuple[int, int]:
        """Allocated bytes: of the rows, and of the hash set and indexes."""
        arrays = [*self._heads, *self._next, *self._previous]
        if self._slots is not None:
            arrays.append(self._slots)
        return self._rows.nbytes, sum(array.nbytes for array in arrays)

    @property
    def capacity(self) -> int:
        """The number of rows that fit."""
        capacity: int = self.cells[L.T_CAPACITY]
        return capacity

    @property
    def is_marked(self) -> bool:
        """Whether a bitmap stands in for the hash set, while a node fills the table."""
        return self._bits is not None

    @property
    def has_hash_set(self) -> bool:
        """Whether the hash set is built."""
        return self._slots is not None

    def delta_slice(self, number: int, of: int) -> Table:
        """Return a view for readers whose delta is one of several equal slices of the rows."""
        view = Table.__new__(Table)
        for name in Table.__slots__:
            setattr(view, name, getattr(self, name))
        view.record = self.record.copy()
        view.cells = view.record.data
        view.at = MEMORY.address(view.record)
        view.record[L.T_LOW] = len(self) * number // of
        view.record[L.T_HIGH] = len(self) * (number + 1) // of
        return view

    def open_delta(self, first: int) -> None:
        """Make the rows from a position on the delta."""
        self.cells[L.T_LOW], self.cells[L.T_HIGH] = first, len(self)

    def insert_unmarked(self, rows: Ids) -> None:
        """Insert the rows that are new by the bitmap."""
        self.reserve(len(rows))
        given = _flat(rows)
        insert_by_bits(self.at, MEMORY.address(given), len(rows))

    def insert(self, rows: Ids) -> int:
        """Insert the rows that are new; return their number."""
        cells, count = self.cells, len(rows)
        before = cells[L.T_COUNT]
        if self._slots is None:
            self.ensure_hash_set()
        self.reserve(count)
        given = _flat(rows)
        insert_rows(self.at, MEMORY.address(given), count, SCRATCH.address)
        after: int = cells[L.T_COUNT]
        cells[L.T_LOW] = cells[L.T_HIGH] = after
        return after - before

    def delete(self, rows: Ids) -> int:
        """Delete the rows that are in the table; return their number."""
        before = len(self)
        self.ensure_hash_set()
        self._need_previous()
        given = _flat(rows)
        delete_rows(self.at, MEMORY.address(given), len(rows), SCRATCH.address)
        self.settle()
        return before - len(self)

    def filter(self, rows: Ids, *, present: bool) -> Ids:
        """Return the rows that are in the table, or those that are not."""
        self.ensure_hash_set()
        given = _flat(rows)
        out = np.empty(max(len(given), 1), np.int32)
        found = MEMORY.address(out)
        count = filter_rows(self.at, MEMORY.address(given), len(rows), int(present), found, SCRATCH.address)
        return out[: count * self.arity].reshape(count, self.arity)

    def mask(self, rows: Ids) -> Flags:
        """Return for each row whether it is in the table."""
        return np.asarray(self.positions(rows) >= 0)

    def positions(self, rows: Ids) -> Ids:
        """Return the position of each row in the table, or -1."""
        positions = np.full(len(rows), -1, np.int32)
        if len(self) and len(rows):
            self.ensure_hash_set()
            given = _flat(rows)
            out = MEMORY.address(positions)
            locate_rows(self.at, MEMORY.address(given), len(rows), out, SCRATCH.address)
        return positions

    def count_present(self, rows: Ids) -> int:
        """Count the rows that are in the table."""
        self.ensure_hash_set()
        given = _flat(rows)
        return int(filter_rows(self.at, MEMORY.address(given), len(rows), 1, 0, SCRATCH.address))

    def count_pairs_present(self, rows: Ids) -> int:
        """Count the pairs that are in the table; quick where they are grouped by first column."""
        self.ensure_hash_set()
        number, _ = self.ensure_index(1)
        given = _flat(rows)
        return int(count_pairs_by_run(self.at, number, MEMORY.address(given), len(rows)))

    def append_distinct(self, rows: Ids) -> None:
        """Append rows that are known to be new and distinct; the hash set is built when it is needed."""
        count = len(self)
        self.reserve(len(rows))
        self._rows[count * self.arity : (count + len(rows)) * self.arity] = rows.ravel()
        self.close_rows(len(rows))

    def refill(self, rows: Ids) -> None:
        """Replace all rows by other distinct rows; the hash set and the indexes stay built."""
        self.clear()
        if self._slots is not None:
            self.insert(rows)
        else:
            self.append_distinct(rows)

    def is_plain(self, count: int) -> bool:
        """Whether so many rows fit, and there is neither a hash set nor an index."""
        return self._slots is None and not self._masks and count <= self.cells[L.T_CAPACITY]

    def clear(self) -> None:
        """Drop all rows; the hash set and the indexes stay built, without entries."""
        if self._slots is not None:
            self._slots[:] = 0
        for number, heads in enumerate(self._heads):
            heads[:] = 0
            self.record[_index(number) + L.I_USED] = 0
        # Last, so that an interrupted call does not leave a table that looks empty.
        self.cells[L.T_COUNT] = 0
        self.settle()

    @property
    def slot_count(self) -> int:
        """The number of slots of the hash set and the indexes."""
        return (0 if self._slots is None else len(self._slots)) + sum(map(len, self._heads))

    def open_rows(self) -> tuple[int, int, int]:
        """Return the address of the rows, their number and the capacity, for a kernel that appends."""
        return MEMORY.address(self._rows), len(self), self.capacity

    def close_rows(self, more: int) -> None:
        """Count and index rows, new and distinct, that a kernel appended."""
        count = len(self)
        self.drop_hash_set()
        self.cells[L.T_COUNT] = count + more
        for number in range(len(self._masks)):
            self._fill(number, count)
        self.settle()

    def contains(self, row: Sequence[int]) -> bool:
        """Whether a row is in the table."""
        self.ensure_hash_set()
        SCRATCH.key[: self.arity] = row
        return int(find_row(self.at, SCRATCH.address)) >= 0

    def mark(self, terms: int) -> None:
        """Use a bitmap of terms or pairs of terms, no hash set, while a node fills this empty table."""
        bits = terms if self.arity == 1 else terms * terms
        self._bits = np.zeros((bits + 7) // 8 + 1, np.uint8)
        self.record[L.T_BITS] = MEMORY.address(self._bits)
        self.record[L.T_TERMS] = terms

    def share_bits(self, other: Table) -> None:
        """Use the bitmap of another table too; two threads may fill one of the tables each."""
        self._bits = other._bits
        for table in (self, other):
            table.record[L.T_SHARED] = 1
        for field in (L.T_BITS, L.T_TERMS):
            self.record[field] = other.record[field]

    def unmark(self) -> None:
        """Drop the bitmap; the hash set is built when it is needed."""
        self._bits = None
        self.record[L.T_BITS] = self.record[L.T_SHARED] = 0

    def settle(self) -> None:
        """Make all rows old: the delta is empty."""
        own = self.cells
        own[L.T_LOW] = own[L.T_HIGH] = own[L.T_COUNT]

    def ensure_hash_set(self) -> None:
        """Build the hash set, unless it is built."""
        if self._slots is None:
            self._fill_new_slots(len(self))

    def drop_hash_set(self) -> None:
        """Drop the hash set; it is built again when it is needed."""
        self._slots = None
        self.cells[L.T_SLOTS] = 0
        self.cells[L.T_SLOT_COUNT] = 0

    @property
    def index_count(self) -> int:
        """The number of indexes."""
        return len(self._masks)

    @property
    def has_indexes(self) -> bool:
        """Whether there is an index."""
        return bool(self._masks)

    def has_index(self, mask: int) -> bool:
        """Whether there is an index on exactly these columns."""
        return mask in self._masks

    def ensure_index(self, mask: int) -> tuple[int, int]:
        """Return the number of the index on these columns, and its columns; build it, unless it is built.

        The number of indexes is bounded. At the bound, the index on most of the columns is returned, or no
        columns if there is none.
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
            for arrays in (self._masks, self._heads, self._next):
                del arrays[number:]
            raise
        return number, mask

    def _new_index(self, number: int, mask: int) -> None:
        self._masks.append(mask)
        self._heads.append(np.zeros(_heads_for(self._expected_keys(mask)), np.int32))
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
        """Estimate the number of distinct keys, so that an index need not grow too often."""
        count = len(self)
        if count <= _SMALL:
            return count
        columns = [column for column in range(self.arity) if mask >> column & 1]
        sample = self.rows[:: count // _SAMPLE]
        # One column is told apart much more quickly than several.
        distinct = len(
            np.unique(sample[:, columns[0]]) if len(columns) == 1 else np.unique(sample[:, columns], axis=0)
        )
        # A sample with many duplicates contains about all keys.
        return self._runs(columns) if distinct > len(sample) // 2 else 2 * distinct

    def _runs(self, columns: list[int]) -> int:
        """Count the runs of rows with equal keys: an upper bound of the number of distinct keys."""
        rows = self.rows
        changes = np.zeros(len(rows) - 1, np.bool_)
        for column in columns:
            changes |= rows[1:, column] != rows[:-1, column]
        return int(np.count_nonzero(changes)) + 1

    def reserve(self, more: int, growth: float = _GROWTH) -> None:
        """Make room for so many more rows, in the hash set and the indexes too; what grows, grows so much."""
        cells = self.cells
        count = cells[L.T_COUNT]
        if count + more > cells[L.T_CAPACITY]:
            self._resize(max(count + more, int(self.capacity * growth)))
        if self._slots is not None and _too_full(count + more, len(self._slots)):
            self._fill_new_slots(max(count + more, int(count * growth)))
        for number, heads in enumerate(self._heads):
            used = cells[_index(number) + L.I_USED]
            if _too_full(used + more, len(heads)):
                self._grow_heads(number, max(used + more, int(used * growth)))

    def make_ready(self, more: int, *, deleting: bool) -> None:
        """Allocate all memory needed to insert so many rows, and to delete rows."""
        self.ensure_hash_set()
        if deleting:
            self._need_previous()
        self.reserve(more)

    def trim(self) -> None:
        """Shrink arrays that are much larger than needed."""
        count = len(self)
        if self.cells[L.T_CAPACITY] > count + count // 8 + _FIRST_ROWS:
            self._resize(count + _FIRST_ROWS)
        if self._slots is not None and len(self._slots) > 2 * _slots_for(count):
            self._fill_new_slots(count)
        for number, heads in enumerate(self._heads):
            used = int(self.record[_index(number) + L.I_USED])
            if len(heads) > 2 * _heads_for(used):
                self._grow_heads(number, used)

    def _resize(self, capacity: int) -> None:
        count = len(self)
        rows = _resized(self._rows, capacity * max(self.arity, 1), count * self.arity)
        if not self._masks:
            address, cells = MEMORY.address(rows), self.cells
            # As below.
            self._rows = rows
            cells[L.T_ROWS] = address
            cells[L.T_CAPACITY] = capacity
            return
        following = [_resized(chain, capacity, count) for chain in self._next]
        previous = [_resized(chain, capacity, count) for chain in self._previous]
        arrays = (rows, *following, *previous)
        addresses = np.array([MEMORY.address(array) for array in arrays], np.int64)
        fields = [L.T_ROWS]
        fields += [_index(number) + L.I_NEXT for number in range(len(following))]
        fields += [_index(number) + L.I_PREVIOUS for number in range(len(previous))]
        offsets, record = np.array(fields), self.record
        # No calls from here on, so that an interrupt cannot leave the record with a freed array.
        self._rows = rows
        self._next = following
        self._previous = previous
        record[offsets] = addresses
        record[L.T_CAPACITY] = capacity

    def _fill_new_slots(self, rows: int) -> None:
        try:
            self.allocate_hash_set(rows)
            build_hash_set(self.at)
        except BaseException:
            # Versions share the table: a partly built hash set must not be used.
            self.drop_hash_set()
            raise

    def allocate_hash_set(self, rows: int) -> None:
        """Allocate an empty hash set for so many rows, which a kernel fills."""
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
        heads = np.zeros(_heads_for(keys), np.int32)
        try:
            self._heads[number] = heads
            self._describe_heads(number)
            rehash_heads(self.at, number, MEMORY.address(old), len(old))
        except BaseException:
            self._heads[number] = old
            self._describe_heads(number)
            raise

    def _describe_heads(self, number: int) -> None:
        here = _index(number)
        self.record[here + L.I_HEADS] = MEMORY.address(self._heads[number])
        self.record[here + L.I_HEAD_COUNT] = len(self._heads[number])


def count_distinct(tables: Sequence[Table]) -> int:
    """Count the distinct rows in the union of tables of one arity."""
    *smaller, largest = sorted(tables, key=len)
    if not smaller:
        return len(largest)
    if largest.arity == 1:
        return _collect([table.rows for table in tables], 0)[0]
    rest = smaller[0]
    if len(smaller) > 1:
        # Most rows are in the largest table, so that few remain to be compared with each other.
        rest = Table.union(largest.arity, (largest.filter(table.rows, present=False) for table in smaller))
        return len(largest) + len(rest)
    # If no hash set is built, the smaller side gets it.
    if largest.has_hash_set:
        common = largest.count_present(rest.rows)
    elif rest.arity == 2:
        common = rest.count_pairs_present(largest.rows)
    else:
        common = rest.count_present(largest.rows)
    return len(largest) + len(rest) - common


def count_terms(groups: Sequence[Sequence[Table]], terms: int) -> list[int]:
    """Count the distinct terms of each group of tables of one column; all ids are below `terms`."""
    steps = [word for group in groups for word in (len(group), *(table.at for table in group))]
    counts = np.zeros(max(len(groups), 1), np.int64)
    if steps:
        given, bits = np.array(steps, np.int64), np.zeros(terms // 8 + 1, np.uint8)
        addresses = MEMORY.address(given), MEMORY.address(bits), MEMORY.address(counts)
        count_members(addresses[0], len(groups), addresses[1], addresses[2])
    return counts.tolist()[: len(groups)]


def mark_terms(table: Table, column: int, bits: NDArray[np.uint8]) -> None:
    """Set the bit of each term in a column of a table."""
    rows = table.cells[L.T_ROWS]
    collect_terms(MEMORY.address(bits), rows, len(table), table.arity, column, 0, 0)


def distinct_terms(pieces: Sequence[Ids], column: int) -> Ids:
    """Return the terms in a column of some rows, each once."""
    out = np.empty(max(sum(map(len, pieces)), 1), np.int32)
    count, terms = _collect(pieces, column, out)
    return terms[:count]


def _collect(pieces: Sequence[Ids], column: int, out: Ids | None = None) -> tuple[int, Ids]:
    """Count the terms in a column of some rows, each once; return them too if there is room for them."""
    last = max((int(rows[:, column].max(initial=0)) for rows in pieces), default=0)
    if last > _LEAST_TERMS + _TERMS_PER_ROW * sum(map(len, pieces)):
        terms = np.unique(np.concatenate([rows[:, column] for rows in pieces]))
        return len(terms), terms
    bits = np.zeros(last // 8 + 1, np.uint8)
    count, at, found = 0, MEMORY.address(bits), 0 if out is None else MEMORY.address(out)
    for rows in pieces:
        given = _flat(rows)
        width = rows.shape[1]
        count = int(collect_terms(at, MEMORY.address(given), len(rows), width, column, found, count))
    return count, _NO_TERMS if out is None else out


def _index(number: int) -> int:
    return L.T_FIRST_INDEX + number * L.INDEX_WORDS


def _flat(rows: Ids) -> Ids:
    # Never empty, so that it has an address.
    return np.ascontiguousarray(rows, np.int32).ravel() if rows.size else np.zeros(1, np.int32)


def _slots_for(entries: int) -> int:
    return entries * L.FULL_DENOMINATOR // L.FULL_NUMERATOR + 8


def _heads_for(keys: int) -> int:
    # Half full: most lookups are of keys that are not there, and each takes eight probes if it is as full as
    # it may be.
    return 2 * _slots_for(keys)


def _too_full(entries: int, slots: int) -> bool:
    return entries * L.FULL_DENOMINATOR > slots * L.FULL_NUMERATOR


def _resized(array: Ids, size: int, used: int) -> Ids:
    larger = np.zeros(size, np.int32)
    larger[:used] = array[:used]
    return larger
