"""Kernels that delete rows of a table, its hash set and its indexes, without tombstones.

Deletion from a hash table shifts back the entries that probing would no longer reach across the free slot.
The last row moves into the position of the deleted row. Chains are doubly linked for that, from the first
deletion on.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import next_slot, slot_of
from zodiacedge.engine.embedded.kernels.jit import kernel, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.storage.hash_index import find_given, hash_row, prefetch_end


@kernel
def find_slot(slots: int, size: int, rows: int, arity: int, mask: int, row: int) -> int:
    """Return the slot that holds a row, of a hash set or as the head of a chain."""
    slot = slot_of(hash_row(rows, row * arity, arity, mask), size)
    while load32(slots, slot) != row + 1:
        slot = next_slot(slot, size)
    return slot


@kernel
def free_slot(slots: int, size: int, rows: int, arity: int, mask: int, hole: int) -> None:
    """Free a slot, and shift back the entries that probing would no longer reach across it."""
    slot = hole
    while True:
        slot = next_slot(slot, size)
        entry = load32(slots, slot)
        if not entry:
            break
        home = slot_of(hash_row(rows, (entry - 1) * arity, arity, mask), size)
        reachable = hole < home <= slot if hole <= slot else home > hole or home <= slot
        if not reachable:
            store32(slots, hole, entry)
            hole = slot
    store32(slots, hole, 0)


@kernel
def fill_previous(table: int, index: int) -> None:
    """Link every row to its predecessor in its chain."""
    here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    following = get(here, L.I_NEXT)
    previous = get(here, L.I_PREVIOUS)
    count = get(table, L.T_COUNT)
    for row in range(count):
        store32(previous, row, -1)
    for row in range(count):
        after = load32(following, row)
        if after >= 0:
            store32(previous, after, row)


@kernel
def unlink_row(table: int, index: int, row: int) -> None:
    """Unlink a row from its chain."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
    mask = get(here, L.I_MASK)
    heads = get(here, L.I_HEADS)
    size = get(here, L.I_HEAD_COUNT)
    following = get(here, L.I_NEXT)
    previous = get(here, L.I_PREVIOUS)
    before = load32(previous, row)
    after = load32(following, row)
    if after >= 0:
        store32(previous, after, before)
    if before >= 0:
        store32(following, before, after)
        return
    slot = find_slot(heads, size, rows, arity, mask, row)
    if after >= 0:
        store32(heads, slot, after + 1)
    else:
        free_slot(heads, size, rows, arity, mask, slot)
        put(here, L.I_USED, get(here, L.I_USED) - 1)


@kernel
def move_row(table: int, row: int, to: int) -> None:
    """Move a row to the position of a row that the hash set and the indexes no longer hold."""
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    slot = find_slot(slots, get(table, L.T_SLOT_COUNT), rows, arity, L.WHOLE, row)
    store32(slots, slot, to + 1)
    for index in range(get(table, L.T_INDEXES)):
        here = table + 8 * (L.T_FIRST_INDEX + index * L.INDEX_WORDS)
        following = get(here, L.I_NEXT)
        previous = get(here, L.I_PREVIOUS)
        before = load32(previous, row)
        after = load32(following, row)
        if before >= 0:
            store32(following, before, to)
        else:
            heads = get(here, L.I_HEADS)
            first = find_slot(heads, get(here, L.I_HEAD_COUNT), rows, arity, get(here, L.I_MASK), row)
            store32(heads, first, to + 1)
        if after >= 0:
            store32(previous, after, to)
        store32(following, to, after)
        store32(previous, to, before)
    for column in range(arity):
        store32(rows, to * arity + column, load32(rows, row * arity + column))


@kernel
def delete_rows(table: int, given: int, total: int, key: int) -> None:
    """Delete the given rows that are in the table; the last row moves into each gap.

    The table has a hash set, and its chains are doubly linked.
    """
    arity = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    slots = get(table, L.T_SLOTS)
    size = get(table, L.T_SLOT_COUNT)
    whole = L.WHOLE
    far = prefetch_end(table, total)
    for n in range(total):
        row = find_given(table, given, n, far, key)
        if row < 0:
            continue
        for index in range(get(table, L.T_INDEXES)):
            unlink_row(table, index, row)
        free_slot(slots, size, rows, arity, whole, find_slot(slots, size, rows, arity, whole, row))
        last = get(table, L.T_COUNT) - 1
        if row != last:
            move_row(table, last, row)
        put(table, L.T_COUNT, last)
