"""Kernels of the dictionary: find a term by kind and payload, or add it with a free id or the next one.

The dictionary is a hash table with linear probing. A text may lie anywhere in memory; a new text is copied to
a hole of the dictionary's arena, or to its end. Callers check `has_room`, and make room with
`Dictionary.reserve`. While terms are reclaimed, a term that is found or added is marked as used.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import mix, next_slot, slot_of
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store8, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.terms.shared_texts import (
    copy_bytes,
    copy_text,
    hash_bytes,
    hash_text,
    latest_root,
    root_class,
    root_of_term,
    same_text,
    shared_first,
    shared_last,
)


@kernel
def has_room(dictionary: int, more: int) -> bool:
    """Whether so many more terms fit; at most two thirds of the slots are used."""
    count = get(dictionary, L.D_COUNT) + more
    return count <= get(dictionary, L.D_CAPACITY) and count * 3 <= get(dictionary, L.D_SLOT_COUNT) * 2


@kernel
def hash_number(kind: int, payload: int) -> int:
    """Return the hash of a number."""
    return mix(mix(kind, payload & 0xFFFFFFFF), (payload >> 32) & 0xFFFFFFFF)


@kernel
def find_term(
    dictionary: int, kind: int, payload: int, base: int, start: int, length: int, hashed: int
) -> int:
    """Return the id of a term, or -1 - slot, where the slot is the free one for it."""
    kinds = get(dictionary, L.D_KINDS)
    payloads = get(dictionary, L.D_PAYLOADS)
    lengths = get(dictionary, L.D_LENGTHS)
    slots = get(dictionary, L.D_SLOTS)
    size = get(dictionary, L.D_SLOT_COUNT)
    slot = slot_of(hashed, size)
    while True:
        number = load32(slots, slot) - 1
        if number < 0:
            return -1 - slot
        if load8(kinds, number) == kind:
            if kind > L.K_OTHER:
                if get(payloads, number) == payload:
                    return number
            elif load32(lengths, number) == length and same_text(dictionary, number, base, start, length):
                return number
        slot = next_slot(slot, size)


@kernel
def mark_used(dictionary: int, number: int) -> None:
    """Mark a term and its root as used, if terms are reclaimed."""
    marks = get(dictionary, L.D_MARKS)
    if marks:
        store8(marks, number, 1)
        root = root_of_term(dictionary, number)
        if root >= 0:
            store8(marks, root, 1)


@kernel
def take_free(dictionary: int, hole: int) -> int:
    """Take a free id of a class of holes, or -1 if there is none; its payload stays until it is written."""
    holes = get(dictionary, L.D_HOLES)
    number = get(holes, hole) - 1
    if number >= 0:
        put(holes, hole, load32(get(dictionary, L.D_LENGTHS), number))
        put(dictionary, L.D_FREE, get(dictionary, L.D_FREE) - 1)
    return number


@kernel
def next_id(dictionary: int) -> int:
    """Return an id for a term without a hole."""
    number = take_free(dictionary, 0)
    if number < 0:
        number = get(dictionary, L.D_COUNT)
        put(dictionary, L.D_COUNT, number + 1)
    return number


@kernel
def write_entry(dictionary: int, number: int, kind: int, payload: int, length: int, slot: int) -> int:
    """Write a new term and return its id."""
    store8(get(dictionary, L.D_KINDS), number, kind)
    put(get(dictionary, L.D_PAYLOADS), number, payload)
    store32(get(dictionary, L.D_LENGTHS), number, length)
    store32(get(dictionary, L.D_SLOTS), slot, number + 1)
    mark_used(dictionary, number)
    return number


@kernel
def intern_number(dictionary: int, kind: int, payload: int) -> int:
    """Return the id of a number; there must be room for one more term."""
    number = find_term(dictionary, kind, payload, 0, 0, 0, hash_number(kind, payload))
    if number >= 0:
        mark_used(dictionary, number)
        return number
    return write_entry(dictionary, next_id(dictionary), kind, payload, 0, -1 - number)


@kernel
def units_of(length: int) -> int:
    """Return how many units of the arena a text takes."""
    return (length + L.TEXT_UNIT - 1) // L.TEXT_UNIT if length else 1


@kernel
def intern_text(dictionary: int, kind: int, base: int, start: int, length: int) -> int:
    """Return the id of a text; there must be room for one more term and for the text.

    A text that is already in the arena lies at its end.
    """
    found = find_term(dictionary, kind, 0, base, start, length, hash_bytes(kind, base, start, length))
    if found >= 0:
        mark_used(dictionary, found)
        return found
    text = get(dictionary, L.D_TEXT)
    family = root_class(kind, base, start, length)
    root = latest_root(dictionary, family)
    first = 0
    last = 0
    if root >= 0:
        first = shared_first(dictionary, root, base, start, length)
        last = shared_last(dictionary, root, base, start, length, first)
        left = length - first - last + L.ROOT_BYTES
        if 2 * (first + last) < length or units_of(left) + L.LEAST_SAVED > units_of(length):
            first = 0
            last = 0
    shared = first > 0 or last > 0
    own = length - first - last
    units = units_of(own + L.ROOT_BYTES if shared else own)
    number = take_free(dictionary, units) if units < L.HOLE_CLASSES else -1
    if number >= 0:
        place = get(get(dictionary, L.D_PAYLOADS), number) >> L.HOLE_BITS
        put(dictionary, L.D_WASTE, get(dictionary, L.D_WASTE) - units * L.TEXT_UNIT)
        copy_bytes(base, start + first, own, text, place)
    else:
        number = next_id(dictionary)
        place = get(dictionary, L.D_TEXT_END)
        if base != text or first:
            copy_bytes(base, start + first, own, text, place)
        put(dictionary, L.D_TEXT_END, place + units * L.TEXT_UNIT)
    payload = place
    if shared:
        payload = place | first << L.OFFSET_BITS | last << (L.OFFSET_BITS + L.SHARED_BITS)
        for n in range(L.ROOT_BYTES):
            store8(text, place + own + n, root >> (8 * n) & 255)
    else:
        put(dictionary, L.D_ROOTS + family, number + 1)
    return write_entry(dictionary, number, kind, payload, length, -1 - found)


@kernel
def intern_term(dictionary: int, kind: int, payload: int) -> int:
    """Return the id of a term, or -1 where there is no room for one more.

    The payload is a number's bits or the length of a text, which lies at the arena's end.
    """
    if not has_room(dictionary, 1):
        return -1
    if kind > L.K_OTHER:
        return intern_number(dictionary, kind, payload)
    return intern_text(dictionary, kind, get(dictionary, L.D_TEXT), get(dictionary, L.D_TEXT_END), payload)


@kernel
def intern_terms(dictionary: int, kinds: int, payloads: int, total: int, text: int, ids: int) -> None:
    """Write the ids of terms; there must be room for all of them.

    A payload is a number's bits or a text's length; the texts are concatenated.
    """
    start = 0
    for n in range(total):
        kind = load8(kinds, n)
        payload = get(payloads, n)
        if kind > L.K_OTHER:
            number = intern_number(dictionary, kind, payload)
        else:
            number = intern_text(dictionary, kind, text, start, payload)
            start += payload
        store32(ids, n, number)


@kernel
def lookup_term(dictionary: int, kind: int, payload: int, base: int, length: int) -> int:
    """Return the id of a term, or -1."""
    hashed = hash_number(kind, payload) if kind > L.K_OTHER else hash_bytes(kind, base, 0, length)
    number = find_term(dictionary, kind, payload, base, 0, length, hashed)
    if number < 0:
        return -1
    mark_used(dictionary, number)
    return number


@kernel
def gather_texts(dictionary: int, ids: int, total: int, out: int) -> None:
    """Concatenate the texts of terms, all of which must have one."""
    end = 0
    for n in range(total):
        end += copy_text(dictionary, load32(ids, n), out, end)


@kernel
def hash_of(dictionary: int, number: int) -> int:
    """Return the hash of a term."""
    kind = load8(get(dictionary, L.D_KINDS), number)
    if kind > L.K_OTHER:
        return hash_number(kind, get(get(dictionary, L.D_PAYLOADS), number))
    return hash_text(dictionary, number, kind)


@kernel
def rehash_terms(dictionary: int) -> None:
    """Enter all terms into empty slots."""
    kinds = get(dictionary, L.D_KINDS)
    slots = get(dictionary, L.D_SLOTS)
    size = get(dictionary, L.D_SLOT_COUNT)
    for number in range(get(dictionary, L.D_COUNT)):
        if load8(kinds, number) == L.K_FREE:
            continue
        slot = slot_of(hash_of(dictionary, number), size)
        while load32(slots, slot):
            slot = next_slot(slot, size)
        store32(slots, slot, number + 1)
