"""Exact sums of numbers that come and go: each number is cut into digits of 32 bits at fixed places.

A number is the sum of its digits, the digit at place p times 2 to the power of 32 p. Integers have two
digits; doubles have up to three, since each is an integer of 53 bits times a power of two. Sums of digits fit
into a word, however many are added up, so nothing is rounded before a total is read, and what goes leaves no
trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Words = NDArray[np.int64]

_BITS = 32
_MASK = np.int64((1 << _BITS) - 1)
_MANTISSA_BITS = 53
# Doubles of very different sizes have digits at many places.
_MOST_PLACES = 8


def ordered_bits(bits: Words) -> Words:
    """Return the bits of doubles as words in the order of their values, or the bits of such words."""
    # The bits of a double are in the order of its value, but those of negative ones are in the reverse order.
    return bits ^ ((bits >> 63) & np.int64((1 << 63) - 1))


def digits(kind: int, keys: Words) -> dict[int, Words] | None:
    """Return the digits of integers, or of doubles in the form of `ordered_bits`, by place.

    None if they are no such numbers, not finite, or have digits at too many places.
    """
    if kind == L.K_INTEGER:
        return {0: keys & _MASK, 1: keys >> _BITS}
    if kind != L.K_DOUBLE:
        return None
    values = ordered_bits(keys).view(np.float64)
    if not np.isfinite(values).all():
        return None
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, _MANTISSA_BITS).astype(np.int64)
    places, shifts = np.divmod(exponents.astype(np.int64) - _MANTISSA_BITS, _BITS)
    low, high = (mantissas & _MASK) << shifts, (mantissas >> _BITS) << shifts
    cut = (low & _MASK, (low >> _BITS) + (high & _MASK), high >> _BITS)
    found: dict[int, Words] = {}
    for place in np.unique(places).tolist():
        here = places == place
        for n, one in enumerate(cut):
            digit = np.where(here, one, 0)
            if digit.any():
                found[place + n] = found[place + n] + digit if place + n in found else digit
        if len(found) > _MOST_PLACES:
            return None
    return found


def whole(totals: Mapping[int, Words], count: int) -> tuple[list[int], int]:
    """Return so many sums of digits as integers times a power of 2, and that power."""
    first = min(totals, default=0)
    sums = [0] * count
    for place, words in totals.items():
        shift = _BITS * (place - first)
        sums = [total + (word << shift) for total, word in zip(sums, words.tolist(), strict=True)]
    return sums, _BITS * first


def rounded(sums: list[int], power: int) -> NDArray[np.float64]:
    """Return the doubles nearest to integers times a power of 2; raise OverflowError beyond the largest."""
    if power < 0:
        divisor = 1 << -power
        return np.array([total / divisor for total in sums], np.float64)
    return np.array([float(total << power) for total in sums], np.float64)
