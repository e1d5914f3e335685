"""Kernels that parse 64-bit integers and doubles, exact to the last bit, or leave them to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.ingest.ntriples import state as ns
from zodiacedge.engine.embedded.ingest.ntriples.characters import DOT, LOWER_E, MINUS, PLUS, ZERO
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import as_bits, as_double, kernel, load8
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY_DIGITS = 18  # so many digits always fit into 63 bits
_GREATEST = 0x7FFFFFFFFFFFFFFF
_TENTH = _GREATEST // 10
_HUGE = 1 << 40  # a power of ten beyond all numbers, which can still be added to
_EXACT = 1 << 53
_EXACT_POWER = 22
_LIMB_BITS = 30
_LIMB = (1 << _LIMB_BITS) - 1
_WORD_BITS = 63

# Results for digits that are no number.
_NO_DIGITS = 1
_TOO_LARGE = 2

# A power of ten: as a double, which holds it exactly, and in three limbs.
_POWER_WORDS = 4


def _powers() -> NDArray[np.int64]:
    table: list[int] = []
    for n in range(_EXACT_POWER + 1):
        limbs = (10**n >> place * _LIMB_BITS & _LIMB for place in range(3))
        table += (int(np.float64(10**n).view(np.int64)), *limbs)
    return np.array(table, np.int64)


POWERS = _powers()


@kernel
def skip_sign(base: int, at: int, end: int) -> int:
    """Return the start of a number after its sign, if it has a sign."""
    if at < end and (load8(base, at) == MINUS or load8(base, at) == PLUS):
        return at + 1
    return at


@kernel
def read_negated(base: int, at: int, end: int) -> int:
    """Return the negated value of digits, `_NO_DIGITS`, or `_TOO_LARGE`.

    The negative numbers reach one further than the others, so digits are counted downwards.
    """
    if at == end:
        return _NO_DIGITS
    value = 0
    fits = True
    while at < end:
        digit = load8(base, at) - ZERO
        if digit < 0 or digit > 9:
            return _NO_DIGITS
        if value < -_TENTH or (value == -_TENTH and digit > 8):
            fits = False
        else:
            value = value * 10 - digit
        at += 1
    return value if fits else _TOO_LARGE


@kernel
def read_digits(base: int, at: int, end: int) -> int:
    """Return the value of at most 18 digits, or a negative number where they are no digits."""
    return -read_negated(base, at, end)


@kernel
def read_integer(state: int, base: int, start: int, end: int, least: int, greatest: int) -> int:
    """Parse an integer; return its kind, or `INVALID`."""
    at = skip_sign(base, start, end)
    value = read_negated(base, at, end)
    if value > 0:
        return ns.INVALID
    if at == start or load8(base, start) == PLUS:
        if value < -_GREATEST:
            return ns.INVALID
        value = -value
    if value < least or value > greatest:
        return ns.INVALID
    put(state, ns.N_VALUE, value)
    return L.K_INTEGER


@kernel
def against_middle(whole: int, powers: int, power: int, bits: int) -> int:
    """Return the sign of a quotient by a power of ten less the middle between a double and the next.

    The double is (2**52 + f) * 2**e; both sides are multiplied by the power of ten and by 2**(1 - e), so
    that they are whole numbers, in limbs of 30 bits. There must be something to multiply: 1 - e >= 0.
    """
    shift = 1076 - (bits >> 52)
    middle = ((bits & (_EXACT // 2 - 1)) | (_EXACT // 2)) * 2 + 1
    low = middle & _LIMB
    high = middle >> _LIMB_BITS
    here = power * _POWER_WORDS + 1
    carry = 0
    sign = 0
    for n in range(5):
        if n < 3:
            carry += low * get(powers, here + n)
        if 0 < n < 4:
            carry += high * get(powers, here + n - 1)
        right = carry & _LIMB
        carry >>= _LIMB_BITS
        step = shift - n * _LIMB_BITS
        left = 0
        if step >= 0:
            if step < _LIMB_BITS:
                left = (whole & (_LIMB >> step)) << step
        elif step > -_WORD_BITS:
            left = (whole >> -step) & _LIMB
        # The limbs come from the right, so the last ones that differ decide.
        if left > right:
            sign = 1
        elif left < right:
            sign = -1
    return sign


@kernel
def nearest(whole: int, powers: int, power: int, bits: int) -> int:
    """Return the bits of the double nearest to a quotient by a power of ten, from a guess; -1 if unknown."""
    if (bits >> 52) > 1075:
        return -1
    while True:
        sign = against_middle(whole, powers, power, bits)
        if sign > 0 or (sign == 0 and (bits & 1)):
            bits += 1
            continue
        sign = against_middle(whole, powers, power, bits - 1)
        if sign < 0 or (sign == 0 and (bits & 1)):
            bits -= 1
            continue
        return bits


@kernel
def read_real(state: int, base: int, start: int, end: int, kind: int) -> int:
    """Parse a decimal or a double; return its kind, `INVALID`, or `LATER`.

    A whole number up to 2**53 and a power of ten up to 10**22 are doubles, so their product and their
    quotient are rounded once, and right. The quotient of a larger number is a guess that is put right.
    """
    at = skip_sign(base, start, end)
    whole = 0
    digits = 0
    significant = 0
    scale = 0
    behind_dot = 0
    while at < end:
        c = load8(base, at)
        if c == DOT and not behind_dot:
            behind_dot = 1
        elif 0x30 <= c <= 0x39:
            digits += 1
            if significant < MANY_DIGITS:
                whole = whole * 10 + (c - ZERO)
                scale -= behind_dot
            if whole:
                significant += 1
        else:
            break
        at += 1
    if not digits:
        return ns.INVALID
    if at < end:
        if kind == L.K_DECIMAL or (load8(base, at) | 0x20) != LOWER_E:
            return ns.INVALID
        power = skip_sign(base, at + 1, end)
        negated = read_negated(base, power, end)
        if negated == _NO_DIGITS:
            return ns.INVALID
        if negated == _TOO_LARGE or negated < -_HUGE:
            negated = -_HUGE
        scale += negated if load8(base, power - 1) == MINUS else -negated
    if not whole:
        put(state, ns.N_VALUE, 0)
        return kind
    if significant > MANY_DIGITS or scale > _EXACT_POWER or scale < -_EXACT_POWER:
        return ns.LATER
    powers = get(state, ns.N_POWERS)
    value = float(whole)
    if scale < 0:
        value /= as_double(get(powers, -scale * _POWER_WORDS))
        if whole > _EXACT:
            bits = nearest(whole, powers, -scale, as_bits(value))
            if bits < 0:
                return ns.LATER
            value = as_double(bits)
    elif scale > 0:
        if whole > _EXACT:
            return ns.LATER
        value *= as_double(get(powers, scale * _POWER_WORDS))
    put(state, ns.N_VALUE, as_bits(-value if load8(base, start) == MINUS else value))
    return kind
