"""Kernels of plans whose heads are a product (`plan.product`).

The rows of the delta that have one term in their first column are a group. The terms that each of the two
parts of a plan binds for a group are gathered in a buffer, and all pairs of them are heads. A first part that
overflows its buffer is taken piece by piece, each with the whole second part, which is taken in pieces too.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load8, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.machine.cursors import (
    chain_of,
    is_excluded,
    known_term,
    next_row,
    open_pairs,
    range_high,
    range_low,
    row_after,
)
from zodiacedge.engine.embedded.storage.hash_index import set_pair_bit


@kernel
def next_group(frame: int, step: int, cursor: int) -> bool:
    """Move to the next group, and write its term to a register; return whether there is one."""
    steps = get(frame, L.F_STEPS)
    sources = get(frame, L.F_SOURCES)
    cursors = get(frame, L.F_CURSORS)
    last = get(steps, step + L.P_SOURCES) + get(steps, step + L.P_SOURCE_COUNT)
    number = get(cursors, cursor)
    end = get(cursors, cursor + 1)
    allowed = get(steps, step + L.P_FILTER)
    while True:
        if end < 0:
            number += 1
            if number >= last:
                return False
        source = sources + 8 * number * L.SOURCE_WORDS
        table = get(source, L.S_TABLE)
        row = end if end >= 0 else range_low(table, get(source, L.S_RANGE))
        high = range_high(table, get(source, L.S_RANGE))
        rows = get(table, L.T_ROWS)
        found = False
        term = -1
        while row < high and not found:
            term = load32(rows, 2 * row)
            end = row + 1
            while end < high and load32(rows, 2 * end) == term:
                end += 1
            found = not allowed or (load8(allowed, term >> 3) >> (term & 7)) & 1 == 1
            row = row if found else end
        if found:
            break
        end = -1
    put(get(frame, L.F_REGISTERS), get(get(frame, L.F_SPEC), get(steps, step + L.P_SPEC) + 1), term)
    put(get(frame, L.F_STATE), L.M_GROUP, row)
    put(cursors, cursor, number)
    put(cursors, cursor + 1, end)
    return True


@kernel
def next_in_group(frame: int, step: int, cursor: int) -> bool:
    """Move to the next row of the group, and write its second term to a register."""
    steps = get(frame, L.F_STEPS)
    cursors = get(frame, L.F_CURSORS)
    # The group is the first step.
    source = get(frame, L.F_SOURCES) + 8 * get(cursors, 0) * L.SOURCE_WORDS
    end = get(cursors, 1)
    row = get(cursors, cursor) + 1
    excluding = get(source, L.S_EXCLUDED_COUNT) > 0
    while row < end and excluding and is_excluded(frame, source, row, 2):
        row += 1
    put(cursors, cursor, row)
    if row >= end:
        return False
    term = load32(get(get(source, L.S_TABLE), L.T_ROWS), 2 * row + 1)
    put(get(frame, L.F_REGISTERS), get(get(frame, L.F_SPEC), get(steps, step + L.P_SPEC) + 1), term)
    return True


@kernel
def part_of(frame: int, gathering: int) -> int:
    """Return the part, 0 or 1, that a gathering step ends."""
    return int(get(get(frame, L.F_STEPS), gathering + L.P_OP) == L.OP_PRODUCT)


@kernel
def gather_group(frame: int, step: int, cursor: int) -> bool:
    """Gather the second terms of the group's rows; return whether the buffer is full."""
    cursors = get(frame, L.F_CURSORS)
    state = get(frame, L.F_STATE)
    source = get(frame, L.F_SOURCES) + 8 * get(cursors, 0) * L.SOURCE_WORDS
    rows = get(get(source, L.S_TABLE), L.T_ROWS)
    excluding = get(source, L.S_EXCLUDED_COUNT) > 0
    part = part_of(frame, step + L.STEP_WORDS)
    out = get(frame, L.F_GATHERED) + 4 * L.GATHERED_TERMS * part
    count = get(state, L.M_GATHERED + part)
    end = get(cursors, 1)
    begun = get(cursors, cursor) + 1
    row = begun
    while row < end and count < L.GATHERED_TERMS:
        if not (excluding and is_excluded(frame, source, row, 2)):
            store32(out, count, load32(rows, 2 * row + 1))
            count += 1
        row += 1
    put(cursors, cursor, row - 1)
    put(state, L.M_GATHERED + part, count)
    put(state, L.M_VISITED, row - begun)
    return count == L.GATHERED_TERMS


@kernel
def gather_pairs(frame: int, step: int, cursor: int) -> bool:
    """Gather a column of all matches of an atom of two columns; return whether the buffer is full."""
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    sources = get(frame, L.F_SOURCES)
    registers = get(frame, L.F_REGISTERS)
    cursors = get(frame, L.F_CURSORS)
    state = get(frame, L.F_STATE)
    part = part_of(frame, step + L.STEP_WORDS)
    out = get(frame, L.F_GATHERED) + 4 * L.GATHERED_TERMS * part
    count = get(state, L.M_GATHERED + part)
    at = get(steps, step + L.P_SPEC)
    column = get(steps, step + L.P_ORIGINS)
    last = get(steps, step + L.P_SOURCES) + get(steps, step + L.P_SOURCE_COUNT)
    number = get(cursors, cursor)
    row = get(cursors, cursor + 1)
    visited = 0
    while count < L.GATHERED_TERMS:
        fresh = row < 0
        if fresh:
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
        excluding = get(source, L.S_EXCLUDED_COUNT) > 0
        written = row
        while row >= 0 and count < L.GATHERED_TERMS:
            if low <= row < high and not (excluding and is_excluded(frame, source, row, 2)):
                store32(out, count, load32(rows, 2 * row + column))
                count += 1
            visited += 1
            written = row
            row = row_after(access, chain, row, high)
        if count == L.GATHERED_TERMS:
            row = written
    put(cursors, cursor, number)
    put(cursors, cursor + 1, row)
    put(state, L.M_GATHERED + part, count)
    put(state, L.M_VISITED, visited)
    return count == L.GATHERED_TERMS


@kernel
def gather_joined(frame: int, step: int, cursor: int) -> bool:
    """Gather a column of all matches of the atom that follows the rows of the group.

    Return whether the buffer is full; then the cursor and the register are those of the last match.
    """
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    sources = get(frame, L.F_SOURCES)
    registers = get(frame, L.F_REGISTERS)
    cursors = get(frame, L.F_CURSORS)
    state = get(frame, L.F_STATE)
    group = get(sources + 8 * get(cursors, 0) * L.SOURCE_WORDS, L.S_TABLE)
    terms = get(group, L.T_ROWS)
    end = get(cursors, 1)
    register = get(spec, get(steps, step + L.P_SPEC) + 1)
    atom = step + L.STEP_WORDS
    at = get(steps, atom + L.P_SPEC)
    column = get(steps, atom + L.P_ORIGINS)
    begin = get(steps, atom + L.P_SOURCES)
    last = begin + get(steps, atom + L.P_SOURCE_COUNT)
    part = part_of(frame, atom + L.STEP_WORDS)
    out = get(frame, L.F_GATHERED) + 4 * L.GATHERED_TERMS * part
    count = get(state, L.M_GATHERED + part)
    begun = count
    here = get(cursors, cursor) + 1
    visited = 0
    while here < end:
        put(registers, register, load32(terms, 2 * here + 1))
        first = known_term(spec, at, registers)
        second = known_term(spec, at + L.SPEC_WORDS, registers)
        for number in range(begin, last):
            source = sources + 8 * number * L.SOURCE_WORDS
            table = get(source, L.S_TABLE)
            access = get(source, L.S_ACCESS)
            rows = get(table, L.T_ROWS)
            low = range_low(table, get(source, L.S_RANGE))
            high = range_high(table, get(source, L.S_RANGE))
            chain = chain_of(source)
            row = open_pairs(source, first, second, low, high)
            while row >= 0:
                if low <= row < high:
                    store32(out, count, load32(rows, 2 * row + column))
                    count += 1
                    if count == L.GATHERED_TERMS:
                        put(cursors, cursor, here)
                        put(cursors, cursor + 2, number)
                        put(cursors, cursor + 3, row)
                        put(state, L.M_GATHERED + part, count)
                        put(state, L.M_VISITED, visited + count - begun)
                        return True
                row = row_after(access, chain, row, high)
        visited += 1
        here += 1
    put(cursors, cursor, end)
    put(state, L.M_GATHERED + part, count)
    put(state, L.M_VISITED, visited + count - begun)
    return False


@kernel
def gather_term(frame: int, step: int) -> bool:
    """Gather the term in a register, unless the step before gathers; return whether the buffer is full."""
    steps = get(frame, L.F_STEPS)
    state = get(frame, L.F_STATE)
    part = part_of(frame, step)
    count = get(state, L.M_GATHERED + part)
    if not get(steps, step + L.P_FUSED):
        term = get(get(frame, L.F_REGISTERS), get(get(frame, L.F_SPEC), get(steps, step + L.P_SPEC) + 1))
        store32(get(frame, L.F_GATHERED) + 4 * L.GATHERED_TERMS * part, count, term)
        count += 1
        put(state, L.M_GATHERED + part, count)
    return count == L.GATHERED_TERMS


@kernel
def begin_parts(state: int, swapped: int) -> None:
    """Begin to gather for another group."""
    put(state, L.M_GATHERED, 0)
    put(state, L.M_GATHERED + 1, 0)
    put(state, L.M_LAST, 0)
    put(state, L.M_SWAPPED, swapped)


@kernel
def emit_product(frame: int, state: int, room: int, filled: int) -> int:
    """Write pairs of gathered terms; return the rows in the output buffer.

    It stops when there is no more room, or after the last pair, which clears the terms of the second part.
    """
    out = get(frame, L.F_OUT)
    target = get(state, L.M_TARGET)
    bits = get(target, L.T_BITS)
    terms = get(target, L.T_TERMS)
    shared = get(target, L.T_SHARED)
    swapped = get(state, L.M_SWAPPED)
    gathered = get(frame, L.F_GATHERED)
    lefts = gathered + 4 * L.GATHERED_TERMS * swapped
    rights = gathered + 4 * L.GATHERED_TERMS * (1 - swapped)
    total = get(state, L.M_GATHERED + swapped)
    width = get(state, L.M_GATHERED + 1 - swapped)
    i = get(state, L.M_PAIR)
    j = get(state, L.M_PAIR + 1)
    visited = 0
    while i < total and filled < room:
        left = load32(lefts, i)
        begun = j
        while j < width and filled < room:
            right = load32(rights, j)
            if not bits or set_pair_bit(bits, terms, left, right, shared):
                store32(out, 2 * filled, left)
                store32(out, 2 * filled + 1, right)
                filled += 1
            j += 1
        visited += j - begun
        if j >= width:
            i += 1
            j = 0
    if i >= total:
        i = 0
        put(state, L.M_GATHERED + 1, 0)
    put(state, L.M_PAIR, i)
    put(state, L.M_PAIR + 1, j)
    put(state, L.M_VISITED, visited)
    put(state, L.M_DERIVED, get(state, L.M_DERIVED) + visited)
    return filled
