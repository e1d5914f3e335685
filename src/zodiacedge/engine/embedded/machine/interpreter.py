"""The rule machine: a compiled interpreter that runs the semi-naive fixpoint of a hyper-node.

A rule variant is a sequence of steps; a step is an atom to match, an atom that must be absent, a comparison,
a binding, or the head to emit. The machine evaluates the steps depth first, with a cursor per atom and a
register per variable. It stops when its budget is used up or a table needs room, and resumes at the same
step; interrupts, limits and growth happen in between.

In each round the delta of a table is the range of the rows of the previous round, so nothing is copied. A
step without a value (a division by zero) poisons the binding: the other steps are still evaluated, and the
emit step counts an error instead of storing a fact.

Once a head is stored, the machine goes back to the step that bound the last of its variables: the steps after
that one are tests, and one way to pass them is enough.

`cursors` enumerates the matches of an atom, `fused_join` joins the last atom and writes heads, and
`expressions.steps` evaluates comparisons and bindings.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.expressions.steps import bind_step, compare_step, has_no_value, note_error
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.machine.cursors import advance, advance_pairs, fill_key, known_term
from zodiacedge.engine.embedded.machine.fused_join import emit_matches, emit_pairs
from zodiacedge.engine.embedded.machine.product import (
    begin_parts,
    emit_product,
    gather_group,
    gather_joined,
    gather_pairs,
    gather_term,
    next_group,
    next_in_group,
)
from zodiacedge.engine.embedded.storage.hash_index import (
    has_pair_bit,
    has_room,
    insert_rows,
    is_full,
    partition_rows,
    set_pair_bit,
    sort_pairs,
)


@kernel
def flush(frame: int, target: int, filled: int) -> bool:
    """Flush the output buffer to its table; return False if the table needs room first."""
    if not has_room(target, filled):
        return False
    rows = get(frame, L.F_OUT)
    arity = get(target, L.T_ARITY)
    partitions = get(target, L.T_SLOT_COUNT) // L.SLOTS_IN_CACHE
    if get(target, L.T_SLOTS) and partitions > 1 and filled >= partitions * L.ROWS_PER_PARTITION:
        partitions = min(partitions, L.MOST_PARTITIONS)
        partition_rows(rows, get(frame, L.F_SORTED), filled, arity, partitions, get(frame, L.F_SCRATCH))
        rows = get(frame, L.F_SORTED)
    elif arity == 2 and get(target, L.T_BITS) and L.SORTED_TERMS * filled >= get(target, L.T_TERMS):
        sort_pairs(rows, get(frame, L.F_SORTED), filled, get(target, L.T_TERMS))
        rows = get(frame, L.F_SORTED)
    insert_rows(target, rows, filled, get(frame, L.F_SCRATCH))
    return True


@kernel
def next_round(frame: int, state: int) -> bool:
    """Make the rows of the last round the delta of the next; return whether there are any."""
    own = get(frame, L.F_OWN)
    changed = False
    for n in range(get(frame, L.F_OWN_COUNT)):
        table = get(own, n)
        put(table, L.T_LOW, get(table, L.T_HIGH))
        put(table, L.T_HIGH, get(table, L.T_COUNT))
        if get(table, L.T_LOW) < get(table, L.T_HIGH):
            changed = True
    put(state, L.M_ROUND, get(state, L.M_ROUND) + 1)
    return changed


@kernel
def run_variant(frame: int, state: int, first: int) -> int:
    """Run a variant from the step in its state; return why it stopped."""
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    registers = get(frame, L.F_REGISTERS)
    cursors = get(frame, L.F_CURSORS)
    key = get(frame, L.F_SCRATCH)
    out = get(frame, L.F_OUT)
    dictionary = get(frame, L.F_DICTIONARY)
    budget = get(state, L.M_BUDGET)
    depth = get(state, L.M_DEPTH)
    forward = get(state, L.M_FORWARD)
    poison = get(state, L.M_POISON)
    filled = get(state, L.M_FILLED)
    target = get(state, L.M_TARGET)
    wide = max(1, get(target, L.T_ARITY))
    bits = get(target, L.T_BITS)
    terms = get(target, L.T_TERMS)
    shared = get(target, L.T_SHARED)
    room = max(L.SMALL_OUT, get(target, L.T_COUNT) // L.SHARE_OF_TABLE)
    room = min((get(frame, L.F_OUT_WORDS) - (terms if wide == 2 else 0)) // wide, room)
    derived = 0
    reason = L.DONE
    while True:
        if filled >= room or (depth < 0 and filled):
            if not flush(frame, target, filled):
                reason = L.NEEDS_ROOM
                break
            filled = 0
        if depth < 0:
            break
        if budget <= 0:
            reason = L.PAUSED
            break
        budget -= 1
        step = (first + depth) * L.STEP_WORDS
        op = get(steps, step + L.P_OP)
        cursor = 2 * depth
        if op == L.OP_ATOM:
            if forward:
                put(cursors, cursor, get(steps, step + L.P_SOURCES) - 1)
                put(cursors, cursor + 1, -1)
            elif get(steps, step + L.P_ONCE):
                depth -= 1
                continue
            pairs = get(steps, step + L.P_PAIRS)
            if get(steps, step + L.P_FUSED) == L.GATHERED:
                forward = int(gather_pairs(frame, step, cursor))
                budget -= get(state, L.M_VISITED)
                depth += 2 * forward - 1
            elif get(steps, step + L.P_FUSED) and not poison:
                if pairs == L.PAIRS_TO_PAIRS:
                    filled = emit_pairs(frame, step, cursor, room, filled)
                else:
                    filled = emit_matches(frame, step, cursor, room, filled)
                budget -= get(state, L.M_VISITED)
                forward = 0
                end = get(steps, step + L.P_SOURCES) + get(steps, step + L.P_SOURCE_COUNT)
                if get(cursors, cursor) >= end:
                    depth -= 1
            elif advance_pairs(frame, step, cursor) if pairs else advance(frame, step, cursor):
                depth += 1
                forward = 1
            else:
                depth -= 1
                forward = 0
        elif op == L.OP_EMIT:
            if poison:
                note_error(frame, state)
                depth -= 1
            else:
                arity = get(steps, step + L.P_ARITY)
                fill_key(key, spec, get(steps, step + L.P_SPEC), arity, registers)
                for column in range(arity):
                    store32(out, filled * wide + column, get(key, column))
                left = get(key, 0) if wide == 2 else 0
                if not bits or set_pair_bit(bits, terms, left, get(key, wide - 1), shared):
                    filled += 1
                derived += 1
                depth = get(steps, step + L.P_BACK)
            forward = 0
        elif op >= L.OP_GROUP:
            if op == L.OP_GROUP:
                if forward:
                    put(cursors, cursor, get(steps, step + L.P_SOURCES) - 1)
                    put(cursors, cursor + 1, -1)
                forward = int(next_group(frame, step, cursor))
                depth += 2 * forward - 1
            elif op == L.OP_ROW:
                if forward:
                    put(cursors, cursor, get(state, L.M_GROUP) - 1)
                if get(steps, step + L.P_FUSED) == L.JOINED:
                    forward = int(gather_joined(frame, step, cursor))
                    budget -= get(state, L.M_VISITED)
                    depth += forward
                elif get(steps, step + L.P_FUSED):
                    forward = int(gather_group(frame, step, cursor))
                    budget -= get(state, L.M_VISITED)
                else:
                    forward = int(next_in_group(frame, step, cursor))
                depth += 2 * forward - 1
            elif op == L.OP_PARTS:
                if forward:
                    begin_parts(state, get(steps, step + L.P_SWAPPED))
                    depth += 1
                elif get(state, L.M_GATHERED):
                    put(state, L.M_LAST, 1)
                    forward = 1
                    depth = get(steps, step + L.P_SECOND)
                else:
                    # Other ways to pass the tests would give the same pairs.
                    depth = 0
            elif forward:
                if gather_term(frame, step):
                    # A full first part is followed by the second one, a full second part by its pairs.
                    forward = int(op == L.OP_GATHER)
                    depth += forward
                else:
                    forward = 0
                    depth -= 1
            elif get(state, L.M_GATHERED + 1):
                filled = emit_product(frame, state, room, filled)
                budget -= get(state, L.M_VISITED)
            elif op == L.OP_PRODUCT:
                depth -= 1
            elif get(state, L.M_LAST):
                depth = 0
            else:
                put(state, L.M_GATHERED, 0)
                depth -= 1
        elif not forward:
            if poison == depth + 1:
                poison = 0
            depth -= 1
        elif op == L.OP_NEW:
            at = get(steps, step + L.P_SPEC)
            head = known_term(spec, at, registers) if wide == 2 else 0
            if has_pair_bit(target, head, known_term(spec, at + (wide - 1) * L.SPEC_WORDS, registers)):
                depth -= 1
                forward = 0
            else:
                depth += 1
        elif op == L.OP_ABSENT:
            if poison and has_no_value(steps, step, spec, registers):
                depth += 1
                continue
            put(cursors, cursor, get(steps, step + L.P_SOURCES) - 1)
            put(cursors, cursor + 1, -1)
            if advance(frame, step, cursor):
                depth -= 1
                forward = 0
            else:
                depth += 1
        else:
            count = get(dictionary, L.D_COUNT) + L.SPARE_TERMS
            if count > get(dictionary, L.D_CAPACITY) or is_full(count, get(dictionary, L.D_SLOT_COUNT)):
                reason = L.NEEDS_TERMS
                break
            outcome = compare_step(frame, step) if op == L.OP_COMPARE else bind_step(frame, step)
            if outcome == L.FAILS or outcome == L.PENDING:
                depth -= 1
                forward = 0
            else:
                if outcome == L.NO_ORDER and not poison:
                    poison = depth + 1
                depth += 1
    put(state, L.M_BUDGET, budget)
    put(state, L.M_DEPTH, depth)
    put(state, L.M_FORWARD, forward)
    put(state, L.M_POISON, poison)
    put(state, L.M_FILLED, filled)
    put(state, L.M_DERIVED, get(state, L.M_DERIVED) + derived)
    return reason


@kernel
def run(frame: int, state: int) -> int:
    """Run a node to its fixpoint, or until the machine must stop; return why it stopped."""
    variants = get(frame, L.F_VARIANTS)
    steps = get(frame, L.F_STEPS)
    count = get(frame, L.F_VARIANT_COUNT)
    variant = get(state, L.M_VARIANT)
    while True:
        if variant >= count:
            variant = 0
            if not next_round(frame, state):
                put(state, L.M_VARIANT, variant)
                return L.DONE
        here = variant * L.VARIANT_WORDS
        if (get(variants, here + L.V_WHEN) == L.FIRST_ROUND) == (get(state, L.M_ROUND) == 0):
            first = get(variants, here + L.V_FIRST)
            if not get(state, L.M_STARTED):
                emit = (first + get(variants, here + L.V_LENGTH) - 1) * L.STEP_WORDS
                put(state, L.M_TARGET, get(steps, emit + L.P_TARGET))
                put(state, L.M_RULE, get(variants, here + L.V_RULE))
                put(state, L.M_STARTED, 1)
                put(state, L.M_DEPTH, 0)
                put(state, L.M_FORWARD, 1)
                put(state, L.M_POISON, 0)
                put(state, L.M_PENDING, 0)
                put(state, L.M_PASS_ERRORS, 0)
            reason = run_variant(frame, state, first)
            if reason != L.DONE:
                put(state, L.M_VARIANT, variant)
                return reason
            put(state, L.M_STARTED, 0)
            if get(state, L.M_PENDING):
                # The pass was incomplete: it is repeated when the host has computed the values.
                put(state, L.M_VARIANT, variant)
                return L.NEEDS_HOST
            at = get(state, L.M_RULE) * get(frame, L.F_ERROR_WORDS)
            errors = get(frame, L.F_ERRORS)
            put(errors, at, get(errors, at) + get(state, L.M_PASS_ERRORS))
        variant += 1
