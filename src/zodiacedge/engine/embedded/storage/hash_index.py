"""Kernels on one table: find a row, insert one, index rows, grow.

`table` is the address of a table's record; a key is a row as 64-bit words. How rows go is left to `deletion`.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import mix, slot_of
from zodiacedge.engine.embedded.kernels.jit import (
    kernel,
    load8,
    load32,
    prefetch32,
    store8,
    store32,
)
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put

# The slot of a row is asked for so many rows before, so that the processor has fetched it when it is needed.
_AHEAD = 16
# So few slots are in the processor's cache anyway.
_NEAR_SLOTS = 1 << 16


@kernel
def has_column(mask: int, column: int) -> bool:
    """Whether a mask names a column."""
    return mask < 0 or (column < L.MASK_COLUMNS and mask >> column & 1 == 1)


@kernel
def hash_row(rows: int, start: int, arity: int, mask: int) -> int:
    """Return the hash of those columns of a row that a mask names; the row starts at a word of `rows`."""
    hashed = 7
    for column in range(arity):
        if has_column(mask, column):
            hashed = mix(hashed, load32(rows, start + column))
    return hashed


@kernel
def hash_key(key: int, arity: int, mask: int) -> int:
    """Return the hash of those columns of a key that a mask names."""
    hashed = 7
    for column in range(arity):
        if has_column(mask, column):
            hashed = mix(hashed, get(key, column))
    return hashed


@kernel
def same_columns(rows: int, start: int, key: int, arity: int, mask: int) -> bool:
    """Whether a row equals a key in the columns that a mask names."""
    for column in range(arity):
        if has_column(mask, column) and load32(rows, start + column) != get(key, column):
            return False
    return True


@kernel
def find_row(table: int, key: int) -> int:
    """Return the row that equals a key, or -1 - slot, with the free slot where it would go."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    size = get(table, L.T_SLOT_COUNT)
    whole = L.WHOLE
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
def find_pair(table: int, first: int, second: int) -> int:
    """Return the row that equals two terms, or -1 - slot: `find_row` with nothing in the way."""
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    size = get(table, L.T_SLOT_COUNT)
    slot = slot_of(mix(mix(7, first), second), size)
    while True:
        row = load32(slots, slot) - 1
        if row < 0:
            return -1 - slot
        if load32(rows, 2 * row) == first and load32(rows, 2 * row + 1) == second:
            return row
        slot += 1
        if slot == size:
            slot = 0


@kernel
def find_half(chains: int, rows: int, column: int, term: int) -> int:
    """Return the first row of two columns in the chain of a term in one of them, or -1.

    `chains` is the address of the index's record.
    """
    heads = get(chains, L.I_HEADS)
    size = get(chains, L.I_HEAD_COUNT)
    slot = slot_of(mix(7, term), size)
    while True:
        row = load32(heads, slot) - 1
        if row < 0 or load32(rows, 2 * row + column) == term:
            return row
        slot += 1
        if slot == size:
            slot = 0


@kernel
def find_chain(table: int, index: int, key: int) -> int:
    """Return the first row of the chain of a key in an index, or -1."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    mask = get(here, L.I_MASK)
    heads = get(here, L.I_HEADS)
    size = get(here, L.I_HEAD_COUNT)
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
    return (used + 1) * L.FULL_DENOMINATOR > slots * L.FULL_NUMERATOR


@kernel
def has_room(table: int, more: int) -> bool:
    """Whether so many more rows can be inserted without growing anything."""
    count = get(table, L.T_COUNT)
    if count + more > get(table, L.T_CAPACITY):
        return False
    if get(table, L.T_SLOTS) and is_full(count + more - 1, get(table, L.T_SLOT_COUNT)):
        return False
    for index in range(get(table, L.T_INDEXES)):
        here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
        if is_full(get(here, L.I_USED) + more - 1, get(here, L.I_HEAD_COUNT)):
            return False
    return True


@kernel
def same_rows(rows: int, first: int, second: int, arity: int, mask: int) -> bool:
    """Whether two rows of a table agree in the columns that a mask names."""
    for column in range(arity):
        if has_column(mask, column) and load32(rows, first * arity + column) != load32(
            rows, second * arity + column
        ):
            return False
    return True


@kernel
def link_row(table: int, index: int, row: int) -> None:
    """Put a row at the front of its chain."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    mask = get(here, L.I_MASK)
    heads = get(here, L.I_HEADS)
    size = get(here, L.I_HEAD_COUNT)
    following = get(here, L.I_NEXT)
    previous = get(here, L.I_PREVIOUS)
    slot = slot_of(hash_row(rows, row * arity, arity, mask), size)
    while True:
        first = load32(heads, slot) - 1
        if first < 0:
            put(here, L.I_USED, get(here, L.I_USED) + 1)
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
def append_row(table: int, key: int, slot: int) -> None:
    """Append a row that is not there yet; `slot` is its free slot, or -1 where there is no row-set."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    row = get(table, L.T_COUNT)
    for column in range(arity):
        store32(rows, row * arity + column, get(key, column))
    if slot >= 0:
        store32(get(table, L.T_SLOTS), slot, row + 1)
    put(table, L.T_COUNT, row + 1)
    for index in range(get(table, L.T_INDEXES)):
        link_row(table, index, row)


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
def is_marked(table: int, first: int, second: int) -> bool:
    """Whether a pair of terms, or with 0 in front a term, was taken note of."""
    if first < 0 or second < 0:
        return False
    place = first * get(table, L.T_TERMS) + second
    return (load8(get(table, L.T_BITS), place >> 3) >> (place & 7)) & 1 == 1


@kernel
def insert_by_bits(table: int, given: int, total: int) -> None:
    """Append those of the rows given, of one or two columns, that the table's bits do not know yet."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    count = get(table, L.T_COUNT)
    bits = get(table, L.T_BITS)
    terms = get(table, L.T_TERMS)
    for n in range(total):
        first = load32(given, n * arity)
        second = load32(given, n * arity + arity - 1)
        if claim_pair(bits, terms, first if arity == 2 else 0, second):
            store32(rows, count * arity, first)
            store32(rows, count * arity + arity - 1, second)
            count += 1
    put(table, L.T_COUNT, count)


@kernel
def far_rows(table: int, total: int) -> int:
    """Return for how many of so many rows a later one is to be expected: none where slots are few."""
    return total - _AHEAD if get(table, L.T_SLOT_COUNT) > _NEAR_SLOTS else 0


@kernel
def expect_row(table: int, given: int, n: int) -> None:
    """Have the slot fetched where the search for a given row will start."""
    arity = get(table, L.T_ARITY)
    whole = L.WHOLE
    slot = slot_of(hash_row(given, n * arity, arity, whole), get(table, L.T_SLOT_COUNT))
    prefetch32(get(table, L.T_SLOTS), slot)


@kernel
def fill_slots(table: int) -> None:
    """Enter all rows, known to be distinct, into empty slots."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    size = get(table, L.T_SLOT_COUNT)
    whole = L.WHOLE
    count = get(table, L.T_COUNT)
    far = far_rows(table, count)
    for row in range(count):
        if row < far:
            expect_row(table, rows, row + _AHEAD)
        slot = slot_of(hash_row(rows, row * arity, arity, whole), size)
        while load32(slots, slot):
            slot += 1
            if slot == size:
                slot = 0
        store32(slots, slot, row + 1)


@kernel
def fill_index(table: int, index: int, first: int) -> int:
    """Chain the rows from `first` on; return the first row that found the index full, or the count."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    mask = get(here, L.I_MASK)
    heads = get(here, L.I_HEADS)
    size = get(here, L.I_HEAD_COUNT)
    count = get(table, L.T_COUNT)
    far = count - _AHEAD if size > _NEAR_SLOTS else 0
    for row in range(first, count):
        if is_full(get(here, L.I_USED), size):
            return row
        if row < far:
            prefetch32(heads, slot_of(hash_row(rows, (row + _AHEAD) * arity, arity, mask), size))
        link_row(table, index, row)
    return count


@kernel
def move_heads(table: int, index: int, old: int, old_size: int) -> None:
    """Enter the chains of an index into larger, empty slots."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    mask = get(here, L.I_MASK)
    heads = get(here, L.I_HEADS)
    size = get(here, L.I_HEAD_COUNT)
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
def insert_rows(table: int, given: int, total: int, key: int) -> None:
    """Insert rows given one after the other, without those that are there. There must be room for all.

    A table without a row-set takes them as they are: whoever inserts knows them to be new.
    """
    arity = get(table, L.T_ARITY)
    if not get(table, L.T_SLOTS):
        append_rows(table, given, total)
    elif arity == 2 and not get(table, L.T_INDEXES):
        insert_pairs(table, given, total)
    else:
        far = far_rows(table, total)
        for n in range(total):
            if n < far:
                expect_row(table, given, n + _AHEAD)
            for column in range(arity):
                put(key, column, load32(given, n * arity + column))
            slot = -1 - find_row(table, key)
            if slot >= 0:
                append_row(table, key, slot)


@kernel
def append_rows(table: int, given: int, total: int) -> None:
    """Append rows that are new and distinct to a table without a row-set."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    count = get(table, L.T_COUNT)
    for n in range(total * arity):
        store32(rows, count * arity + n, load32(given, n))
    put(table, L.T_COUNT, count + total)
    for index in range(get(table, L.T_INDEXES)):
        for row in range(count, count + total):
            link_row(table, index, row)


@kernel
def insert_pairs(table: int, given: int, total: int) -> None:
    """Insert rows of two columns into a table without indexes: the same, with nothing in the way."""
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    size = get(table, L.T_SLOT_COUNT)
    count = get(table, L.T_COUNT)
    far = far_rows(table, total)
    for n in range(total):
        if n < far:
            expect_row(table, given, n + _AHEAD)
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
    put(table, L.T_COUNT, count)


@kernel
def partition_rows(given: int, sorted_rows: int, total: int, arity: int, parts: int, counts: int) -> None:
    """Copy rows so that those whose slots lie close together stand together.

    A large row-set is then visited part by part, and each part stays in the processor's cache.
    """
    whole = L.WHOLE
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


@kernel
def sift_rows(table: int, given: int, total: int, present: bool, out: int, key: int) -> int:
    """Count the given rows that are in a table, or those that are not; write them out where asked."""
    arity = get(table, L.T_ARITY)
    found = 0
    far = far_rows(table, total)
    if arity == 2 and not out:
        for n in range(total):
            if n < far:
                expect_row(table, given, n + _AHEAD)
            if (find_pair(table, load32(given, 2 * n), load32(given, 2 * n + 1)) >= 0) == present:
                found += 1
        return found
    for n in range(total):
        if n < far:
            expect_row(table, given, n + _AHEAD)
        for column in range(arity):
            put(key, column, load32(given, n * arity + column))
        if (find_row(table, key) >= 0) == present:
            if out:
                for column in range(arity):
                    store32(out, found * arity + column, get(key, column))
            found += 1
    return found


@kernel
def mark_rows(table: int, given: int, total: int, found: int, key: int) -> None:
    """Write for each of the rows given a byte that tells whether it is in the table."""
    arity = get(table, L.T_ARITY)
    far = far_rows(table, total)
    for n in range(total):
        if n < far:
            expect_row(table, given, n + _AHEAD)
        for column in range(arity):
            put(key, column, load32(given, n * arity + column))
        store8(found, n, 1 if find_row(table, key) >= 0 else 0)


@kernel
def locate_rows(table: int, given: int, total: int, found: int, key: int) -> None:
    """Write for each of the rows given where it stands in the table; a number below 0 if it does not."""
    arity = get(table, L.T_ARITY)
    far = far_rows(table, total)
    for n in range(total):
        if n < far:
            expect_row(table, given, n + _AHEAD)
        for column in range(arity):
            put(key, column, load32(given, n * arity + column))
        row = find_row(table, key)
        store32(found, n, row if row >= 0 else -1)


@kernel
def count_runs(table: int, index: int, given: int, total: int) -> int:
    """Count the given pairs that are in a table, by an index on the first column looked up once per run."""
    rows = get(table, L.T_ROWS)
    chains = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    following = get(chains, L.I_NEXT)
    term = -1
    head = -1
    long = False
    found = 0
    for n in range(total):
        first = load32(given, 2 * n)
        second = load32(given, 2 * n + 1)
        if first != term:
            term = first
            head = find_half(chains, rows, 0, first)
            row = head
            steps = 0
            while row >= 0 and steps < L.SHORT_CHAIN:
                row = load32(following, row)
                steps += 1
            long = row >= 0
        if long:
            if find_pair(table, first, second) >= 0:
                found += 1
        else:
            row = head
            while row >= 0 and load32(rows, 2 * row + 1) != second:
                row = load32(following, row)
            if row >= 0:
                found += 1
    return found
