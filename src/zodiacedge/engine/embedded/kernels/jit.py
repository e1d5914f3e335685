"""Kernels, and raw memory for them.

A kernel is a Python function that runs compiled, or, where that is not possible, interpreted by Python.
Tables are many and grow, so kernels get them by address: `load32(base, i)` reads the i-th 32-bit word after
an address. The arrays at the addresses are owned by Python objects that outlive each call. Interpreted
kernels read the same words through `MEMORY`, which knows every array by its address and checks bounds.

Compiled kernels are those of `linked`, which need no compiler, or else those of Numba (`intrinsics`), which
`cache` caches on disk.
"""

from __future__ import annotations

import math
import os
import struct
from ctypes import addressof, c_byte
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from zodiacedge.engine.embedded.kernels import linked
from zodiacedge.engine.embedded.kernels.layout import WORD_MASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_Kernel = TypeVar("_Kernel", bound="Callable[..., Any]")

_first_byte: Callable[[Any], c_byte] = c_byte.from_buffer


class Memory:
    """The arrays that kernels may access, by address. Compiled kernels do not need it."""

    def __init__(self) -> None:
        """Start with no arrays."""
        self._arrays: WeakValueDictionary[int, NDArray[Any]] = WeakValueDictionary()
        # The array that contains an inner address: most of them are looked up repeatedly.
        self._within: WeakValueDictionary[int, NDArray[Any]] = WeakValueDictionary()

    def address(self, array: NDArray[Any]) -> int:
        """Return the address of the first element of a flat array; the caller keeps the array alive."""
        try:
            address = addressof(_first_byte(array))
        except (TypeError, ValueError):
            # A read-only or empty array: this gives the same address, four times as slowly.
            address = array.__array_interface__["data"][0] if array.size else 0
        if not COMPILED and array.size:
            # A view does not outlive its base array.
            base = array.base
            while isinstance(base, np.ndarray) and base.dtype == array.dtype and base.ndim == 1:
                array, base = base, base.base
            self._arrays[array.ctypes.data] = array
        return address

    def locate(self, base: int, index: int) -> tuple[NDArray[Any], int]:
        """Return the array that contains an address, and the index of the element."""
        array = self._arrays.get(base)
        if array is not None:
            return array, index
        array = self._within.get(base)
        if array is None or not _lies_in(array, base):
            array = self._within[base] = next(a for a in self._arrays.values() if _lies_in(a, base))
        return array, index + (base - array.ctypes.data) // array.itemsize


def _lies_in(array: NDArray[Any], base: int) -> bool:
    start: int = array.ctypes.data
    return start <= base < start + array.nbytes


def _is_compiled() -> bool:
    if os.environ.get("ZODIAC_PURE_PYTHON"):
        return False
    return bool(linked.KERNELS) or find_spec("numba") is not None


COMPILED = _is_compiled()

MEMORY = Memory()

if TYPE_CHECKING:

    def kernel(function: _Kernel) -> _Kernel:
        """Compile a function, if Numba is installed."""
        return function

    def load8(base: int, index: int) -> int:
        """Read a byte, with its sign."""

    def load32(base: int, index: int) -> int:
        """Read a word of 32 bits, with its sign."""

    def load64(base: int, index: int) -> int:
        """Read a word of 64 bits."""

    def store8(base: int, index: int, value: int) -> None:
        """Write a byte."""

    def store32(base: int, index: int, value: int) -> None:
        """Write a word of 32 bits."""

    def store64(base: int, index: int, value: int) -> None:
        """Write a word of 64 bits."""

    def set_bits8(base: int, index: int, bits: int) -> int:
        """Set bits of a byte in one step, also beside other threads; return the byte as it was."""

    def prefetch32(base: int, index: int) -> None:
        """Prefetch a word of 32 bits into the processor's cache; it may lie beyond the end."""

    def as_double(bits: int) -> float:
        """Read 64 bits as a double."""

    def as_bits(value: float) -> int:
        """Read a double as 64 bits."""

    def multiply63(first: int, second: int) -> int:
        """Multiply and keep the lower 63 bits. Numba's own product must not overflow."""

    def lowest_bit(word: int) -> int:
        """Return the position of the lowest set bit; the word is not 0."""

    def count_bits(word: int) -> int:
        """Count the set bits."""

    def power(first: float, second: float) -> float:
        """Return a power by IEEE 754: NaN or an infinity where there is no finite number."""

    def exponential(value: float) -> float:
        """Return e to a power, infinite where that is too large."""

elif COMPILED:
    if linked.KERNELS:
        from zodiacedge.engine.embedded.kernels import linked as _compiled
    else:
        from zodiacedge.engine.embedded.kernels import intrinsics as _compiled

    kernel = _compiled.kernel
    load8, load32, load64 = _compiled.load8, _compiled.load32, _compiled.load64
    store8, store32, store64 = _compiled.store8, _compiled.store32, _compiled.store64
    set_bits8, prefetch32 = _compiled.set_bits8, _compiled.prefetch32
    as_double, as_bits = _compiled.as_double, _compiled.as_bits
    multiply63, lowest_bit, count_bits = _compiled.multiply63, _compiled.lowest_bit, _compiled.count_bits

    @kernel
    def power(first: float, second: float) -> float:
        """Return a power by IEEE 754: NaN or an infinity where there is no finite number."""
        return math.pow(first, second)

    @kernel
    def exponential(value: float) -> float:
        """Return e to a power, infinite where that is too large."""
        return math.exp(value)
else:

    def kernel(function: _Kernel) -> _Kernel:
        """Return a function unchanged."""
        return function

    def _load(base: int, index: int) -> int:
        array, position = MEMORY.locate(base, index)
        return int(array[position])

    def _store(base: int, index: int, value: int) -> None:
        array, position = MEMORY.locate(base, index)
        array[position] = value

    def set_bits8(base: int, index: int, bits: int) -> int:
        """Set bits of a byte; return the byte as it was."""
        old = _load(base, index)
        _store(base, index, old | bits)
        return old

    def prefetch32(base: int, index: int) -> None:
        """Do nothing: interpreted code gains nothing from prefetching."""

    def multiply63(first: int, second: int) -> int:
        """Multiply and keep the lower 63 bits."""
        return (first * second) & WORD_MASK

    def lowest_bit(word: int) -> int:
        """Return the position of the lowest set bit; the word is not 0."""
        return (word & -word).bit_length() - 1

    def count_bits(word: int) -> int:
        """Count the set bits."""
        return int(word).bit_count()

    def power(first: float, second: float) -> float:
        """Return a power by IEEE 754: NaN or an infinity where there is no finite number."""
        try:
            return math.pow(first, second)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    def exponential(value: float) -> float:
        """Return e to a power, infinite where that is too large."""
        try:
            return math.exp(value)
        except OverflowError:
            return math.inf

    def as_double(bits: int) -> float:
        """Read 64 bits as a double."""
        value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
        return value

    def as_bits(value: float) -> int:
        """Read a double as 64 bits."""
        bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
        return bits

    load8 = load32 = load64 = _load
    store8 = store32 = store64 = _store


def words(count: int) -> NDArray[np.int64]:
    """Return an array of 64-bit words, all zero."""
    return np.zeros(count, np.int64)
