"""The last atom of a rule, when it writes heads itself: all its matches in one loop, without a step for each.

`assemble` says which atoms may do so: the access settles all of their columns but those that go out, and at
most an inequality comes between them and the head. What the machine's budget and the room of the output
buffer allow is written; `machine` inserts it into the table.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.expressions.arithmetic import compare_values
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.kernels.layout import (
    BY_INDEX,
    BY_ROW,
    D_KINDS,
    F_CURSORS,
    F_DICTIONARY,
    F_EXCLUDED,
    F_OUT,
    F_REGISTERS,
    F_SCRATCH,
    F_SOURCES,
    F_SPEC,
    F_STATE,
    F_STEPS,
    FUSED_UNEQUAL,
    HOLDS,
    I_NEXT,
    INDEX_WORDS,
    IS_TERM,
    K_INTEGER,
    M_DERIVED,
    M_TARGET,
    M_VISITED,
    MODE_TERM,
    MOST_COLUMNS,
    MOST_VISITS,
    ORIGIN_WORDS,
    P_ARITY,
    P_FUSED,
    P_ORIGINS,
    P_SOURCE_COUNT,
    P_SOURCES,
    P_SPEC,
    S_ACCESS,
    S_EXCLUDED_COUNT,
    S_INDEX,
    S_RANGE,
    S_TABLE,
    SOURCE_WORDS,
    SPEC_WORDS,
    STACK,
    STEP_WORDS,
    T_BITS,
    T_FIRST_INDEX,
    T_ROWS,
    T_TERMS,
    UNEQUAL,
)
from zodiacedge.engine.embedded.machine.cursors import (
    fill_key,
    is_excluded,
    known_term,
    next_row,
    open_pairs,
    open_source,
    range_high,
    range_low,
)
from zodiacedge.engine.embedded.storage.hash_index import claim_pair


@kernel
def fixed_value(spec: int, at: int, registers: int) -> int:
    """Return the value of a column of the head that does not come from the row at hand."""
    operand = get(spec, at + 2)
    return operand if get(spec, at + 1) == MODE_TERM else get(registers, operand)


@kernel
def differ(dictionary: int, kinds: int, first: int, second: int, stack: int) -> bool:
    """Whether two terms are unequal: not the same, and not two numbers of one value."""
    if first == second:
        return False
    if load8(kinds, first) < K_INTEGER or load8(kinds, second) < K_INTEGER:
        return True
    put(stack, 0, IS_TERM)
    put(stack, 1, first)
    put(stack, 2, IS_TERM)
    put(stack, 3, second)
    return compare_values(dictionary, stack, UNEQUAL) == HOLDS


@kernel
def emit_matches(frame: int, step: int, cursor: int, room: int, filled: int) -> int:
    """Write the heads of all matches of a rule's last atom; return how many rows are written then.

    Only for atoms that the access settles but for columns that go out (`P_FUSED`). It ends when the
    matches do, which leaves the cursor behind the last source, or when there is no more room: then the
    cursor stands at the last row written, or before a source that is not opened yet.
    """
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    sources = get(frame, F_SOURCES)
    registers = get(frame, F_REGISTERS)
    cursors = get(frame, F_CURSORS)
    out = get(frame, F_OUT)
    key = get(frame, F_SCRATCH)
    probe = key + 8 * MOST_COLUMNS
    plan = probe + 8 * MOST_COLUMNS
    excluded = get(frame, F_EXCLUDED)
    dictionary = get(frame, F_DICTIONARY)
    kinds = get(dictionary, D_KINDS)
    stack = key + 8 * STACK
    state = get(frame, F_STATE)
    bits = get(get(state, M_TARGET), T_BITS)
    terms = get(get(state, M_TARGET), T_TERMS)
    arity = get(steps, step + P_ARITY)
    at = get(steps, step + P_SPEC)
    unequal = get(steps, step + P_FUSED) == FUSED_UNEQUAL
    emit = step + 2 * STEP_WORDS if unequal else step + STEP_WORDS
    wide = get(steps, emit + P_ARITY)
    origins = get(steps, step + P_ORIGINS)
    column_0 = 0
    value_0 = 0
    column_1 = 0
    value_1 = 0
    if wide == 2:
        column_0 = get(spec, origins)
        value_0 = fixed_value(spec, origins, registers)
        column_1 = get(spec, origins + ORIGIN_WORDS)
        value_1 = fixed_value(spec, origins + ORIGIN_WORDS, registers)
    else:
        for column in range(wide):
            here = origins + column * ORIGIN_WORDS
            put(plan, 2 * column, get(spec, here))
            put(plan, 2 * column + 1, fixed_value(spec, here, registers))
    left_column = -1
    right_column = -1
    left = 0
    right = 0
    if unequal:
        here = origins + wide * ORIGIN_WORDS
        left_column = get(spec, here)
        left = fixed_value(spec, here, registers)
        right_column = get(spec, here + ORIGIN_WORDS)
        right = fixed_value(spec, here + ORIGIN_WORDS, registers)
    last = get(steps, step + P_SOURCES) + get(steps, step + P_SOURCE_COUNT)
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
        source = number * SOURCE_WORDS
        table = get(sources, source + S_TABLE)
        access = get(sources, source + S_ACCESS)
        rows = get(table, T_ROWS)
        low = range_low(table, get(sources, source + S_RANGE))
        high = range_high(table, get(sources, source + S_RANGE))
        if row < 0:
            fill_key(key, spec, at, arity, registers)
            row = open_source(sources, source, key, low, high)
        else:
            row = next_row(sources, source, row, high)
        here = table + 8 * (T_FIRST_INDEX + get(sources, source + S_INDEX) * INDEX_WORDS)
        following = get(here, I_NEXT)
        excluding = get(sources, source + S_EXCLUDED_COUNT) > 0
        while row >= 0 and filled < room and visited < MOST_VISITS:
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
                keep = not is_excluded(sources, source, row, excluded, arity, probe)
            if keep:
                derived += 1
                if wide == 2:
                    first = load32(rows, start + column_0) if column_0 >= 0 else value_0
                    second = load32(rows, start + column_1) if column_1 >= 0 else value_1
                    store32(out, 2 * filled, first)
                    store32(out, 2 * filled + 1, second)
                    if bits and not claim_pair(bits, terms, first, second):
                        filled -= 1
                else:
                    for column in range(wide):
                        inner = get(plan, 2 * column)
                        value = load32(rows, start + inner) if inner >= 0 else get(plan, 2 * column + 1)
                        store32(out, wide * filled + column, value)
                    if bits and not claim_pair(bits, terms, 0, load32(out, filled)):
                        filled -= 1
                filled += 1
            written = row
            visited += 1
            if access == BY_INDEX:
                row = load32(following, row)
            elif access >= BY_ROW:
                row = -1
            else:
                row = row + 1 if row + 1 < high else -1
        if row >= 0:
            break
    put(cursors, cursor, number)
    put(cursors, cursor + 1, written)
    put(state, M_VISITED, visited)
    put(state, M_DERIVED, get(state, M_DERIVED) + derived)
    return filled


@kernel
def emit_pairs(frame: int, step: int, cursor: int, room: int, filled: int) -> int:
    """Write the heads of all matches of a rule's last atom: `emit_matches` for pairs from pairs."""
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    sources = get(frame, F_SOURCES)
    registers = get(frame, F_REGISTERS)
    cursors = get(frame, F_CURSORS)
    out = get(frame, F_OUT)
    state = get(frame, F_STATE)
    bits = get(get(state, M_TARGET), T_BITS)
    terms = get(get(state, M_TARGET), T_TERMS)
    at = get(steps, step + P_SPEC)
    origins = get(steps, step + P_ORIGINS)
    column_0 = get(spec, origins)
    value_0 = fixed_value(spec, origins, registers)
    column_1 = get(spec, origins + ORIGIN_WORDS)
    value_1 = fixed_value(spec, origins + ORIGIN_WORDS, registers)
    last = get(steps, step + P_SOURCES) + get(steps, step + P_SOURCE_COUNT)
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
        source = sources + 8 * number * SOURCE_WORDS
        table = get(source, S_TABLE)
        access = get(source, S_ACCESS)
        low = range_low(table, get(source, S_RANGE))
        high = range_high(table, get(source, S_RANGE))
        if fresh:
            first = known_term(spec, at, registers)
            second = known_term(spec, at + SPEC_WORDS, registers)
            row = open_pairs(source, first, second, low, high)
        else:
            row = next_row(sources, number * SOURCE_WORDS, row, high)
        rows = get(table, T_ROWS)
        here = table + 8 * (T_FIRST_INDEX + get(source, S_INDEX) * INDEX_WORDS)
        following = get(here, I_NEXT)
        while row >= 0 and filled < room and visited < MOST_VISITS:
            if low <= row < high:
                derived += 1
                left = load32(rows, 2 * row + column_0) if column_0 >= 0 else value_0
                right = load32(rows, 2 * row + column_1) if column_1 >= 0 else value_1
                if not bits or claim_pair(bits, terms, left, right):
                    store32(out, 2 * filled, left)
                    store32(out, 2 * filled + 1, right)
                    filled += 1
            written = row
            visited += 1
            if access == BY_INDEX:
                row = load32(following, row)
            elif access >= BY_ROW:
                row = -1
            else:
                row = row + 1 if row + 1 < high else -1
        if row >= 0:
            row = written
            break
    put(cursors, cursor, number)
    put(cursors, cursor + 1, row)
    put(state, M_VISITED, visited)
    put(state, M_DERIVED, get(state, M_DERIVED) + derived)
    return filled
