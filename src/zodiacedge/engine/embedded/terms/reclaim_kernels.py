"""Kernels that reclaim terms: mark the terms of rows, free the terms that are not marked, compact texts.

The free ids of each class of holes are a list, linked through the length field, the lowest first: so the ids
at the end become free in time, and are dropped.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import next_slot, slot_of
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store8, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.terms.intern_kernels import hash_of, mark_used, units_of
from zodiacedge.engine.embedded.terms.shared_texts import copy_bytes, own_start, root_of_term, stored_bytes


@kernel
def mark_ids(dictionary: int, ids: int, total: int) -> int:
    """Mark terms as used, and return how many were not yet; negative numbers are no ids."""
    marks = get(dictionary, L.D_MARKS)
    new = 0
    for n in range(total):
        number = load32(ids, n)
        if number >= 0 and not load8(marks, number):
            mark_used(dictionary, number)
            new += 1
    return new


@kernel
def mark_roots(dictionary: int) -> None:
    """Mark the roots of all texts, those that a sweep will free too: it reads a text to free it."""
    marks = get(dictionary, L.D_MARKS)
    for number in range(get(dictionary, L.D_COUNT)):
        root = root_of_term(dictionary, number)
        if root >= 0:
            store8(marks, root, 1)


@kernel
def remove_slot(dictionary: int, number: int) -> None:
    """Free the slot of a term, and shift back the entries that probing would no longer reach across it."""
    slots = get(dictionary, L.D_SLOTS)
    size = get(dictionary, L.D_SLOT_COUNT)
    hole = slot_of(hash_of(dictionary, number), size)
    while load32(slots, hole) != number + 1:
        hole = next_slot(hole, size)
    slot = hole
    while True:
        slot = next_slot(slot, size)
        entry = load32(slots, slot)
        if not entry:
            break
        home = slot_of(hash_of(dictionary, entry - 1), size)
        reachable = hole < home <= slot if hole <= slot else home > hole or home <= slot
        if not reachable:
            store32(slots, hole, entry)
            hole = slot
    store32(slots, hole, 0)


@kernel
def free_term(dictionary: int, number: int) -> None:
    """Free a term: its id, with a hole for a text of the same class."""
    kinds = get(dictionary, L.D_KINDS)
    payloads = get(dictionary, L.D_PAYLOADS)
    remove_slot(dictionary, number)
    payload = 0
    if load8(kinds, number) <= L.K_OTHER:
        units = units_of(stored_bytes(dictionary, number))
        put(dictionary, L.D_WASTE, get(dictionary, L.D_WASTE) + units * L.TEXT_UNIT)
        if units < L.HOLE_CLASSES:
            payload = (own_start(get(payloads, number)) << L.HOLE_BITS) | units
    put(payloads, number, payload)
    store8(kinds, number, L.K_FREE)


@kernel
def list_free_id(dictionary: int, number: int) -> None:
    """Append a free id to the list of its class."""
    lengths = get(dictionary, L.D_LENGTHS)
    holes = get(dictionary, L.D_HOLES)
    hole = get(get(dictionary, L.D_PAYLOADS), number) & ((1 << L.HOLE_BITS) - 1)
    store32(lengths, number, 0)
    if get(holes, hole):
        store32(lengths, get(holes, L.HOLE_CLASSES + hole), number + 1)
    else:
        put(holes, hole, number + 1)
    put(holes, L.HOLE_CLASSES + hole, number)
    put(dictionary, L.D_FREE, get(dictionary, L.D_FREE) + 1)


@kernel
def sweep_terms(dictionary: int, first: int, end: int) -> int:
    """Free the unmarked terms among some ids, and list the free ids; return how many were freed."""
    kinds = get(dictionary, L.D_KINDS)
    marks = get(dictionary, L.D_MARKS)
    freed = 0
    for number in range(first, end):
        if load8(kinds, number) != L.K_FREE:
            if load8(marks, number):
                continue
            free_term(dictionary, number)
            freed += 1
        list_free_id(dictionary, number)
    return freed


@kernel
def last_used(dictionary: int) -> int:
    """Return the number of ids up to the last one that is not free."""
    kinds = get(dictionary, L.D_KINDS)
    count = get(dictionary, L.D_COUNT)
    while count > 0 and load8(kinds, count - 1) == L.K_FREE:
        count -= 1
    return count


@kernel
def used_units(dictionary: int) -> int:
    """Return how many units of the arena all texts take."""
    kinds = get(dictionary, L.D_KINDS)
    units = 0
    for number in range(get(dictionary, L.D_COUNT)):
        kind = load8(kinds, number)
        if kind != L.K_FREE and kind <= L.K_OTHER:
            units += units_of(stored_bytes(dictionary, number))
    return units


@kernel
def compact_texts(dictionary: int, payloads: int, text: int) -> int:
    """Copy all texts to a new arena, their places to new payloads, without holes; return the end."""
    kinds = get(dictionary, L.D_KINDS)
    old_payloads = get(dictionary, L.D_PAYLOADS)
    old_text = get(dictionary, L.D_TEXT)
    end = 0
    for number in range(get(dictionary, L.D_COUNT)):
        kind = load8(kinds, number)
        payload = get(old_payloads, number)
        if kind == L.K_FREE:
            payload = 0
        elif kind <= L.K_OTHER:
            size = stored_bytes(dictionary, number)
            start = own_start(payload)
            copy_bytes(old_text, start, size, text, end)
            payload += end - start
            end += units_of(size) * L.TEXT_UNIT
        put(payloads, number, payload)
    return end


@kernel
def list_free_ids(dictionary: int) -> None:
    """List all free ids again, after ids were dropped or holes closed."""
    kinds = get(dictionary, L.D_KINDS)
    holes = get(dictionary, L.D_HOLES)
    put(dictionary, L.D_FREE, 0)
    for hole in range(L.HOLE_CLASSES):
        put(holes, hole, 0)
    for number in range(get(dictionary, L.D_COUNT)):
        if load8(kinds, number) == L.K_FREE:
            list_free_id(dictionary, number)
