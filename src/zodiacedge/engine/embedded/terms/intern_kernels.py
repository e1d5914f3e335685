"""Kernels of the dictionary: find a term by kind and payload, or append it with the next id.

The dictionary is a hash table with linear probing. A text may lie anywhere in memory; a new text is copied to
the end of the dictionary's arena. Callers check `has_room`, and make room with `Dictionary.reserve`.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import mix, next_slot, slot_of
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store8, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put


@kernel
def has_room(dictionary: int, more: int) -> bool:
    """Whether so many more terms fit; at most half of the slots are used."""
    count = get(dictionary, L.D_COUNT) + more
    return count <= get(dictionary, L.D_CAPACITY) and count * 2 <= get(dictionary, L.D_SLOT_COUNT)


@kernel
def hash_bytes(kind: int, base: int, start: int, length: int) -> int:
    """Return the hash of a text."""
    hashed = mix(kind, length)
    word = 0
    for n in range(length):
        word = (word << 8) | (load8(base, start + n) & 255)
        if (n & 3) == 3:
            hashed = mix(hashed, word)
            word = 0
    return mix(hashed, word)


@kernel
def hash_number(kind: int, payload: int) -> int:
    """Return the hash of a number."""
    return mix(mix(kind, payload & 0xFFFFFFFF), (payload >> 32) & 0xFFFFFFFF)


@kernel
def same_bytes(base: int, start: int, other: int, other_start: int, length: int) -> bool:
    """Whether two texts of equal length are equal."""
    for n in range(length):
        if load8(base, start + n) != load8(other, other_start + n):
            return False
    return True


@kernel
def copy_bytes(base: int, start: int, length: int, target: int, target_start: int) -> None:
    """Copy a text."""
    for n in range(length):
        store8(target, target_start + n, load8(base, start + n))


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
    text = get(dictionary, L.D_TEXT)
    slot = slot_of(hashed, size)
    while True:
        number = load32(slots, slot) - 1
        if number < 0:
            return -1 - slot
        if load8(kinds, number) == kind:
            if kind > L.K_OTHER:
                if get(payloads, number) == payload:
                    return number
            elif load32(lengths, number) == length and same_bytes(
                text, get(payloads, number), base, start, length
            ):
                return number
        slot = next_slot(slot, size)


@kernel
def add_term(dictionary: int, kind: int, payload: int, length: int, slot: int) -> int:
    """Append a term and return its id."""
    number = get(dictionary, L.D_COUNT)
    store8(get(dictionary, L.D_KINDS), number, kind)
    put(get(dictionary, L.D_PAYLOADS), number, payload)
    store32(get(dictionary, L.D_LENGTHS), number, length)
    store32(get(dictionary, L.D_SLOTS), slot, number + 1)
    put(dictionary, L.D_COUNT, number + 1)
    return number


@kernel
def intern_number(dictionary: int, kind: int, payload: int) -> int:
    """Return the id of a number; there must be room for one more term."""
    number = find_term(dictionary, kind, payload, 0, 0, 0, hash_number(kind, payload))
    return number if number >= 0 else add_term(dictionary, kind, payload, 0, -1 - number)


@kernel
def intern_text(dictionary: int, kind: int, base: int, start: int, length: int) -> int:
    """Return the id of a text; there must be room for one more term and for the text.

    A text that is already in the arena lies at its end, and stays there if it is new.
    """
    number = find_term(dictionary, kind, 0, base, start, length, hash_bytes(kind, base, start, length))
    if number >= 0:
        return number
    text = get(dictionary, L.D_TEXT)
    end = get(dictionary, L.D_TEXT_END)
    if base != text:
        copy_bytes(base, start, length, text, end)
    put(dictionary, L.D_TEXT_END, end + length)
    return add_term(dictionary, kind, end, length, -1 - number)


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
    return number if number >= 0 else -1


@kernel
def gather_texts(dictionary: int, ids: int, total: int, out: int) -> None:
    """Concatenate the texts of terms, all of which must have one."""
    payloads = get(dictionary, L.D_PAYLOADS)
    lengths = get(dictionary, L.D_LENGTHS)
    text = get(dictionary, L.D_TEXT)
    end = 0
    for n in range(total):
        number = load32(ids, n)
        length = load32(lengths, number)
        copy_bytes(text, get(payloads, number), length, out, end)
        end += length


@kernel
def rehash_terms(dictionary: int) -> None:
    """Enter all terms into empty slots."""
    kinds = get(dictionary, L.D_KINDS)
    payloads = get(dictionary, L.D_PAYLOADS)
    lengths = get(dictionary, L.D_LENGTHS)
    slots = get(dictionary, L.D_SLOTS)
    size = get(dictionary, L.D_SLOT_COUNT)
    text = get(dictionary, L.D_TEXT)
    for number in range(get(dictionary, L.D_COUNT)):
        kind = load8(kinds, number)
        payload = get(payloads, number)
        if kind > L.K_OTHER:
            hashed = hash_number(kind, payload)
        else:
            hashed = hash_bytes(kind, text, payload, load32(lengths, number))
        slot = slot_of(hashed, size)
        while load32(slots, slot):
            slot = next_slot(slot, size)
        store32(slots, slot, number + 1)
