"""Kernels that join the last atom of a rule and write its heads in one loop, without a step per match.

`assemble` marks the atoms that may be fused: the access path checks all of their bound columns, and at most
an inequality comes between them and the head. The loop is bounded by the machine's budget and the room in the
output buffer, which the interpreter flushes.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.expressions.arithmetic import compare_values
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.machine.cursors import (
    chain_of,
    fill_key,
    is_excluded,
    known_term,
    next_row,
    open_pairs,
    open_source,
    range_high,
    range_low,
    row_after,
)
from zodiacedge.engine.embedded.storage.hash_index import set_pair_bit


@kernel
def fixed_value(spec: int, at: int, registers: int) -> int:
    """Return the value of a column of the head that is not a column of the matching row."""
    operand = get(spec, at + 2)
    return operand if get(spec, at + 1) == L.MODE_TERM else get(registers, operand)


@kernel
def differ(dictionary: int, kinds: int, first: int, second: int, stack: int) -> bool:
    """Whether two terms are unequal: not the same term, and not numbers of equal value."""
    if first == second:
        return False
    if load8(kinds, first) < L.K_INTEGER or load8(kinds, second) < L.K_INTEGER:
        return True
    put(stack, 0, L.IS_TERM)
    put(stack, 1, first)
    put(stack, 2, L.IS_TERM)
    put(stack, 3, second)
    return compare_values(dictionary, stack, L.UNEQUAL) == L.HOLDS


@kernel
def emit_matches(frame: int, step: int, cursor: int, room: int, filled: int) -> int:
    """Write the heads of all matches of a fused atom (`P_FUSED`); return the rows in the output buffer.

    It stops after the last match, with the cursor after the last source, or when there is no more room, with
    the cursor at the last row written, or before a source that is not opened yet.
    """
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    sources = get(frame, L.F_SOURCES)
    registers = get(frame, L.F_REGISTERS)
    cursors = get(frame, L.F_CURSORS)
    out = get(frame, L.F_OUT)
    key = get(frame, L.F_SCRATCH)
    plan = key + 16 * L.MOST_COLUMNS
    dictionary = get(frame, L.F_DICTIONARY)
    kinds = get(dictionary, L.D_KINDS)
    stack = key + 8 * L.STACK
    state = get(frame, L.F_STATE)
    bits = get(get(state, L.M_TARGET), L.T_BITS)
    terms = get(get(state, L.M_TARGET), L.T_TERMS)
    shared = get(get(state, L.M_TARGET), L.T_SHARED)
    arity = get(steps, step + L.P_ARITY)
    at = get(steps, step + L.P_SPEC)
    unequal = get(steps, step + L.P_FUSED) == L.FUSED_UNEQUAL
    emit = step + 2 * L.STEP_WORDS if unequal else step + L.STEP_WORDS
    wide = get(steps, emit + L.P_ARITY)
    origins = get(steps, step + L.P_ORIGINS)
    column_0 = 0
    value_0 = 0
    column_1 = 0
    value_1 = 0
    if wide == 2:
        column_0 = get(spec, origins)
        value_0 = fixed_value(spec, origins, registers)
        column_1 = get(spec, origins + L.ORIGIN_WORDS)
        value_1 = fixed_value(spec, origins + L.ORIGIN_WORDS, registers)
    else:
        for column in range(wide):
            here = origins + column * L.ORIGIN_WORDS
            put(plan, 2 * column, get(spec, here))
            put(plan, 2 * column + 1, fixed_value(spec, here, registers))
    left_column = -1
    right_column = -1
    left = 0
    right = 0
    if unequal:
        here = origins + wide * L.ORIGIN_WORDS
        left_column = get(spec, here)
        left = fixed_value(spec, here, registers)
        right_column = get(spec, here + L.ORIGIN_WORDS)
        right = fixed_value(spec, here + L.ORIGIN_WORDS, registers)
    last = get(steps, step + L.P_SOURCES) + get(steps, step + L.P_SOURCE_COUNT)
    number = get(cursors, cursor)
    row = get(cursors, cursor + 1)
    written = row
    visited = 0
    derived = 0
    while True:
        if row < 0:
            if number + 1 < last and filled >= room:
                written = -1
                break
            number += 1
            if number >= last:
                written = -1
                break
        source = sources + 8 * number * L.SOURCE_WORDS
        table = get(source, L.S_TABLE)
        access = get(source, L.S_ACCESS)
        rows = get(table, L.T_ROWS)
        low = range_low(table, get(source, L.S_RANGE))
        high = range_high(table, get(source, L.S_RANGE))
        if row < 0:
            fill_key(key, spec, at, arity, registers)
            row = open_source(source, key, low, high)
        else:
            row = next_row(source, row, high)
        chain = chain_of(source)
        excluding = get(source, L.S_EXCLUDED_COUNT) > 0
        while row >= 0 and filled < room and visited < L.MOST_VISITS:
            start = row * arity
            keep = low <= row < high
            if keep and unequal:
                keep = differ(
                    dictionary,
                    kinds,
                    load32(rows, start + left_column) if left_column >= 0 else left,
                    load32(rows, start + right_column) if right_column >= 0 else right,
                    stack,
                )
            if keep and excluding:
                keep = not is_excluded(frame, source, row, arity)
            if keep:
                derived += 1
                if wide == 2:
                    first = load32(rows, start + column_0) if column_0 >= 0 else value_0
                    second = load32(rows, start + column_1) if column_1 >= 0 else value_1
                    store32(out, 2 * filled, first)
                    store32(out, 2 * filled + 1, second)
                    if bits and not set_pair_bit(bits, terms, first, second, shared):
                        filled -= 1
                else:
                    for column in range(wide):
                        inner = get(plan, 2 * column)
                        value = load32(rows, start + inner) if inner >= 0 else get(plan, 2 * column + 1)
                        store32(out, wide * filled + column, value)
                    if bits and not set_pair_bit(bits, terms, 0, load32(out, filled), shared):
                        filled -= 1
                filled += 1
            written = row
            visited += 1
            row = row_after(access, chain, row, high)
        if row >= 0:
            break
    put(cursors, cursor, number)
    put(cursors, cursor + 1, written)
    put(state, L.M_VISITED, visited)
    put(state, L.M_DERIVED, get(state, L.M_DERIVED) + derived)
    return filled


@kernel
def emit_pairs(frame: int, step: int, cursor: int, room: int, filled: int) -> int:
    """Write the heads of all matches of a fused atom: `emit_matches` for two columns to two columns."""
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    sources = get(frame, L.F_SOURCES)
    registers = get(frame, L.F_REGISTERS)
    cursors = get(frame, L.F_CURSORS)
    out = get(frame, L.F_OUT)
    state = get(frame, L.F_STATE)
    bits = get(get(state, L.M_TARGET), L.T_BITS)
    terms = get(get(state, L.M_TARGET), L.T_TERMS)
    shared = get(get(state, L.M_TARGET), L.T_SHARED)
    at = get(steps, step + L.P_SPEC)
    origins = get(steps, step + L.P_ORIGINS)
    column_0 = get(spec, origins)
    value_0 = fixed_value(spec, origins, registers)
    column_1 = get(spec, origins + L.ORIGIN_WORDS)
    value_1 = fixed_value(spec, origins + L.ORIGIN_WORDS, registers)
    last = get(steps, step + L.P_SOURCES) + get(steps, step + L.P_SOURCE_COUNT)
    number = get(cursors, cursor)
    row = get(cursors, cursor + 1)
    written = row
    visited = 0
    derived = 0
    while True:
        fresh = row < 0
        if fresh:
            if number + 1 < last and filled >= room:
                break
            number += 1
            if number >= last:
                break
        source = sources + 8 * number * L.SOURCE_WORDS
        table = get(source, L.S_TABLE)
        access = get(source, L.S_ACCESS)
        low = range_low(table, get(source, L.S_RANGE))
        high = range_high(table, get(source, L.S_RANGE))
        if fresh:
            first = known_term(spec, at, registers)
            second = known_term(spec, at + L.SPEC_WORDS, registers)
            row = open_pairs(source, first, second, low, high)
        else:
            row = next_row(source, row, high)
        rows = get(table, L.T_ROWS)
        chain = chain_of(source)
        while row >= 0 and filled < room and visited < L.MOST_VISITS:
            if low <= row < high:
                derived += 1
                left = load32(rows, 2 * row + column_0) if column_0 >= 0 else value_0
                right = load32(rows, 2 * row + column_1) if column_1 >= 0 else value_1
                if not bits or set_pair_bit(bits, terms, left, right, shared):
                    store32(out, 2 * filled, left)
                    store32(out, 2 * filled + 1, right)
                    filled += 1
            written = row
            visited += 1
            row = row_after(access, chain, row, high)
        if row >= 0:
            row = written
            break
    put(cursors, cursor, number)
    put(cursors, cursor + 1, row)
    put(state, L.M_VISITED, visited)
    put(state, L.M_DERIVED, get(state, L.M_DERIVED) + derived)
    return filled
