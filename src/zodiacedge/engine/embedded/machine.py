"""The rule machine: one compiled interpreter that runs a hyper-node's whole fixpoint.

A rule variant is a run of steps; a step is an atom to match, an atom that must be absent, a comparison,
a binding, or the head to emit. The machine walks the steps depth first, with a cursor per atom and a
register per variable. It stops when its budget is used up or when a table needs room, and goes on from
the same place when called again: that is where interruption, limits and growth live.

In each round the delta of a table is a range of its rows, those of the round before, so nothing is
copied. A step that has no value (a division by zero) poisons the binding: the rest is still judged, and
the emit step counts it instead of storing a fact.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.arithmetic import compare_values, evaluate_code, term_of
from zodiacedge.engine.embedded.compiled import kernel, load8, load32, store32
from zodiacedge.engine.embedded.compiled import load64 as get
from zodiacedge.engine.embedded.compiled import store64 as put
from zodiacedge.engine.embedded.layout import (
    BY_BIT,
    BY_INDEX,
    BY_ROW,
    D_CAPACITY,
    D_COUNT,
    D_KINDS,
    D_SLOT_COUNT,
    DONE,
    EQUAL,
    EXCLUDED_WORDS,
    EXPRESSION_WORDS,
    F_CURSORS,
    F_DICTIONARY,
    F_ERROR_WORDS,
    F_ERRORS,
    F_EXCLUDED,
    F_OUT,
    F_OUT_WORDS,
    F_OWN,
    F_OWN_COUNT,
    F_REGISTERS,
    F_SCRATCH,
    F_SORTED,
    F_SOURCES,
    F_SPEC,
    F_STATE,
    F_STEPS,
    F_VARIANT_COUNT,
    F_VARIANTS,
    FAILS,
    FIRST_ROUND,
    FUSED_UNEQUAL,
    HOLDS,
    I_NEXT,
    INDEX_WORDS,
    IS_PENDING,
    IS_TERM,
    K_INTEGER,
    M_BUDGET,
    M_DEPTH,
    M_DERIVED,
    M_FILLED,
    M_FORWARD,
    M_PASS_ERRORS,
    M_PENDING,
    M_POISON,
    M_ROUND,
    M_RULE,
    M_STARTED,
    M_TARGET,
    M_VARIANT,
    M_VISITED,
    MODE_OUT,
    MODE_REGISTER,
    MODE_TERM,
    MOST_COLUMNS,
    MOST_PARTS,
    MOST_VISITS,
    NEEDS_HOST,
    NEEDS_ROOM,
    NEEDS_TERMS,
    NO_ORDER,
    OP_ABSENT,
    OP_ATOM,
    OP_COMPARE,
    OP_EMIT,
    ORIGIN_WORDS,
    P_ARITY,
    P_CHECKS,
    P_FUSED,
    P_LEFT,
    P_ONCE,
    P_OP,
    P_OPERATOR,
    P_ORIGINS,
    P_PAIRS,
    P_REGISTER,
    P_RIGHT,
    P_SOURCE_COUNT,
    P_SOURCES,
    P_SPEC,
    P_TARGET,
    PAIRS_TO_PAIRS,
    PAUSED,
    PENDING,
    RANGE_DELTA,
    RANGE_OLD,
    ROWS_WORTH_A_PART,
    S_ACCESS,
    S_CLASS,
    S_EXCLUDED,
    S_EXCLUDED_COUNT,
    S_INDEX,
    S_MASK,
    S_RANGE,
    S_TABLE,
    SHARE_OF_TABLE,
    SLOTS_IN_CACHE,
    SMALL_OUT,
    SOURCE_WORDS,
    SPARE_TERMS,
    SPEC_WORDS,
    STACK,
    STEP_WORDS,
    T_ARITY,
    T_BITS,
    T_COUNT,
    T_FIRST_INDEX,
    T_HIGH,
    T_LOW,
    T_ROWS,
    T_SLOT_COUNT,
    T_SLOTS,
    T_TERMS,
    UNEQUAL,
    V_FIRST,
    V_LENGTH,
    V_RULE,
    V_WHEN,
    VARIANT_WORDS,
    X_REGISTER,
    X_TERM,
)
from zodiacedge.engine.embedded.rowset import (
    claim_pair,
    find_chain,
    find_half,
    find_pair,
    find_row,
    has_column,
    has_room,
    insert_rows,
    is_full,
    is_marked,
    partition_rows,
)


@kernel
def range_low(at: int, which: int) -> int:
    """Return the first row of a range."""
    return get(at, T_LOW) if which == RANGE_DELTA else 0


@kernel
def range_high(at: int, which: int) -> int:
    """Return the first row behind a range."""
    return get(at, T_LOW) if which == RANGE_OLD else get(at, T_HIGH)


@kernel
def fill_key(key: int, spec: int, at: int, arity: int, registers: int) -> None:
    """Put the known columns of an atom into a key."""
    for column in range(arity):
        here = at + column * SPEC_WORDS
        if get(spec, here) == MODE_TERM:
            put(key, column, get(spec, here + 1))
        elif get(spec, here) == MODE_REGISTER:
            put(key, column, get(registers, get(spec, here + 1)))


@kernel
def open_source(sources: int, source: int, key: int, low: int, high: int) -> int:
    """Return the first row that a source's access leads to, or -1."""
    table = get(sources, source + S_TABLE)
    access = get(sources, source + S_ACCESS)
    if access == BY_INDEX:
        return find_chain(table, get(sources, source + S_INDEX), key)
    if access == BY_ROW:
        row = find_row(table, key)
        return row if low <= row < high else -1
    if access == BY_BIT:
        wide = get(table, T_ARITY)
        if not is_marked(table, get(key, 0) if wide == 2 else 0, get(key, wide - 1)):
            return -1
    return low if low < high else -1


@kernel
def next_row(sources: int, source: int, row: int, high: int) -> int:
    """Return the row that follows on the access path of a source, or -1."""
    access = get(sources, source + S_ACCESS)
    if access == BY_INDEX:
        table = get(sources, source + S_TABLE)
        here = table + 8 * (T_FIRST_INDEX + get(sources, source + S_INDEX) * INDEX_WORDS)
        return load32(get(here, I_NEXT), row)
    if access >= BY_ROW:
        return -1
    return row + 1 if row + 1 < high else -1


@kernel
def match_row(
    sources: int,
    source: int,
    row: int,
    spec: int,
    at: int,
    arity: int,
    registers: int,
) -> bool:
    """Whether a row fits an atom; its open columns go into registers."""
    table = get(sources, source + S_TABLE)
    width = get(table, T_ARITY)
    rows = get(table, T_ROWS)
    settled = get(sources, source + S_MASK)
    for column in range(arity):
        if has_column(settled, column):
            continue
        here = at + column * SPEC_WORDS
        mode = get(spec, here)
        value = load32(rows, row * width + column) if column < width else get(sources, source + S_CLASS)
        if mode == MODE_OUT:
            put(registers, get(spec, here + 1), value)
        elif mode == MODE_REGISTER:
            if get(registers, get(spec, here + 1)) != value:
                return False
        elif mode == MODE_TERM and get(spec, here + 1) != value:
            return False
    return True


@kernel
def is_excluded(sources: int, source: int, row: int, excluded: int, arity: int, probe: int) -> bool:
    """Whether a row stands in another table too, one that the source leaves to somebody else."""
    count = get(sources, source + S_EXCLUDED_COUNT)
    if not count:
        return False
    table = get(sources, source + S_TABLE)
    width = get(table, T_ARITY)
    rows = get(table, T_ROWS)
    for column in range(arity):
        put(
            probe,
            column,
            load32(rows, row * width + column) if column < width else get(sources, source + S_CLASS),
        )
    for n in range(count):
        here = get(sources, source + S_EXCLUDED) + n * EXCLUDED_WORDS
        other = get(excluded, here)
        if get(other, T_ARITY) == arity:
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
def advance(
    steps: int,
    step: int,
    spec: int,
    sources: int,
    excluded: int,
    registers: int,
    cursors: int,
    cursor: int,
    key: int,
    probe: int,
) -> bool:
    """Move an atom's cursor to its next match; return whether there is one."""
    arity = get(steps, step + P_ARITY)
    at = get(steps, step + P_SPEC)
    last = get(steps, step + P_SOURCES) + get(steps, step + P_SOURCE_COUNT)
    number = get(cursors, cursor)
    row = get(cursors, cursor + 1)
    while True:
        if row < 0:
            number += 1
            if number >= last:
                return False
        source = number * SOURCE_WORDS
        table = get(sources, source + S_TABLE)
        low = range_low(table, get(sources, source + S_RANGE))
        high = range_high(table, get(sources, source + S_RANGE))
        if row < 0:
            fill_key(key, spec, at, arity, registers)
            row = open_source(sources, source, key, low, high)
        else:
            row = next_row(sources, source, row, high)
        while row >= 0:
            if (
                low <= row < high
                and match_row(sources, source, row, spec, at, arity, registers)
                and not is_excluded(sources, source, row, excluded, arity, probe)
            ):
                put(cursors, cursor, number)
                put(cursors, cursor + 1, row)
                return True
            row = next_row(sources, source, row, high)


@kernel
def known_term(spec: int, at: int, registers: int) -> int:
    """Return the term that a column must hold; what stands there where any will do does not matter."""
    mode = get(spec, at)
    operand = get(spec, at + 1)
    if mode == MODE_TERM:
        return operand
    return get(registers, operand) if mode == MODE_REGISTER else -1


@kernel
def open_pairs(source: int, first: int, second: int, low: int, high: int) -> int:
    """Return the first row of two columns that a source's access leads to, or -1."""
    table = get(source, S_TABLE)
    access = get(source, S_ACCESS)
    if access == BY_INDEX:
        chains = table + 8 * (T_FIRST_INDEX + get(source, S_INDEX) * INDEX_WORDS)
        rows = get(table, T_ROWS)
        if get(source, S_MASK) == 1:
            return find_half(chains, rows, 0, first)
        return find_half(chains, rows, 1, second)
    if access == BY_ROW:
        row = find_pair(table, first, second)
        return row if low <= row < high else -1
    if access == BY_BIT and not is_marked(table, first, second):
        return -1
    return low if low < high else -1


@kernel
def advance_pairs(frame: int, step: int, cursor: int) -> bool:
    """Move the cursor of an atom of two columns to its next match: `advance` with nothing in the way."""
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    sources = get(frame, F_SOURCES)
    registers = get(frame, F_REGISTERS)
    cursors = get(frame, F_CURSORS)
    at = get(steps, step + P_SPEC)
    first = known_term(spec, at, registers)
    second = known_term(spec, at + SPEC_WORDS, registers)
    last = get(steps, step + P_SOURCES) + get(steps, step + P_SOURCE_COUNT)
    number = get(cursors, cursor)
    row = get(cursors, cursor + 1)
    while True:
        fresh = row < 0
        if fresh:
            number += 1
            if number >= last:
                return False
        source = sources + 8 * number * SOURCE_WORDS
        table = get(source, S_TABLE)
        low = range_low(table, get(source, S_RANGE))
        high = range_high(table, get(source, S_RANGE))
        if fresh:
            row = open_pairs(source, first, second, low, high)
        else:
            row = next_row(sources, number * SOURCE_WORDS, row, high)
        excluding = get(source, S_EXCLUDED_COUNT) > 0
        while row >= 0:
            if low <= row < high and not (
                excluding
                and is_excluded(
                    sources,
                    number * SOURCE_WORDS,
                    row,
                    get(frame, F_EXCLUDED),
                    2,
                    get(frame, F_SCRATCH) + 8 * MOST_COLUMNS,
                )
            ):
                rows = get(table, T_ROWS)
                if get(spec, at) == MODE_OUT:
                    put(registers, get(spec, at + 1), load32(rows, 2 * row))
                if get(spec, at + SPEC_WORDS) == MODE_OUT:
                    put(registers, get(spec, at + SPEC_WORDS + 1), load32(rows, 2 * row + 1))
                put(cursors, cursor, number)
                put(cursors, cursor + 1, row)
                return True
            row = next_row(sources, number * SOURCE_WORDS, row, high)


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


@kernel
def flush(frame: int, target: int, filled: int) -> bool:
    """Insert the rows of the output buffer into their table; return False if it needs room first."""
    if not has_room(target, filled):
        return False
    given = get(frame, F_OUT)
    arity = get(target, T_ARITY)
    parts = get(target, T_SLOT_COUNT) // SLOTS_IN_CACHE
    if get(target, T_SLOTS) and parts > 1 and filled >= parts * ROWS_WORTH_A_PART:
        parts = min(parts, MOST_PARTS)
        partition_rows(given, get(frame, F_SORTED), filled, arity, parts, get(frame, F_SCRATCH))
        given = get(frame, F_SORTED)
    insert_rows(target, given, filled, get(frame, F_SCRATCH))
    return True


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
def next_round(frame: int, state: int) -> bool:
    """Make what the last round derived the delta of the next; return whether there is any."""
    own = get(frame, F_OWN)
    changed = False
    for n in range(get(frame, F_OWN_COUNT)):
        table = get(own, n)
        put(table, T_LOW, get(table, T_HIGH))
        put(table, T_HIGH, get(table, T_COUNT))
        if get(table, T_LOW) < get(table, T_HIGH):
            changed = True
    put(state, M_ROUND, get(state, M_ROUND) + 1)
    return changed


@kernel
def has_no_value(steps: int, step: int, spec: int, registers: int) -> bool:
    """Whether a register that an atom needs was left without a value by an error."""
    for column in range(get(steps, step + P_ARITY)):
        here = get(steps, step + P_SPEC) + column * SPEC_WORDS
        if get(spec, here) == MODE_REGISTER and get(registers, get(spec, here + 1)) < 0:
            return True
    return False


@kernel
def code_has_value(spec: int, at: int, length: int, registers: int) -> bool:
    """Whether every register that an expression reads has a value."""
    for n in range(length):
        here = at + n * EXPRESSION_WORDS
        if get(spec, here) == X_REGISTER and get(registers, get(spec, here + 1)) < 0:
            return False
    return True


@kernel
def compare_step(frame: int, step: int) -> int:
    """Judge a comparison. One that reads something without a value cannot fail."""
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    registers = get(frame, F_REGISTERS)
    dictionary = get(frame, F_DICTIONARY)
    stack = get(frame, F_SCRATCH) + 8 * STACK
    at = get(steps, step + P_SPEC)
    left = get(steps, step + P_LEFT)
    right = get(steps, step + P_RIGHT)
    operator = get(steps, step + P_OPERATOR)
    behind = at + left * EXPRESSION_WORDS
    if not code_has_value(spec, at, left + right, registers):
        return HOLDS
    if operator <= UNEQUAL and left == 1 and right == 1:
        first = get(spec, at + 1) if get(spec, at) == X_TERM else get(registers, get(spec, at + 1))
        second = (
            get(spec, behind + 1) if get(spec, behind) == X_TERM else get(registers, get(spec, behind + 1))
        )
        if first == second:
            return HOLDS if operator == EQUAL else FAILS
    evaluate_code(frame, at, left, stack, 0)
    evaluate_code(frame, behind, right, stack, 2)
    return compare_values(dictionary, stack, operator)


@kernel
def bind_step(frame: int, step: int) -> int:
    """Bind a register; where the expression has no value, leave it without one and return NO_ORDER."""
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    registers = get(frame, F_REGISTERS)
    stack = get(frame, F_SCRATCH) + 8 * STACK
    at = get(steps, step + P_SPEC)
    length = get(steps, step + P_LEFT)
    term = -1
    known = code_has_value(spec, at, length, registers)
    if known:
        evaluate_code(frame, at, length, stack, 0)
        if get(stack, 0) == IS_PENDING:
            return PENDING
        term = term_of(get(frame, F_DICTIONARY), stack, 0)
    register = get(steps, step + P_REGISTER)
    if not get(steps, step + P_CHECKS):
        put(registers, register, term)
    elif term >= 0 and get(registers, register) != term:
        return FAILS
    # What an earlier error left open is not an error of its own.
    return HOLDS if term >= 0 or not known else NO_ORDER


@kernel
def note_error(frame: int, state: int) -> None:
    """Count a binding that had no value, and keep the registers of a rule's first."""
    errors = get(frame, F_ERRORS)
    registers = get(frame, F_REGISTERS)
    size = get(frame, F_ERROR_WORDS)
    at = get(state, M_RULE) * size
    count = get(state, M_PASS_ERRORS) + 1
    put(state, M_PASS_ERRORS, count)
    if get(errors, at) == 0 and count == 1:
        for n in range(size - 1):
            put(errors, at + 1 + n, get(registers, n))


@kernel
def run_variant(frame: int, state: int, first: int) -> int:
    """Run one variant from where its state says; return why it stopped."""
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    sources = get(frame, F_SOURCES)
    excluded = get(frame, F_EXCLUDED)
    registers = get(frame, F_REGISTERS)
    cursors = get(frame, F_CURSORS)
    key = get(frame, F_SCRATCH)
    probe = key + 8 * MOST_COLUMNS
    out = get(frame, F_OUT)
    dictionary = get(frame, F_DICTIONARY)
    budget = get(state, M_BUDGET)
    depth = get(state, M_DEPTH)
    forward = get(state, M_FORWARD)
    poison = get(state, M_POISON)
    filled = get(state, M_FILLED)
    target = get(state, M_TARGET)
    wide = max(1, get(target, T_ARITY))
    bits = get(target, T_BITS)
    terms = get(target, T_TERMS)
    room = min(get(frame, F_OUT_WORDS) // wide, max(SMALL_OUT, get(target, T_COUNT) // SHARE_OF_TABLE))
    derived = 0
    reason = DONE
    while True:
        if filled >= room or (depth < 0 and filled):
            if not flush(frame, target, filled):
                reason = NEEDS_ROOM
                break
            filled = 0
        if depth < 0:
            break
        if budget <= 0:
            reason = PAUSED
            break
        budget -= 1
        step = (first + depth) * STEP_WORDS
        op = get(steps, step + P_OP)
        cursor = 2 * depth
        if op == OP_ATOM:
            if forward:
                put(cursors, cursor, get(steps, step + P_SOURCES) - 1)
                put(cursors, cursor + 1, -1)
            elif get(steps, step + P_ONCE):
                depth -= 1
                continue
            pairs = get(steps, step + P_PAIRS)
            if get(steps, step + P_FUSED) and not poison:
                if pairs == PAIRS_TO_PAIRS:
                    filled = emit_pairs(frame, step, cursor, room, filled)
                else:
                    filled = emit_matches(frame, step, cursor, room, filled)
                budget -= get(state, M_VISITED)
                forward = 0
                if get(cursors, cursor) >= get(steps, step + P_SOURCES) + get(steps, step + P_SOURCE_COUNT):
                    depth -= 1
            elif (
                advance_pairs(frame, step, cursor)
                if pairs
                else advance(steps, step, spec, sources, excluded, registers, cursors, cursor, key, probe)
            ):
                depth += 1
                forward = 1
            else:
                depth -= 1
                forward = 0
        elif op == OP_EMIT:
            if poison:
                note_error(frame, state)
            else:
                arity = get(steps, step + P_ARITY)
                fill_key(key, spec, get(steps, step + P_SPEC), arity, registers)
                for column in range(arity):
                    store32(out, filled * wide + column, get(key, column))
                if not bits or claim_pair(bits, terms, get(key, 0) if wide == 2 else 0, get(key, wide - 1)):
                    filled += 1
                derived += 1
            depth -= 1
            forward = 0
        elif not forward:
            if poison == depth + 1:
                poison = 0
            depth -= 1
        elif op == OP_ABSENT:
            if poison and has_no_value(steps, step, spec, registers):
                depth += 1
                continue
            put(cursors, cursor, get(steps, step + P_SOURCES) - 1)
            put(cursors, cursor + 1, -1)
            if advance(steps, step, spec, sources, excluded, registers, cursors, cursor, key, probe):
                depth -= 1
                forward = 0
            else:
                depth += 1
        else:
            if get(dictionary, D_COUNT) + SPARE_TERMS > get(dictionary, D_CAPACITY) or is_full(
                get(dictionary, D_COUNT) + SPARE_TERMS, get(dictionary, D_SLOT_COUNT)
            ):
                reason = NEEDS_TERMS
                break
            outcome = compare_step(frame, step) if op == OP_COMPARE else bind_step(frame, step)
            if outcome == FAILS or outcome == PENDING:
                depth -= 1
                forward = 0
            else:
                if outcome == NO_ORDER and not poison:
                    poison = depth + 1
                depth += 1
    put(state, M_BUDGET, budget)
    put(state, M_DEPTH, depth)
    put(state, M_FORWARD, forward)
    put(state, M_POISON, poison)
    put(state, M_FILLED, filled)
    put(state, M_DERIVED, get(state, M_DERIVED) + derived)
    return reason


@kernel
def run(frame: int, state: int) -> int:
    """Run a node until its fixpoint, or until something is needed; return why it stopped."""
    variants = get(frame, F_VARIANTS)
    steps = get(frame, F_STEPS)
    count = get(frame, F_VARIANT_COUNT)
    variant = get(state, M_VARIANT)
    while True:
        if variant >= count:
            variant = 0
            if not next_round(frame, state):
                put(state, M_VARIANT, variant)
                return DONE
        here = variant * VARIANT_WORDS
        if (get(variants, here + V_WHEN) == FIRST_ROUND) == (get(state, M_ROUND) == 0):
            first = get(variants, here + V_FIRST)
            if not get(state, M_STARTED):
                emit = (first + get(variants, here + V_LENGTH) - 1) * STEP_WORDS
                put(state, M_TARGET, get(steps, emit + P_TARGET))
                put(state, M_RULE, get(variants, here + V_RULE))
                put(state, M_STARTED, 1)
                put(state, M_DEPTH, 0)
                put(state, M_FORWARD, 1)
                put(state, M_POISON, 0)
                put(state, M_PENDING, 0)
                put(state, M_PASS_ERRORS, 0)
            reason = run_variant(frame, state, first)
            if reason != DONE:
                put(state, M_VARIANT, variant)
                return reason
            put(state, M_STARTED, 0)
            if get(state, M_PENDING):
                # The pass was incomplete: it is made again once the host has answered.
                put(state, M_VARIANT, variant)
                return NEEDS_HOST
            at = get(state, M_RULE) * get(frame, F_ERROR_WORDS)
            errors = get(frame, F_ERRORS)
            put(errors, at, get(errors, at) + get(state, M_PASS_ERRORS))
        variant += 1
