"""Kernels and their instructions as Numba compiles them.

An instruction is an intrinsic: a few instructions of LLVM. Kernels get them from `jit`, which says what they
do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from zodiacedge.engine.embedded.kernels.cache import cache_kernel
from zodiacedge.engine.embedded.kernels.layout import WORD_MASK

if TYPE_CHECKING:
    from collections.abc import Callable

_Kernel = TypeVar("_Kernel", bound="Callable[..., Any]")


def kernel(function: _Kernel) -> _Kernel:
    """Compile a function; the result is cached on disk and runs without the interpreter's lock."""
    dispatcher: Any = numba.njit(nogil=True)(function)
    cache_kernel(dispatcher)
    compiled: _Kernel = dispatcher
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


load8, load32, load64 = _loader(8), _loader(32), _loader(64)
store8, store32, store64 = _storer(8), _storer(32), _storer(64)
as_double = _instruction(lambda b, bits: b.bitcast(bits, ir.DoubleType()), types.float64(types.int64))
as_bits = _instruction(lambda b, value: b.bitcast(value, ir.IntType(64)), types.int64(types.float64))
multiply63 = _instruction(_multiply63, types.int64(types.int64, types.int64))
lowest_bit = _instruction(_lowest_bit, types.int64(types.int64))
count_bits = _instruction(lambda b, word: b.ctpop(word), types.int64(types.int64))
