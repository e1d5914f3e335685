"""Hashes of words, and the slot of a hash table where the search for a hash starts."""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import kernel, multiply63

# The golden ratio's share of 63 bits, made odd: terms that follow each other, as ids do, are spread evenly.
_MIX = 0x4F1BBCDCBFA53E0B


@kernel
def mix(hashed: int, word: int) -> int:
    """Return a hash that also depends on one more word."""
    hashed = multiply63(hashed ^ word, _MIX)
    return hashed ^ (hashed >> 29)


@kernel
def slot_of(hashed: int, slots: int) -> int:
    """Return the slot where a hash's search starts, of any number of slots."""
    return ((hashed >> 31) * slots) >> 32
