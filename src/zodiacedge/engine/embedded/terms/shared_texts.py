"""Texts that share bytes: a text is stored without those at its begin and end that its root has too.

The IRIs of one namespace, or names like `Department3-University0-Course7`, differ in a few bytes. A whole
text is the root of the similar texts after it, until a text differs from it in most of its bytes. A root has
no root itself, so that a text is never more than two pieces of its root and one of its own.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import mix
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store8
from zodiacedge.engine.embedded.kernels.jit import load64 as get


@kernel
def own_start(payload: int) -> int:
    """Return where the own bytes of a text are."""
    return payload & (1 << L.OFFSET_BITS) - 1


@kernel
def first_shared(payload: int) -> int:
    """Return how many bytes at the begin of a text are those of its root."""
    return payload >> L.OFFSET_BITS & (1 << L.SHARED_BITS) - 1


@kernel
def last_shared(payload: int) -> int:
    """Return how many bytes at the end of a text are those of its root."""
    return payload >> (L.OFFSET_BITS + L.SHARED_BITS)


@kernel
def root_of(text: int, after: int) -> int:
    """Return the number of a root, which is after the own bytes of a text."""
    number = 0
    for n in range(L.ROOT_BYTES):
        number |= (load8(text, after + n) & 255) << (8 * n)
    return number


@kernel
def same_bytes(base: int, start: int, other: int, other_start: int, length: int) -> bool:
    """Whether two texts of equal length are equal; similar texts differ at their ends."""
    n = length - 1
    while n >= 0 and load8(base, start + n) == load8(other, other_start + n):
        n -= 1
    return n < 0


@kernel
def copy_bytes(base: int, start: int, length: int, target: int, target_start: int) -> None:
    """Copy a text; it may move to a place before its own."""
    for n in range(length):
        store8(target, target_start + n, load8(base, start + n))


@kernel
def same_text(dictionary: int, number: int, base: int, start: int, length: int) -> bool:
    """Whether the text of a term equals a text of the same length."""
    text = get(dictionary, L.D_TEXT)
    payload = get(get(dictionary, L.D_PAYLOADS), number)
    if not payload >> L.OFFSET_BITS:
        return same_bytes(text, payload, base, start, length)
    at = own_start(payload)
    first = first_shared(payload)
    last = last_shared(payload)
    own = length - first - last
    if not same_bytes(text, at, base, start + first, own):
        return False
    root = root_of(text, at + own)
    whole = get(get(dictionary, L.D_PAYLOADS), root)
    end = whole + load32(get(dictionary, L.D_LENGTHS), root)
    return same_bytes(text, end - last, base, start + length - last, last) and same_bytes(
        text, whole, base, start, first
    )


@kernel
def copy_text(dictionary: int, number: int, target: int, target_start: int) -> int:
    """Copy the text of a term; return its length."""
    text = get(dictionary, L.D_TEXT)
    payload = get(get(dictionary, L.D_PAYLOADS), number)
    lengths = get(dictionary, L.D_LENGTHS)
    length = load32(lengths, number)
    at = own_start(payload)
    first = first_shared(payload)
    last = last_shared(payload)
    own = length - first - last
    copy_bytes(text, at, own, target, target_start + first)
    if first or last:
        root = root_of(text, at + own)
        whole = get(get(dictionary, L.D_PAYLOADS), root)
        copy_bytes(text, whole, first, target, target_start)
        copy_bytes(text, whole + load32(lengths, root) - last, last, target, target_start + first + own)
    return length


@kernel
def text_byte(dictionary: int, number: int, n: int) -> int:
    """Return a byte of the text of a term."""
    text = get(dictionary, L.D_TEXT)
    payload = get(get(dictionary, L.D_PAYLOADS), number)
    first = first_shared(payload)
    last = last_shared(payload)
    lengths = get(dictionary, L.D_LENGTHS)
    own = load32(lengths, number) - first - last
    if first <= n < first + own:
        return load8(text, own_start(payload) + n - first) & 255
    root = root_of(text, own_start(payload) + own)
    whole = get(get(dictionary, L.D_PAYLOADS), root)
    if n < first:
        return load8(text, whole + n) & 255
    return load8(text, whole + load32(lengths, root) - last + n - first - own) & 255


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
def hash_text(dictionary: int, number: int, kind: int) -> int:
    """Return the hash of the text of a term: `hash_bytes` of all its pieces."""
    text = get(dictionary, L.D_TEXT)
    payload = get(get(dictionary, L.D_PAYLOADS), number)
    lengths = get(dictionary, L.D_LENGTHS)
    length = load32(lengths, number)
    if not payload >> L.OFFSET_BITS:
        return hash_bytes(kind, text, payload, length)
    first = first_shared(payload)
    last = last_shared(payload)
    at = own_start(payload)
    own = length - first - last
    root = root_of(text, at + own)
    whole = get(get(dictionary, L.D_PAYLOADS), root)
    # Where the first byte of the text would be, for each of its pieces.
    middle = at - first
    end = whole + load32(lengths, root) - length
    hashed = mix(kind, length)
    word = 0
    for n in range(length):
        piece = whole if n < first else middle if n < first + own else end
        word = (word << 8) | (load8(text, piece + n) & 255)
        if (n & 3) == 3:
            hashed = mix(hashed, word)
            word = 0
    return mix(hashed, word)


@kernel
def stored_bytes(dictionary: int, number: int) -> int:
    """Return how many bytes the text of a term takes in the arena: its own, and the number of its root."""
    payload = get(get(dictionary, L.D_PAYLOADS), number)
    length = load32(get(dictionary, L.D_LENGTHS), number)
    if not payload >> L.OFFSET_BITS:
        return length
    return length - first_shared(payload) - last_shared(payload) + L.ROOT_BYTES


@kernel
def root_of_term(dictionary: int, number: int) -> int:
    """Return the root of a term, or -1 if the term has none."""
    payload = get(get(dictionary, L.D_PAYLOADS), number)
    kind = load8(get(dictionary, L.D_KINDS), number)
    if kind == L.K_FREE or kind > L.K_OTHER or not payload >> L.OFFSET_BITS:
        return -1
    own = stored_bytes(dictionary, number) - L.ROOT_BYTES
    return root_of(get(dictionary, L.D_TEXT), own_start(payload) + own)


@kernel
def latest_root(dictionary: int, family: int) -> int:
    """Return the term that new texts of a class may share bytes with, or -1.

    Its id may have been reclaimed, and be that of another term since: any whole text will do.
    """
    root = get(dictionary, L.D_ROOTS + family) - 1
    if root < 0 or root >= get(dictionary, L.D_COUNT):
        return -1
    kind = load8(get(dictionary, L.D_KINDS), root)
    if kind == L.K_FREE or kind > L.K_OTHER:
        return -1
    return -1 if get(get(dictionary, L.D_PAYLOADS), root) >> L.OFFSET_BITS else root


@kernel
def root_class(kind: int, base: int, start: int, length: int) -> int:
    """Return the class of a text among those that have a root each: by kind, and first and last letter."""
    if not length:
        return 0
    first = load8(base, start) & 255
    last = load8(base, start + length - 1) & 255
    # Digits at the end count things of one kind.
    ends_in_digit = 0x30 <= last <= 0x39
    return (kind * 5 + first * 2 + int(ends_in_digit)) % L.ROOTS


@kernel
def shared_first(dictionary: int, root: int, base: int, start: int, length: int) -> int:
    """Return how many bytes at its begin a text shares with a root."""
    text = get(dictionary, L.D_TEXT)
    whole = get(get(dictionary, L.D_PAYLOADS), root)
    most = min(length, load32(get(dictionary, L.D_LENGTHS), root), (1 << L.SHARED_BITS) - 1)
    n = 0
    while n < most and load8(text, whole + n) == load8(base, start + n):
        n += 1
    return n


@kernel
def shared_last(dictionary: int, root: int, base: int, start: int, length: int, first: int) -> int:
    """Return how many bytes at its end, after those at its begin, a text shares with a root."""
    text = get(dictionary, L.D_TEXT)
    end = get(get(dictionary, L.D_PAYLOADS), root) + load32(get(dictionary, L.D_LENGTHS), root)
    most = min(min(length, load32(get(dictionary, L.D_LENGTHS), root)) - first, (1 << L.SHARED_BITS) - 1)
    n = 0
    while n < most and load8(text, end - 1 - n) == load8(base, start + length - 1 - n):
        n += 1
    return n
