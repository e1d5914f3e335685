"""Kernels of expressions and comparisons, on values that are a type and 64 bits.

They agree with the definitions in `engine.semantics.expressions` and `engine.semantics.time`. A value is an
integer, a double, a moment or a length of time in microseconds, an opaque term, or an error. An integer
beside a double is converted to the nearest double; comparisons are exact.
"""

from __future__ import annotations

import math

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import (
    as_bits,
    as_double,
    exponential,
    kernel,
    load8,
    load32,
    power,
)
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.storage.hash_index import append_row, find_chain, find_row, has_room
from zodiacedge.engine.embedded.terms.intern_kernels import intern_number
from zodiacedge.engine.embedded.terms.shared_texts import text_byte

_LARGEST = 0x7FFFFFFFFFFFFFFF
_SMALLEST = -_LARGEST - 1
_TOO_LARGE = 9223372036854775808.0
# The years 1 to 9999, in microseconds since 1970.
_FIRST_MOMENT = -62135596800000000
_LAST_MOMENT = 253402300799999999


@kernel
def sum_fits(first: int, second: int) -> bool:
    """Whether a sum stays within 64 bits."""
    if second >= 0:
        return first <= _LARGEST - second
    return first >= _SMALLEST - second


@kernel
def product_fits(first: int, second: int) -> bool:
    """Whether a product stays within 64 bits."""
    if first == 0 or second == 0:
        return True
    if first == _SMALLEST or second == _SMALLEST:
        return first == 1 or second == 1
    return abs(first) <= _LARGEST // abs(second)


@kernel
def compare_mixed(whole: int, real: float) -> int:
    """Return -1, 0 or 1 as an integer is less than, equal to or greater than a double, exactly."""
    if real >= _TOO_LARGE:
        return -1
    if real < -_TOO_LARGE:
        return 1
    floor = math.floor(real)
    below = int(floor)
    if whole != below:
        return -1 if whole < below else 1
    return -1 if real > floor else 0


@kernel
def compare_numbers(first_type: int, first: int, second_type: int, second: int) -> int:
    """Return -1, 0 or 1 for two numbers."""
    if first_type == L.IS_INTEGER:
        if second_type == L.IS_INTEGER:
            return int(first > second) - int(first < second)
        return compare_mixed(first, as_double(second))
    if second_type == L.IS_INTEGER:
        return -compare_mixed(second, as_double(first))
    left = as_double(first)
    right = as_double(second)
    return int(left > right) - int(left < right)


@kernel
def compare_texts(dictionary: int, first: int, second: int) -> int:
    """Return -1, 0 or 1 for two texts, by code point: the order of their bytes in UTF-8."""
    left_length = load32(get(dictionary, L.D_LENGTHS), first)
    right_length = load32(get(dictionary, L.D_LENGTHS), second)
    for n in range(min(left_length, right_length)):
        a = text_byte(dictionary, first, n)
        b = text_byte(dictionary, second, n)
        if a != b:
            return -1 if a < b else 1
    return int(left_length > right_length) - int(left_length < right_length)


@kernel
def comparison_result(sign: int, operator: int) -> int:
    """Return `HOLDS` or `FAILS` for a comparison whose sides compare as -1, 0 or 1."""
    if operator == L.EQUAL:
        holds = sign == 0
    elif operator == L.UNEQUAL:
        holds = sign != 0
    elif operator == L.LESS:
        holds = sign < 0
    elif operator == L.AT_MOST:
        holds = sign <= 0
    elif operator == L.GREATER:
        holds = sign > 0
    else:
        holds = sign >= 0
    return L.HOLDS if holds else L.FAILS


@kernel
def as_number(dictionary: int, stack: int, at: int) -> None:
    """Make a value on the stack a number, or an error."""
    if get(stack, at) != L.IS_TERM:
        return
    term = get(stack, at + 1)
    kind = load8(get(dictionary, L.D_KINDS), term)
    put(stack, at + 1, get(get(dictionary, L.D_PAYLOADS), term))
    if kind == L.K_INTEGER:
        put(stack, at, L.IS_INTEGER)
    elif L.K_INTEGER < kind <= L.K_FLOAT:
        put(stack, at, L.IS_DOUBLE)
    else:
        put(stack, at, L.IS_ERROR)


@kernel
def as_operand(dictionary: int, stack: int, at: int) -> None:
    """Make a value on the stack a number, a moment or a length of time, or an error."""
    if get(stack, at) == L.IS_TERM:
        term = get(stack, at + 1)
        kind = load8(get(dictionary, L.D_KINDS), term)
        if kind == L.K_MOMENT or kind == L.K_DURATION:
            put(stack, at, L.IS_MOMENT if kind == L.K_MOMENT else L.IS_DURATION)
            put(stack, at + 1, get(get(dictionary, L.D_PAYLOADS), term))
        else:
            as_number(dictionary, stack, at)


@kernel
def is_time(kind: int) -> bool:
    """Whether a type of value is that of a moment or a length of time."""
    return kind == L.IS_MOMENT or kind == L.IS_DURATION


@kernel
def compare_values(dictionary: int, stack: int, operator: int) -> int:
    """Compare the two values at the bottom of the stack."""
    first_type = get(stack, 0)
    second_type = get(stack, 2)
    if first_type == L.IS_PENDING or second_type == L.IS_PENDING:
        return L.PENDING
    if first_type == L.IS_ERROR or second_type == L.IS_ERROR:
        return L.NO_ORDER
    first = get(stack, 1)
    second = get(stack, 3)
    kinds = get(dictionary, L.D_KINDS)
    if first_type == L.IS_TERM and second_type == L.IS_TERM:
        if first == second and operator <= L.UNEQUAL:
            return comparison_result(0, operator)
        kind = load8(kinds, first)
        if kind == load8(kinds, second):
            if kind == L.K_STRING:
                return comparison_result(compare_texts(dictionary, first, second), operator)
            if kind == L.K_BOOLEAN or kind == L.K_DATE:
                left = get(get(dictionary, L.D_PAYLOADS), first)
                right = get(get(dictionary, L.D_PAYLOADS), second)
                return comparison_result(int(left > right) - int(left < right), operator)
    as_operand(dictionary, stack, 0)
    as_operand(dictionary, stack, 2)
    if is_time(get(stack, 0)) or is_time(get(stack, 2)):
        if get(stack, 0) == get(stack, 2):
            first = get(stack, 1)
            second = get(stack, 3)
            return comparison_result(int(first > second) - int(first < second), operator)
    elif get(stack, 0) != L.IS_ERROR and get(stack, 2) != L.IS_ERROR:
        sign = compare_numbers(get(stack, 0), get(stack, 1), get(stack, 2), get(stack, 3))
        return comparison_result(sign, operator)
    # Not two numbers, and not the same term: unequal, and without an order.
    return comparison_result(1, operator) if operator <= L.UNEQUAL else L.NO_ORDER


@kernel
def put_double(stack: int, at: int, value: float) -> None:
    """Put a double on the stack, or an error where it is not a finite number."""
    if math.isfinite(value):
        put(stack, at, L.IS_DOUBLE)
        put(stack, at + 1, as_bits(value + 0.0))
    else:
        put(stack, at, L.IS_ERROR)


@kernel
def put_whole(stack: int, at: int, value: float) -> None:
    """Put a double that is a whole number on the stack as an integer, or an error beyond 64 bits."""
    if -_TOO_LARGE <= value < _TOO_LARGE:
        put(stack, at, L.IS_INTEGER)
        put(stack, at + 1, int(value))
    else:
        put(stack, at, L.IS_ERROR)


@kernel
def half_even(value: float) -> float:
    """Round to the nearest whole number, halves to the even one."""
    below = math.floor(value)
    rest = value - below
    if rest > 0.5 or (rest == 0.5 and below % 2.0 != 0.0):
        return below + 1.0
    return below + 0.0


@kernel
def apply_unary(stack: int, at: int, op: int) -> None:
    """Apply a unary function to the number at a position of the stack."""
    if get(stack, at) == L.IS_ERROR or get(stack, at) == L.IS_PENDING:
        return
    if get(stack, at) == L.IS_MOMENT or (get(stack, at) == L.IS_DURATION and op != L.X_NEGATE):
        put(stack, at, L.IS_ERROR)
        return
    if get(stack, at) == L.IS_DURATION:
        micros = get(stack, at + 1)
        put(stack, at, L.IS_DURATION if micros != _SMALLEST else L.IS_ERROR)
        put(stack, at + 1, -micros if micros != _SMALLEST else 0)
        return
    if get(stack, at) == L.IS_INTEGER:
        whole = get(stack, at + 1)
        if op == L.X_NEGATE or (op == L.X_ABS and whole < 0):
            if whole == _SMALLEST:
                put(stack, at, L.IS_ERROR)
            else:
                put(stack, at + 1, -whole)
            return
        if op == L.X_ABS or op == L.X_ROUND or op == L.X_FLOOR or op == L.X_CEIL:
            return
        real = float(whole)
    else:
        real = as_double(get(stack, at + 1))
    if L.X_ROUND <= op <= L.X_CEIL and not -_TOO_LARGE <= real < _TOO_LARGE:
        # Compiled, floor and ceil return 64-bit integers.
        put(stack, at, L.IS_ERROR)
    elif op == L.X_NEGATE:
        put_double(stack, at, -real)
    elif op == L.X_ABS:
        put_double(stack, at, abs(real))
    elif op == L.X_ROUND:
        put_whole(stack, at, half_even(real))
    elif op == L.X_FLOOR:
        put_whole(stack, at, float(math.floor(real)))
    elif op == L.X_CEIL:
        put_whole(stack, at, float(math.ceil(real)))
    elif op == L.X_SQRT and real >= 0:
        put_double(stack, at, math.sqrt(real))
    elif op == L.X_EXP:
        put_double(stack, at, exponential(real))
    elif op == L.X_LN and real > 0:
        put_double(stack, at, math.log(real))
    elif op == L.X_LOG10 and real > 0:
        put_double(stack, at, math.log10(real))
    else:
        put(stack, at, L.IS_ERROR)


@kernel
def apply_integers(stack: int, at: int, op: int, first: int, second: int) -> bool:
    """Apply an operator to two integers; return whether its result is an integer too."""
    fits = True
    result = 0
    if op == L.X_ADD:
        fits = sum_fits(first, second)
        result = first + second if fits else 0
    elif op == L.X_SUBTRACT:
        fits = difference_fits(first, second)
        result = first - second if fits else 0
    elif op == L.X_MULTIPLY:
        fits = product_fits(first, second)
        result = first * second if fits else 0
    elif op == L.X_FLOOR_DIVIDE or op == L.X_REMAINDER:
        fits = second != 0 and not (first == _SMALLEST and second == -1)
        if fits:
            result = first // second if op == L.X_FLOOR_DIVIDE else first % second
        elif second == -1:
            fits = op == L.X_REMAINDER
    elif op == L.X_POWER and second >= 0:
        result = 1
        for _ in range(second):
            if result == 0 or (result == 1 and first == 1):
                break
            if first == -1:
                result = 1 if second % 2 == 0 else -1
                break
            fits = product_fits(result, first)
            if not fits:
                break
            result = result * first
    elif op == L.X_MIN:
        result = min(first, second)
    elif op == L.X_MAX:
        result = max(first, second)
    else:
        return False
    put(stack, at, L.IS_INTEGER if fits else L.IS_ERROR)
    put(stack, at + 1, result)
    return True


@kernel
def apply_times(stack: int, at: int, op: int) -> None:
    """Apply an operator to two values, one of which is a moment or a length of time."""
    first_type = get(stack, at)
    second_type = get(stack, at + 2)
    first = get(stack, at + 1)
    second = get(stack, at + 3)
    put(stack, at, L.IS_ERROR)
    if is_time(first_type) and is_time(second_type):
        moments = int(first_type == L.IS_MOMENT) + int(second_type == L.IS_MOMENT)
        backwards = first_type == L.IS_DURATION and second_type == L.IS_MOMENT
        if op == L.X_ADD and moments < 2 and sum_fits(first, second):
            put_time(stack, at, moments == 1, first + second)
        elif op == L.X_SUBTRACT and not backwards and difference_fits(first, second):
            put_time(stack, at, moments == 1, first - second)
        return
    length = first if first_type == L.IS_DURATION else second
    factor = second if first_type == L.IS_DURATION else first
    kind = second_type if first_type == L.IS_DURATION else first_type
    if first_type == L.IS_MOMENT or second_type == L.IS_MOMENT:
        return
    if op == L.X_MULTIPLY and kind == L.IS_INTEGER:
        if product_fits(length, factor):
            put_time(stack, at, False, length * factor)
        return
    real = float(factor) if kind == L.IS_INTEGER else as_double(factor)
    if op == L.X_MULTIPLY:
        put_micros(stack, at, float(length) * real)
    elif op == L.X_DIVIDE and first_type == L.IS_DURATION and real != 0.0:
        put_micros(stack, at, float(length) / real)


@kernel
def difference_fits(first: int, second: int) -> bool:
    """Whether a difference stays within 64 bits."""
    return sum_fits(first, -second) if second != _SMALLEST else first < 0


@kernel
def put_time(stack: int, at: int, moment: bool, micros: int) -> None:
    """Put a moment on the stack, or an error outside the years 1 to 9999; or a length of time."""
    if not moment:
        put(stack, at, L.IS_DURATION)
    elif _FIRST_MOMENT <= micros <= _LAST_MOMENT:
        put(stack, at, L.IS_MOMENT)
    put(stack, at + 1, micros)


@kernel
def put_micros(stack: int, at: int, micros: float) -> None:
    """Put a length of so many microseconds, rounded, on the stack, or an error beyond 64 bits."""
    if -_TOO_LARGE <= micros < _TOO_LARGE:
        put(stack, at, L.IS_DURATION)
        put(stack, at + 1, int(half_even(micros)))


@kernel
def apply_binary(stack: int, at: int, op: int) -> None:
    """Apply an operator to the two numbers at a position of the stack."""
    first_type = get(stack, at)
    second_type = get(stack, at + 2)
    if first_type == L.IS_PENDING or second_type == L.IS_PENDING:
        put(stack, at, L.IS_PENDING)
        return
    if first_type == L.IS_ERROR or second_type == L.IS_ERROR:
        put(stack, at, L.IS_ERROR)
        return
    if is_time(first_type) or is_time(second_type):
        apply_times(stack, at, op)
        return
    first = get(stack, at + 1)
    second = get(stack, at + 3)
    if (
        first_type == L.IS_INTEGER
        and second_type == L.IS_INTEGER
        and apply_integers(stack, at, op, first, second)
    ):
        return
    if op == L.X_MIN or op == L.X_MAX:
        sign = compare_numbers(first_type, first, second_type, second)
        # Of two equal numbers the integer is the result.
        takes_second = sign > 0 if op == L.X_MIN else sign < 0
        if takes_second or (sign == 0 and second_type == L.IS_INTEGER):
            put(stack, at, second_type)
            put(stack, at + 1, second)
        return
    left = float(first) if first_type == L.IS_INTEGER else as_double(first)
    right = float(second) if second_type == L.IS_INTEGER else as_double(second)
    if op == L.X_ADD:
        put_double(stack, at, left + right)
    elif op == L.X_SUBTRACT:
        put_double(stack, at, left - right)
    elif op == L.X_MULTIPLY:
        put_double(stack, at, left * right)
    elif op == L.X_POWER:
        put_double(stack, at, power(left, right) if left != 0.0 or right >= 0.0 else math.inf)
    elif right == 0.0:
        put(stack, at, L.IS_ERROR)
    elif op == L.X_DIVIDE:
        put_double(stack, at, left / right)
    elif op == L.X_FLOOR_DIVIDE:
        put_double(stack, at, left // right)
    else:
        put_double(stack, at, left % right)


@kernel
def term_of(dictionary: int, stack: int, at: int) -> int:
    """Return the term of a value on the stack, or -1; there must be room for one more."""
    kind = get(stack, at)
    if kind == L.IS_ERROR:
        return -1
    if kind == L.IS_TERM:
        return get(stack, at + 1)
    number = L.K_INTEGER if kind == L.IS_INTEGER else L.K_DOUBLE
    if kind == L.IS_MOMENT or kind == L.IS_DURATION:
        number = L.K_MOMENT if kind == L.IS_MOMENT else L.K_DURATION
    return intern_number(dictionary, number, get(stack, at + 1))


@kernel
def call_host(frame: int, number: int, stack: int, top: int) -> int:
    """Look up the result of a host function for the arguments on top of the stack; return the new top.

    Where the result is not known yet, the arguments are queued for the host and the value is pending.
    """
    hosts = get(frame, L.F_HOSTS) + 8 * L.HOST_WORDS * number
    key = get(frame, L.F_SCRATCH)
    arity = get(hosts, L.H_ARITY)
    bottom = top - 2 * arity
    outcome = L.IS_TERM
    for n in range(arity):
        kind = get(stack, bottom + 2 * n)
        if kind == L.IS_PENDING or (kind == L.IS_ERROR and outcome != L.IS_PENDING):
            outcome = kind
        elif kind != L.IS_ERROR:
            put(key, n, term_of(get(frame, L.F_DICTIONARY), stack, bottom + 2 * n))
    if outcome == L.IS_TERM:
        known = get(hosts, L.H_KNOWN)
        row = find_chain(known, 0, key)
        if row >= 0:
            result = load32(get(known, L.T_ROWS), row * (arity + 1) + arity)
            put(stack, bottom + 1, result)
            outcome = L.IS_TERM if result >= 0 else L.IS_ERROR
        else:
            outcome = L.IS_PENDING
            wanted = get(hosts, L.H_WANTED)
            slot = -1 - find_row(wanted, key)
            if slot >= 0 and has_room(wanted, 1):
                append_row(wanted, key, slot)
    if outcome == L.IS_PENDING:
        put(get(frame, L.F_STATE), L.M_PENDING, 1)
    put(stack, bottom, outcome)
    return bottom + 2


@kernel
def truth_of(dictionary: int, stack: int, at: int) -> int:
    """Return `HOLDS` or `FAILS` as a value counts as true or not, else `NO_ORDER` or `PENDING`."""
    kind = get(stack, at)
    bits = get(stack, at + 1)
    if kind == L.IS_PENDING:
        return L.PENDING
    if kind == L.IS_TERM:
        term = bits
        kind = load8(get(dictionary, L.D_KINDS), term)
        length = load32(get(dictionary, L.D_LENGTHS), term)
        if kind == L.K_STRING:
            return L.HOLDS if length > 0 else L.FAILS
        if kind == L.K_TAGGED:
            return L.HOLDS if tagged_text_length(dictionary, term) > 0 else L.FAILS
        if kind == L.K_BOOLEAN:
            return L.HOLDS if get(get(dictionary, L.D_PAYLOADS), term) else L.FAILS
        as_number(dictionary, stack, at)
        kind = get(stack, at)
        bits = get(stack, at + 1)
    if kind == L.IS_INTEGER:
        return L.HOLDS if bits else L.FAILS
    if kind == L.IS_DOUBLE:
        return L.HOLDS if as_double(bits) != 0.0 else L.FAILS
    return L.NO_ORDER


@kernel
def tagged_text_length(dictionary: int, term: int) -> int:
    """Return the number of bytes of a text with a language tag, which is before it, with a zero between."""
    length = load32(get(dictionary, L.D_LENGTHS), term)
    for n in range(length):
        if text_byte(dictionary, term, n) == 0:
            return length - n - 1
    return length


@kernel
def evaluate_code(frame: int, at: int, length: int, stack: int, base: int) -> None:
    """Run postfix code; its value is left at word `base` of the stack."""
    dictionary = get(frame, L.F_DICTIONARY)
    spec = get(frame, L.F_SPEC)
    registers = get(frame, L.F_REGISTERS)
    top = base
    n = 0
    while n < length:
        here = at + n * L.EXPRESSION_WORDS
        op = get(spec, here)
        n += 1
        if op == L.X_TERM:
            put(stack, top, L.IS_TERM)
            put(stack, top + 1, get(spec, here + 1))
            top += 2
        elif op == L.X_REGISTER:
            put(stack, top, L.IS_TERM)
            put(stack, top + 1, get(registers, get(spec, here + 1)))
            top += 2
        elif op == L.X_HOST:
            top = call_host(frame, get(spec, here + 1), stack, top)
        elif op == L.X_NEGATE or L.X_ABS <= op <= L.X_LOG10:
            as_operand(dictionary, stack, top - 2)
            apply_unary(stack, top - 2, op)
        elif op == L.X_JUMP:
            n += get(spec, here + 1)
        elif op == L.X_UNLESS:
            holds = truth_of(dictionary, stack, top - 2)
            if holds == L.HOLDS or holds == L.FAILS:
                top -= 2
                n += get(spec, here + 1) if holds == L.FAILS else 0
            else:
                # The error is the result: continue with the jump before the other branch.
                put(stack, top - 2, L.IS_PENDING if holds == L.PENDING else L.IS_ERROR)
                n += get(spec, here + 1) - 1
        elif op == L.X_COALESCE:
            if get(stack, top - 2) == L.IS_ERROR:
                top -= 2
            else:
                n += get(spec, here + 1)
        else:
            as_operand(dictionary, stack, top - 4)
            as_operand(dictionary, stack, top - 2)
            apply_binary(stack, top - 4, op)
            top -= 2
