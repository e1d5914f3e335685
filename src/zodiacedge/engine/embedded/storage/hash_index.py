"""Kernels of one table: its hash set of rows and its hash indexes.

Both are open-addressed with linear probing. A slot of the hash set holds a row; a slot of an index holds the
first row of a chain of rows with equal keys. `table` is the address of a table's record; a key is a row as
64-bit words. `delete_rows` deletes.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import mix, next_slot, slot_of
from zodiacedge.engine.embedded.kernels.jit import (
    kernel,
    load8,
    load32,
    prefetch32,
    set_bits8,
    store8,
    store32,
)
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put

# Slots are prefetched so many rows before they are probed.
_PREFETCH_DISTANCE = 16
# Up to so many slots stay in the processor's cache without prefetching.
_CACHED_SLOTS = 1 << 16


@kernel
def has_column(mask: int, column: int) -> bool:
    """Whether a mask names a column."""
    return mask < 0 or (column < L.MASK_COLUMNS and mask >> column & 1 == 1)


@kernel
def hash_row(rows: int, start: int, arity: int, mask: int) -> int:
    """Hash the columns of a row that a mask names; the row starts at a word of `rows`."""
    hashed = 7
    for column in range(arity):
        if has_column(mask, column):
            hashed = mix(hashed, load32(rows, start + column))
    return hashed


@kernel
def hash_key(key: int, arity: int, mask: int) -> int:
    """Hash the columns of a key that a mask names."""
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
    """Return the row that equals a key, or -1 - slot, where the slot is the free one for it."""
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
        slot = next_slot(slot, size)


@kernel
def find_pair(table: int, first: int, second: int) -> int:
    """Return the row that equals two terms, or -1 - slot: `find_row` for two columns."""
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
        slot = next_slot(slot, size)


@kernel
def find_pair_chain(chains: int, rows: int, column: int, term: int) -> int:
    """Return the first row of a term's chain in an index on one of two columns, or -1.

    `chains` is the address of the index's record.
    """
    heads = get(chains, L.I_HEADS)
    size = get(chains, L.I_HEAD_COUNT)
    slot = slot_of(mix(7, term), size)
    while True:
        row = load32(heads, slot) - 1
        if row < 0 or load32(rows, 2 * row + column) == term:
            return row
        slot = next_slot(slot, size)


@kernel
def find_chain(table: int, index: int, key: int) -> int:
    """Return the first row of a key's chain in an index, or -1."""
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
        slot = next_slot(slot, size)


@kernel
def is_full(used: int, slots: int) -> bool:
    """Whether one more entry would exceed the load factor of a hash table."""
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
    """Insert a row at the head of its chain."""
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
        slot = next_slot(slot, size)
    store32(heads, slot, row + 1)
    store32(following, row, first)
    if previous:
        store32(previous, row, -1)
        if first >= 0:
            store32(previous, first, row)


@kernel
def append_row(table: int, key: int, slot: int) -> None:
    """Append a new row; `slot` is its free slot, or -1 where there is no hash set."""
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
def set_pair_bit(bits: int, terms: int, first: int, second: int, shared: int) -> bool:
    """Set the bit of a pair of terms; return whether it was clear. Two threads may set `shared` bits."""
    position = first * terms + second
    bit = 1 << (position & 7)
    old = load8(bits, position >> 3)
    if old & bit:
        return False
    if shared:
        return set_bits8(bits, position >> 3, bit) & bit == 0
    store8(bits, position >> 3, old | bit)
    return True


@kernel
def has_pair_bit(table: int, first: int, second: int) -> bool:
    """Whether the bit of a pair of terms is set; a single term has 0 as its first."""
    if first < 0 or second < 0:
        return False
    position = first * get(table, L.T_TERMS) + second
    return (load8(get(table, L.T_BITS), position >> 3) >> (position & 7)) & 1 == 1


@kernel
def insert_by_bits(table: int, given: int, total: int) -> None:
    """Append the given rows, of one or two columns, whose bits are clear, and set the bits."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    count = get(table, L.T_COUNT)
    bits = get(table, L.T_BITS)
    terms = get(table, L.T_TERMS)
    for n in range(total):
        first = load32(given, n * arity)
        second = load32(given, n * arity + arity - 1)
        if set_pair_bit(bits, terms, first if arity == 2 else 0, second, 0):
            store32(rows, count * arity, first)
            store32(rows, count * arity + arity - 1, second)
            count += 1
    put(table, L.T_COUNT, count)


@kernel
def collect_terms(bits: int, given: int, total: int, width: int, column: int, out: int, count: int) -> int:
    """Set the bit of each term in a column; append the terms whose bits were clear to `out`, unless it is 0.

    Return the number of terms, of which `count` were there before.
    """
    for n in range(total):
        term = load32(given, n * width + column)
        if set_pair_bit(bits, 0, 0, term, 0):
            if out:
                store32(out, count, term)
            count += 1
    return count


@kernel
def clear_bits(bits: int, terms: int, count: int) -> None:
    """Clear the bits of some terms, and of those that share a byte with them."""
    for n in range(count):
        store8(bits, load32(terms, n) >> 3, 0)


@kernel
def count_members(steps: int, groups: int, bits: int, counts: int) -> None:
    """Count the distinct terms of each group of tables of one column. All bits are clear, and stay so.

    The steps are, for each group, the number of its tables and their records.
    """
    at = 0
    for group in range(groups):
        last = at + get(steps, at)
        for n in range(at + 1, last + 1):
            table = get(steps, n)
            rows, total = get(table, L.T_ROWS), get(table, L.T_COUNT)
            put(counts, group, collect_terms(bits, rows, total, 1, 0, 0, get(counts, group)))
        for n in range(at + 1, last + 1):
            table = get(steps, n)
            clear_bits(bits, get(table, L.T_ROWS), get(table, L.T_COUNT))
        at = last + 1


@kernel
def prefetch_end(table: int, total: int) -> int:
    """Return the number of rows that prefetch the slot of a later row: 0 if all slots stay in the cache."""
    return total - _PREFETCH_DISTANCE if get(table, L.T_SLOT_COUNT) > _CACHED_SLOTS else 0


@kernel
def prefetch_slot(table: int, given: int, n: int) -> None:
    """Prefetch the home slot of a given row."""
    arity = get(table, L.T_ARITY)
    whole = L.WHOLE
    slot = slot_of(hash_row(given, n * arity, arity, whole), get(table, L.T_SLOT_COUNT))
    prefetch32(get(table, L.T_SLOTS), slot)


@kernel
def find_given(table: int, given: int, n: int, far: int, key: int) -> int:
    """Return what `find_row` finds for a given row, which is copied to `key`; `far` is a `prefetch_end`."""
    arity = get(table, L.T_ARITY)
    if n < far:
        prefetch_slot(table, given, n + _PREFETCH_DISTANCE)
    for column in range(arity):
        put(key, column, load32(given, n * arity + column))
    return find_row(table, key)


@kernel
def build_hash_set(table: int) -> None:
    """Enter all rows, which are distinct, into the empty slots of a hash set."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    size = get(table, L.T_SLOT_COUNT)
    whole = L.WHOLE
    count = get(table, L.T_COUNT)
    far = prefetch_end(table, count)
    for row in range(count):
        if row < far:
            prefetch_slot(table, rows, row + _PREFETCH_DISTANCE)
        slot = slot_of(hash_row(rows, row * arity, arity, whole), size)
        while load32(slots, slot):
            slot = next_slot(slot, size)
        store32(slots, slot, row + 1)


@kernel
def fill_index(table: int, index: int, first: int) -> int:
    """Link the rows from `first` on; return the row at which the index was full, or the count."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    mask = get(here, L.I_MASK)
    heads = get(here, L.I_HEADS)
    size = get(here, L.I_HEAD_COUNT)
    count = get(table, L.T_COUNT)
    far = count - _PREFETCH_DISTANCE if size > _CACHED_SLOTS else 0
    for row in range(first, count):
        if is_full(get(here, L.I_USED), size):
            return row
        if row < far:
            prefetch32(heads, slot_of(hash_row(rows, (row + _PREFETCH_DISTANCE) * arity, arity, mask), size))
        link_row(table, index, row)
    return count


@kernel
def rehash_heads(table: int, index: int, old: int, old_size: int) -> None:
    """Enter the chains of an index into new, empty slots."""
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
                slot = next_slot(slot, size)
            store32(heads, slot, row + 1)


@kernel
def insert_rows(table: int, given: int, total: int, key: int) -> None:
    """Insert the given rows that are new. There must be room for all.

    A table without a hash set takes all rows: the caller knows them to be new and distinct.
    """
    arity = get(table, L.T_ARITY)
    if not get(table, L.T_SLOTS):
        append_rows(table, given, total)
    elif arity == 2 and not get(table, L.T_INDEXES):
        insert_pairs(table, given, total)
    else:
        far = prefetch_end(table, total)
        for n in range(total):
            if n < far:
                prefetch_slot(table, given, n + _PREFETCH_DISTANCE)
            for column in range(arity):
                put(key, column, load32(given, n * arity + column))
            slot = -1 - find_row(table, key)
            if slot >= 0:
                append_row(table, key, slot)


@kernel
def append_rows(table: int, given: int, total: int) -> None:
    """Append rows that are new and distinct to a table without a hash set."""
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
    """Insert rows of two columns into a table without indexes: `insert_rows` for that case."""
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    size = get(table, L.T_SLOT_COUNT)
    count = get(table, L.T_COUNT)
    far = prefetch_end(table, total)
    for n in range(total):
        if n < far:
            prefetch_slot(table, given, n + _PREFETCH_DISTANCE)
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
            slot = next_slot(slot, size)
    put(table, L.T_COUNT, count)


@kernel
def sort_pairs(given: int, sorted_rows: int, total: int, terms: int) -> None:
    """Copy pairs of terms, sorted by their first; behind them is room for a count per term.

    The next round then looks up the same keys one after the other, and its bits are close together.
    """
    counts = 2 * total
    for term in range(terms):
        store32(sorted_rows, counts + term, 0)
    for n in range(total):
        first = load32(given, 2 * n)
        store32(sorted_rows, counts + first, load32(sorted_rows, counts + first) + 1)
    before = 0
    for term in range(terms):
        count = load32(sorted_rows, counts + term)
        store32(sorted_rows, counts + term, before)
        before += count
    for n in range(total):
        first = load32(given, 2 * n)
        at = load32(sorted_rows, counts + first)
        store32(sorted_rows, counts + first, at + 1)
        store32(sorted_rows, 2 * at, first)
        store32(sorted_rows, 2 * at + 1, load32(given, 2 * n + 1))


@kernel
def partition_rows(
    given: int, sorted_rows: int, total: int, arity: int, partitions: int, counts: int
) -> None:
    """Partition rows by home slot.

    A large hash set is then probed one partition at a time, and each partition stays in the cache.
    """
    whole = L.WHOLE
    for partition in range(partitions):
        put(counts, partition, 0)
    for n in range(total):
        partition = slot_of(hash_row(given, n * arity, arity, whole), partitions)
        put(counts, partition, get(counts, partition) + 1)
    start = 0
    for partition in range(partitions):
        size = get(counts, partition)
        put(counts, partition, start)
        start += size
    for n in range(total):
        partition = slot_of(hash_row(given, n * arity, arity, whole), partitions)
        row = get(counts, partition)
        put(counts, partition, row + 1)
        for column in range(arity):
            store32(sorted_rows, row * arity + column, load32(given, n * arity + column))


@kernel
def filter_rows(table: int, given: int, total: int, present: int, out: int, key: int) -> int:
    """Count the given rows that are in a table, or those that are not; write them to `out` if it is not 0."""
    arity = get(table, L.T_ARITY)
    count = 0
    far = prefetch_end(table, total)
    if arity == 2 and not out:
        for n in range(total):
            if n < far:
                prefetch_slot(table, given, n + _PREFETCH_DISTANCE)
            if (find_pair(table, load32(given, 2 * n), load32(given, 2 * n + 1)) >= 0) == present:
                count += 1
        return count
    for n in range(total):
        if (find_given(table, given, n, far, key) >= 0) == present:
            if out:
                for column in range(arity):
                    store32(out, count * arity + column, get(key, column))
            count += 1
    return count


@kernel
def locate_rows(table: int, given: int, total: int, out: int, key: int) -> None:
    """Write the position of each given row in the table, or -1."""
    far = prefetch_end(table, total)
    for n in range(total):
        store32(out, n, max(find_given(table, given, n, far, key), -1))


@kernel
def count_pairs_by_run(table: int, index: int, given: int, total: int) -> int:
    """Count the given pairs that are in a table; runs of one first column share an index lookup."""
    rows = get(table, L.T_ROWS)
    chains = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    following = get(chains, L.I_NEXT)
    term = -1
    head = -1
    long = False
    count = 0
    for n in range(total):
        first = load32(given, 2 * n)
        second = load32(given, 2 * n + 1)
        if first != term:
            term = first
            head = find_pair_chain(chains, rows, 0, first)
            row = head
            steps = 0
            while row >= 0 and steps < L.SHORT_CHAIN:
                row = load32(following, row)
                steps += 1
            long = row >= 0
        if long:
            if find_pair(table, first, second) >= 0:
                count += 1
        else:
            row = head
            while row >= 0 and load32(rows, 2 * row + 1) != second:
                row = load32(following, row)
            if row >= 0:
                count += 1
    return count
