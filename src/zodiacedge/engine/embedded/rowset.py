"""Kernels on one table: find a row, insert one, delete one, index rows, grow.

`tables` is the array of all descriptors; `at` is where one table's record starts in it.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.compiled import kernel, load8, load32, multiply63, store8, store32
from zodiacedge.engine.embedded.compiled import load64 as get
from zodiacedge.engine.embedded.compiled import store64 as put
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
    T_ARITY,
    T_CAPACITY,
    T_COUNT,
    T_FIRST_INDEX,
    T_INDEXES,
    T_ROWS,
    T_SLOT_COUNT,
    T_SLOTS,
)

_MIX = 0x1F3D5B79A24E8C6B


@kernel
def mix(hashed: int, word: int) -> int:
    """Return a hash that also depends on one more word."""
    hashed = multiply63(hashed ^ word, _MIX)
    return hashed ^ (hashed >> 29)


@kernel
def slot_of(hashed: int, slots: int) -> int:
    """Return the slot where a hash's search starts, of any number of slots."""
    return ((hashed >> 31) * slots) >> 32


@kernel
def hash_row(rows: int, start: int, arity: int, mask: int) -> int:
    """Return the hash of those columns of a row that a mask names; the row starts at a word of `rows`."""
    hashed = 7
    for column in range(arity):
        if mask >> column & 1:
            hashed = mix(hashed, load32(rows, start + column))
    return hashed


@kernel
def hash_key(key: int, arity: int, mask: int) -> int:
    """Return the hash of those columns of a key that a mask names."""
    hashed = 7
    for column in range(arity):
        if mask >> column & 1:
            hashed = mix(hashed, get(key, column))
    return hashed


@kernel
def same_columns(rows: int, start: int, key: int, arity: int, mask: int) -> bool:
    """Whether a row equals a key in the columns that a mask names."""
    for column in range(arity):
        if mask >> column & 1 and load32(rows, start + column) != get(key, column):
            return False
    return True


@kernel
def find_row(tables: int, at: int, key: int) -> int:
    """Return the row that equals a key, or -1 - slot, with the free slot where it would go."""
    arity = get(tables, at + T_ARITY)
    rows = get(tables, at + T_ROWS)
    slots = get(tables, at + T_SLOTS)
    size = get(tables, at + T_SLOT_COUNT)
    whole = (1 << arity) - 1
    slot = slot_of(hash_key(key, arity, whole), size)
    while True:
        row = load32(slots, slot) - 1
        if row < 0:
            return -1 - slot
        if same_columns(rows, row * arity, key, arity, whole):
            return row
        slot += 1
        if slot == size:
            slot = 0


@kernel
def find_chain(tables: int, at: int, index: int, key: int) -> int:
    """Return the first row of the chain of a key in an index, or -1."""
    arity = get(tables, at + T_ARITY)
    rows = get(tables, at + T_ROWS)
    here = at + T_FIRST_INDEX + index * INDEX_WORDS
    mask = get(tables, here + I_MASK)
    heads = get(tables, here + I_HEADS)
    size = get(tables, here + I_HEAD_COUNT)
    slot = slot_of(hash_key(key, arity, mask), size)
    while True:
        row = load32(heads, slot) - 1
        if row < 0 or same_columns(rows, row * arity, key, arity, mask):
            return row
        slot += 1
        if slot == size:
            slot = 0


@kernel
def is_full(used: int, slots: int) -> bool:
    """Whether one more entry would fill a hash table too much."""
    return (used + 1) * FULL_DENOMINATOR > slots * FULL_NUMERATOR


@kernel
def has_room(tables: int, at: int, more: int) -> bool:
    """Whether so many more rows can be inserted without growing anything."""
    count = get(tables, at + T_COUNT)
    if count + more > get(tables, at + T_CAPACITY):
        return False
    if get(tables, at + T_SLOTS) and is_full(count + more - 1, get(tables, at + T_SLOT_COUNT)):
        return False
    for index in range(get(tables, at + T_INDEXES)):
        here = at + T_FIRST_INDEX + index * INDEX_WORDS
        if is_full(get(tables, here + I_USED) + more - 1, get(tables, here + I_HEAD_COUNT)):
            return False
    return True


@kernel
def same_rows(rows: int, first: int, second: int, arity: int, mask: int) -> bool:
    """Whether two rows of a table agree in the columns that a mask names."""
    for column in range(arity):
        if mask >> column & 1 and load32(rows, first * arity + column) != load32(
            rows, second * arity + column
        ):
            return False
    return True


@kernel
def link_row(tables: int, at: int, index: int, row: int) -> None:
    """Put a row at the front of its chain."""
    arity = get(tables, at + T_ARITY)
    rows = get(tables, at + T_ROWS)
    here = at + T_FIRST_INDEX + index * INDEX_WORDS
    mask = get(tables, here + I_MASK)
    heads = get(tables, here + I_HEADS)
    size = get(tables, here + I_HEAD_COUNT)
    following = get(tables, here + I_NEXT)
    previous = get(tables, here + I_PREVIOUS)
    slot = slot_of(hash_row(rows, row * arity, arity, mask), size)
    while True:
        first = load32(heads, slot) - 1
        if first < 0:
            put(tables, here + I_USED, get(tables, here + I_USED) + 1)
            break
        if same_rows(rows, first, row, arity, mask):
            break
        slot += 1
        if slot == size:
            slot = 0
    store32(heads, slot, row + 1)
    store32(following, row, first)
    if previous:
        store32(previous, row, -1)
        if first >= 0:
            store32(previous, first, row)


@kernel
def append_row(tables: int, at: int, key: int, slot: int) -> None:
    """Append a row that is not there yet; `slot` is its free slot, or -1 where there is no row-set."""
    arity = get(tables, at + T_ARITY)
    rows = get(tables, at + T_ROWS)
    row = get(tables, at + T_COUNT)
    for column in range(arity):
        store32(rows, row * arity + column, get(key, column))
    if slot >= 0:
        store32(get(tables, at + T_SLOTS), slot, row + 1)
    put(tables, at + T_COUNT, row + 1)
    for index in range(get(tables, at + T_INDEXES)):
        link_row(tables, at, index, row)


@kernel
def claim_pair(bits: int, terms: int, first: int, second: int) -> bool:
    """Take note of a pair of terms; return whether it is new."""
    place = first * terms + second
    bit = 1 << (place & 7)
    old = load8(bits, place >> 3)
    if old & bit:
        return False
    store8(bits, place >> 3, old | bit)
    return True


@kernel
def fill_slots(tables: int, at: int) -> None:
    """Enter all rows, known to be distinct, into empty slots."""
    arity = get(tables, at + T_ARITY)
    rows = get(tables, at + T_ROWS)
    slots = get(tables, at + T_SLOTS)
    size = get(tables, at + T_SLOT_COUNT)
    whole = (1 << arity) - 1
    for row in range(get(tables, at + T_COUNT)):
        slot = slot_of(hash_row(rows, row * arity, arity, whole), size)
        while load32(slots, slot):
            slot += 1
            if slot == size:
                slot = 0
        store32(slots, slot, row + 1)


@kernel
def fill_index(tables: int, at: int, index: int, first: int) -> int:
    """Chain the rows from `first` on; return the first row that found the index full, or the count."""
    here = at + T_FIRST_INDEX + index * INDEX_WORDS
    for row in range(first, get(tables, at + T_COUNT)):
        if is_full(get(tables, here + I_USED), get(tables, here + I_HEAD_COUNT)):
            return row
        link_row(tables, at, index, row)
    return get(tables, at + T_COUNT)


@kernel
def move_heads(tables: int, at: int, index: int, old: int, old_size: int) -> None:
    """Enter the chains of an index into larger, empty slots."""
    arity = get(tables, at + T_ARITY)
    rows = get(tables, at + T_ROWS)
    here = at + T_FIRST_INDEX + index * INDEX_WORDS
    mask = get(tables, here + I_MASK)
    heads = get(tables, here + I_HEADS)
    size = get(tables, here + I_HEAD_COUNT)
    for entry in range(old_size):
        row = load32(old, entry) - 1
        if row >= 0:
            slot = slot_of(hash_row(rows, row * arity, arity, mask), size)
            while load32(heads, slot):
                slot += 1
                if slot == size:
                    slot = 0
            store32(heads, slot, row + 1)


@kernel
def insert_rows(tables: int, at: int, given: int, total: int, key: int) -> None:
    """Insert rows given one after the other, without those that are there. There must be room for all."""
    arity = get(tables, at + T_ARITY)
    if not get(tables, at + T_SLOTS):
        for n in range(total):
            for column in range(arity):
                put(key, column, load32(given, n * arity + column))
            append_row(tables, at, key, -1)
    elif arity == 2 and not get(tables, at + T_INDEXES):
        insert_pairs(tables, at, given, total)
    else:
        for n in range(total):
            for column in range(arity):
                put(key, column, load32(given, n * arity + column))
            slot = -1 - find_row(tables, at, key)
            if slot >= 0:
                append_row(tables, at, key, slot)


@kernel
def insert_pairs(tables: int, at: int, given: int, total: int) -> None:
    """Insert rows of two columns into a table without indexes: the same, with nothing in the way."""
    rows = get(tables, at + T_ROWS)
    slots = get(tables, at + T_SLOTS)
    size = get(tables, at + T_SLOT_COUNT)
    count = get(tables, at + T_COUNT)
    for n in range(total):
        first = load32(given, 2 * n)
        second = load32(given, 2 * n + 1)
        slot = slot_of(mix(mix(7, first), second), size)
        while True:
            row = load32(slots, slot) - 1
            if row < 0:
                store32(rows, 2 * count, first)
                store32(rows, 2 * count + 1, second)
                count += 1
                store32(slots, slot, count)
                break
            if load32(rows, 2 * row) == first and load32(rows, 2 * row + 1) == second:
                break
            slot += 1
            if slot == size:
                slot = 0
    put(tables, at + T_COUNT, count)


@kernel
def partition_rows(given: int, sorted_rows: int, total: int, arity: int, parts: int, counts: int) -> None:
    """Copy rows so that those whose slots lie close together stand together.

    A large row-set is then visited part by part, and each part stays in the processor's cache.
    """
    whole = (1 << arity) - 1
    for part in range(parts):
        put(counts, part, 0)
    for n in range(total):
        part = slot_of(hash_row(given, n * arity, arity, whole), parts)
        put(counts, part, get(counts, part) + 1)
    start = 0
    for part in range(parts):
        size = get(counts, part)
        put(counts, part, start)
        start += size
    for n in range(total):
        part = slot_of(hash_row(given, n * arity, arity, whole), parts)
        place = get(counts, part)
        put(counts, part, place + 1)
        for column in range(arity):
            store32(sorted_rows, place * arity + column, load32(given, n * arity + column))
