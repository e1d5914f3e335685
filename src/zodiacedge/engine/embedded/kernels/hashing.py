"""Hash functions of the engine's hash tables, which are open-addressed with linear probing."""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import kernel, multiply63

# Fibonacci hashing, in 63 bits: consecutive ids are spread evenly.
_MIX = 0x4F1BBCDCBFA53E0B


@kernel
def mix(hashed: int, word: int) -> int:
    """Mix one more word into a hash."""
    hashed = multiply63(hashed ^ word, _MIX)
    return hashed ^ (hashed >> 29)


@kernel
def slot_of(hashed: int, slots: int) -> int:
    """Return the home slot of a hash, where probing starts; the number of slots is arbitrary."""
    return ((hashed >> 31) * slots) >> 32


@kernel
def next_slot(slot: int, slots: int) -> int:
    """Return the slot that is probed after another."""
    return slot + 1 if slot + 1 < slots else 0
