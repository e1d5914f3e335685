"""The rule machine: one compiled interpreter that runs a hyper-node's whole fixpoint.

A rule variant is a run of steps; a step is an atom to match, an atom that must be absent, a comparison,
a binding, or the head to emit. The machine walks the steps depth first, with a cursor per atom and a
register per variable. It stops when its budget is used up or when a table needs room, and goes on from
the same place when called again: that is where interruption, limits and growth live.

In each round the delta of a table is a range of its rows, those of the round before, so nothing is
copied. A step that has no value (a division by zero) poisons the binding: the rest is still judged, and
the emit step counts it instead of storing a fact.

How an atom finds its matches is the business of `cursors`, how the last one writes heads itself that of
`fused`, and what comparisons and bindings come to that of `expression_steps`.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.expressions.steps import bind_step, compare_step, has_no_value, note_error
from zodiacedge.engine.embedded.kernels.jit import kernel, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.kernels.layout import (
    D_CAPACITY,
    D_COUNT,
    D_SLOT_COUNT,
    DONE,
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
    F_STEPS,
    F_VARIANT_COUNT,
    F_VARIANTS,
    FAILS,
    FIRST_ROUND,
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
    MOST_COLUMNS,
    MOST_PARTS,
    NEEDS_HOST,
    NEEDS_ROOM,
    NEEDS_TERMS,
    NO_ORDER,
    OP_ABSENT,
    OP_ATOM,
    OP_COMPARE,
    OP_EMIT,
    P_ARITY,
    P_FUSED,
    P_ONCE,
    P_OP,
    P_PAIRS,
    P_SOURCE_COUNT,
    P_SOURCES,
    P_SPEC,
    P_TARGET,
    PAIRS_TO_PAIRS,
    PAUSED,
    PENDING,
    ROWS_WORTH_A_PART,
    SHARE_OF_TABLE,
    SLOTS_IN_CACHE,
    SMALL_OUT,
    SPARE_TERMS,
    STEP_WORDS,
    T_ARITY,
    T_BITS,
    T_COUNT,
    T_HIGH,
    T_LOW,
    T_SLOT_COUNT,
    T_SLOTS,
    T_TERMS,
    V_FIRST,
    V_LENGTH,
    V_RULE,
    V_WHEN,
    VARIANT_WORDS,
)
from zodiacedge.engine.embedded.machine.cursors import advance, advance_pairs, fill_key
from zodiacedge.engine.embedded.machine.fused_join import emit_matches, emit_pairs
from zodiacedge.engine.embedded.storage.hash_index import (
    claim_pair,
    has_room,
    insert_rows,
    is_full,
    partition_rows,
)


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
