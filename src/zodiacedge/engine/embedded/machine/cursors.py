"""Kernels that enumerate the matches of an atom, with a cursor over its sources.

A source is a table or a range of its rows, and has an access path, chosen by `assemble`: a scan, the chain
of an index, a row of the hash set, or a bit. A cursor is a source and a row: the machine can backtrack to it.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.storage.hash_index import (
    find_chain,
    find_pair,
    find_pair_chain,
    find_row,
    has_column,
    has_pair_bit,
)


@kernel
def range_low(at: int, which: int) -> int:
    """Return the first row of a range."""
    return get(at, L.T_LOW) if which == L.RANGE_DELTA else 0


@kernel
def range_high(at: int, which: int) -> int:
    """Return the first row after a range."""
    return get(at, L.T_LOW) if which == L.RANGE_OLD else get(at, L.T_HIGH)


@kernel
def fill_key(key: int, spec: int, at: int, arity: int, registers: int) -> None:
    """Write the bound columns of an atom to a key."""
    for column in range(arity):
        here = at + column * L.SPEC_WORDS
        if get(spec, here) == L.MODE_TERM:
            put(key, column, get(spec, here + 1))
        elif get(spec, here) == L.MODE_REGISTER:
            put(key, column, get(registers, get(spec, here + 1)))


@kernel
def open_source(source: int, key: int, low: int, high: int) -> int:
    """Return the first row on the access path of a source, or -1."""
    table = get(source, L.S_TABLE)
    access = get(source, L.S_ACCESS)
    if access == L.BY_INDEX:
        return find_chain(table, get(source, L.S_INDEX), key)
    if access == L.BY_ROW:
        row = find_row(table, key)
        return row if low <= row < high else -1
    if access == L.BY_BIT:
        wide = get(table, L.T_ARITY)
        if not has_pair_bit(table, get(key, 0) if wide == 2 else 0, get(key, wide - 1)):
            return -1
    return low if low < high else -1


@kernel
def chain_of(source: int) -> int:
    """Return the address of the chains on the access path of a source, if its access is `BY_INDEX`."""
    here = get(source, L.S_TABLE) + 8 * (L.T_FIRST_INDEX + get(source, L.S_INDEX) * L.INDEX_WORDS)
    return get(here, L.I_NEXT)


@kernel
def row_after(access: int, chain: int, row: int, high: int) -> int:
    """Return the next row on an access path, or -1."""
    if access == L.BY_INDEX:
        return load32(chain, row)
    if access >= L.BY_ROW:
        return -1
    return row + 1 if row + 1 < high else -1


@kernel
def next_row(source: int, row: int, high: int) -> int:
    """Return the next row on the access path of a source, or -1."""
    return row_after(get(source, L.S_ACCESS), chain_of(source), row, high)


@kernel
def match_row(source: int, row: int, spec: int, at: int, arity: int, registers: int) -> bool:
    """Whether a row matches an atom; its free columns are written to registers."""
    table = get(source, L.S_TABLE)
    width = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    checked = get(source, L.S_MASK)
    for column in range(arity):
        if has_column(checked, column):
            continue
        here = at + column * L.SPEC_WORDS
        mode = get(spec, here)
        value = load32(rows, row * width + column) if column < width else get(source, L.S_CLASS)
        if mode == L.MODE_OUT:
            put(registers, get(spec, here + 1), value)
        elif mode == L.MODE_REGISTER:
            if get(registers, get(spec, here + 1)) != value:
                return False
        elif mode == L.MODE_TERM and get(spec, here + 1) != value:
            return False
    return True


@kernel
def is_excluded(frame: int, source: int, row: int, arity: int) -> bool:
    """Whether a row is also in one of the tables whose rows the source excludes."""
    count = get(source, L.S_EXCLUDED_COUNT)
    if not count:
        return False
    excluded = get(frame, L.F_EXCLUDED)
    probe = get(frame, L.F_SCRATCH) + 8 * L.MOST_COLUMNS
    table = get(source, L.S_TABLE)
    width = get(table, L.T_ARITY)
    rows = get(table, L.T_ROWS)
    for column in range(arity):
        value = load32(rows, row * width + column) if column < width else get(source, L.S_CLASS)
        put(probe, column, value)
    for n in range(count):
        here = get(source, L.S_EXCLUDED) + n * L.EXCLUDED_WORDS
        other = get(excluded, here)
        if get(other, L.T_BITS):
            same = arity == 1 or get(probe, arity - 1) == get(excluded, here + 1)
            if same and has_pair_bit(other, 0, get(probe, 0)):
                return True
        elif get(other, L.T_ARITY) == arity:
            if (
                find_pair(other, get(probe, 0), get(probe, 1)) >= 0
                if arity == 2
                else find_row(other, probe) >= 0
            ):
                return True
        elif get(probe, arity - 1) == get(excluded, here + 1) and find_row(other, probe) >= 0:
            return True
    return False


@kernel
def advance(frame: int, step: int, cursor: int) -> bool:
    """Move an atom's cursor to its next match; return whether there is one."""
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    sources = get(frame, L.F_SOURCES)
    registers = get(frame, L.F_REGISTERS)
    cursors = get(frame, L.F_CURSORS)
    key = get(frame, L.F_SCRATCH)
    arity = get(steps, step + L.P_ARITY)
    at = get(steps, step + L.P_SPEC)
    last = get(steps, step + L.P_SOURCES) + get(steps, step + L.P_SOURCE_COUNT)
    number = get(cursors, cursor)
    row = get(cursors, cursor + 1)
    while True:
        if row < 0:
            number += 1
            if number >= last:
                return False
        source = sources + 8 * number * L.SOURCE_WORDS
        table = get(source, L.S_TABLE)
        low = range_low(table, get(source, L.S_RANGE))
        high = range_high(table, get(source, L.S_RANGE))
        if row < 0:
            fill_key(key, spec, at, arity, registers)
            row = open_source(source, key, low, high)
        else:
            row = next_row(source, row, high)
        while row >= 0:
            if (
                low <= row < high
                and match_row(source, row, spec, at, arity, registers)
                and not is_excluded(frame, source, row, arity)
            ):
                put(cursors, cursor, number)
                put(cursors, cursor + 1, row)
                return True
            row = next_row(source, row, high)


@kernel
def known_term(spec: int, at: int, registers: int) -> int:
    """Return the term that a column must hold, or -1 if it is free."""
    mode = get(spec, at)
    operand = get(spec, at + 1)
    if mode == L.MODE_TERM:
        return operand
    return get(registers, operand) if mode == L.MODE_REGISTER else -1


@kernel
def open_pairs(source: int, first: int, second: int, low: int, high: int) -> int:
    """Return the first row on the access path of a source of two columns, or -1."""
    table = get(source, L.S_TABLE)
    access = get(source, L.S_ACCESS)
    if access == L.BY_INDEX:
        chains = table + 8 * (L.T_FIRST_INDEX + get(source, L.S_INDEX) * L.INDEX_WORDS)
        rows = get(table, L.T_ROWS)
        if get(source, L.S_MASK) == 1:
            return find_pair_chain(chains, rows, 0, first)
        return find_pair_chain(chains, rows, 1, second)
    if access == L.BY_ROW:
        row = find_pair(table, first, second)
        return row if low <= row < high else -1
    if access == L.BY_BIT and not has_pair_bit(table, first, second):
        return -1
    return low if low < high else -1


@kernel
def advance_pairs(frame: int, step: int, cursor: int) -> bool:
    """Move the cursor of a `PAIRS` atom to its next match: `advance` for two columns."""
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    sources = get(frame, L.F_SOURCES)
    registers = get(frame, L.F_REGISTERS)
    cursors = get(frame, L.F_CURSORS)
    at = get(steps, step + L.P_SPEC)
    first = known_term(spec, at, registers)
    second = known_term(spec, at + L.SPEC_WORDS, registers)
    last = get(steps, step + L.P_SOURCES) + get(steps, step + L.P_SOURCE_COUNT)
    number = get(cursors, cursor)
    row = get(cursors, cursor + 1)
    while True:
        fresh = row < 0
        if fresh:
            number += 1
            if number >= last:
                return False
        source = sources + 8 * number * L.SOURCE_WORDS
        table = get(source, L.S_TABLE)
        low = range_low(table, get(source, L.S_RANGE))
        high = range_high(table, get(source, L.S_RANGE))
        row = open_pairs(source, first, second, low, high) if fresh else next_row(source, row, high)
        excluding = get(source, L.S_EXCLUDED_COUNT) > 0
        while row >= 0:
            if low <= row < high and not (excluding and is_excluded(frame, source, row, 2)):
                rows = get(table, L.T_ROWS)
                if get(spec, at) == L.MODE_OUT:
                    put(registers, get(spec, at + 1), load32(rows, 2 * row))
                if get(spec, at + L.SPEC_WORDS) == L.MODE_OUT:
                    put(registers, get(spec, at + L.SPEC_WORDS + 1), load32(rows, 2 * row + 1))
                put(cursors, cursor, number)
                put(cursors, cursor + 1, row)
                return True
            row = next_row(source, row, high)
