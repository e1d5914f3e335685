"""Compilation of kernels, and raw memory for them.

A kernel is a Python function compiled by Numba, or, where Numba is missing, interpreted by Python. Tables are
many and grow, so kernels get them by address: `load32(base, i)` reads the i-th 32-bit word after an address.
The arrays at the addresses are owned by Python objects that outlive each call. Without Numba the same words
are read through `MEMORY`, which knows every array by its address and checks bounds.

`cache` caches compiled kernels on disk.
"""

from __future__ import annotations

import math
import os
import struct
from ctypes import addressof, c_byte
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_Kernel = TypeVar("_Kernel", bound="Callable[..., Any]")

# Words are signed, of 64 bits. Hashes stay within 63 bits, so that Python's unbounded integers and machine
# integers give the same numbers.
WORD_MASK = 0x7FFFFFFFFFFFFFFF
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


try:
    if os.environ.get("ZODIAC_PURE_PYTHON"):
        raise ImportError  # noqa: TRY301 - as if the package were missing
    import numba
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    COMPILED = True
except ImportError:
    COMPILED = False

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
    from zodiacedge.engine.embedded.kernels.cache import cache_kernel

    def kernel(function: _Kernel) -> _Kernel:
        """Compile a function; the result is cached on disk and runs without the interpreter's lock."""
        compiled: _Kernel = numba.njit(nogil=True)(function)
        cache_kernel(compiled)
        return compiled

    def _loader(bits: int, *, floating: bool = False) -> Any:
        element = ir.DoubleType() if floating else ir.IntType(bits)
        result = types.float64 if floating else types.int64

        @intrinsic
        def load(typing: Any, base: Any, index: Any) -> Any:
            del typing, base, index

            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                del context, signature
                pointer = builder.inttoptr(args[0], element.as_pointer())
                value = builder.load(builder.gep(pointer, [args[1]]))
                return value if floating or bits == 64 else builder.sext(value, ir.IntType(64))

            return result(types.int64, types.int64), code

        return load

    def _storer(bits: int) -> Any:
        element = ir.IntType(bits)

        @intrinsic
        def store(typing: Any, base: Any, index: Any, value: Any) -> Any:
            del typing, base, index, value

            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                del signature
                pointer = builder.inttoptr(args[0], element.as_pointer())
                word = args[2] if bits == 64 else builder.trunc(args[2], element)
                builder.store(word, builder.gep(pointer, [args[1]]))
                return context.get_dummy_value()

            return types.void(types.int64, types.int64, types.int64), code

        return store

    @intrinsic
    def set_bits8(typing: Any, base: Any, index: Any, bits: Any) -> Any:
        """Set bits of a byte in one step, also beside other threads; return the byte as it was."""
        del typing, base, index, bits

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            byte = ir.IntType(8)
            pointer = builder.gep(builder.inttoptr(args[0], byte.as_pointer()), [args[1]])
            old = builder.atomic_rmw("or", pointer, builder.trunc(args[2], byte), "monotonic")
            return builder.sext(old, ir.IntType(64))

        return types.int64(types.int64, types.int64, types.int64), code

    @intrinsic
    def prefetch32(typing: Any, base: Any, index: Any) -> Any:
        """Prefetch a word of 32 bits into the processor's cache; it may lie beyond the end."""
        del typing, base, index

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del signature
            pointer = builder.gep(builder.inttoptr(args[0], ir.IntType(32).as_pointer()), [args[1]])
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
            # For writing, of high locality, in the data cache.
            options = [ir.Constant(word, option) for option in (1, 3, 1)]
            builder.call(fetch, [builder.bitcast(pointer, byte), *options])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), code

    def _instruction(emit: Callable[..., Any], signature: Any) -> Any:
        """Return an intrinsic of one or two arguments that is a few instructions."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            return emit(builder, *args)

        # Numba reads the number of arguments from the function's own.
        if len(signature.args) == 1:
            return intrinsic(lambda typing, first: (signature, code))  # noqa: ARG005
        return intrinsic(lambda typing, first, second: (signature, code))  # noqa: ARG005

    def _multiply63(builder: Any, first: Any, second: Any) -> Any:
        return builder.and_(builder.mul(first, second), ir.Constant(ir.IntType(64), WORD_MASK))

    def _lowest_bit(builder: Any, word: Any) -> Any:
        return builder.cttz(word, ir.Constant(ir.IntType(1), 1))

    @kernel
    def power(first: float, second: float) -> float:
        """Return a power by IEEE 754: NaN or an infinity where there is no finite number."""
        return math.pow(first, second)

    @kernel
    def exponential(value: float) -> float:
        """Return e to a power, infinite where that is too large."""
        return math.exp(value)

    load8, load32, load64 = _loader(8), _loader(32), _loader(64)
    store8, store32, store64 = _storer(8), _storer(32), _storer(64)
    as_double = _instruction(lambda b, bits: b.bitcast(bits, ir.DoubleType()), types.float64(types.int64))
    as_bits = _instruction(lambda b, value: b.bitcast(value, ir.IntType(64)), types.int64(types.float64))
    multiply63 = _instruction(_multiply63, types.int64(types.int64, types.int64))
    lowest_bit = _instruction(_lowest_bit, types.int64(types.int64))
    count_bits = _instruction(lambda b, word: b.ctpop(word), types.int64(types.int64))
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
