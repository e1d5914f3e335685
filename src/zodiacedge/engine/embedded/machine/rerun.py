"""A question that was assembled, asked again: its tables filled and emptied and the machine run in one call.

A small change asks a dozen questions, and these steps one by one would take longer than the search.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import kernel, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.kernels.layout import (
    F_ERROR_WORDS,
    F_ERRORS,
    F_OUT,
    F_SORTED,
    M_BUDGET,
    STATE_WORDS,
    T_ARITY,
    T_COUNT,
    T_HIGH,
    T_LOW,
    T_ROWS,
    T_SLOT_COUNT,
    T_SLOTS,
)
from zodiacedge.engine.embedded.machine.interpreter import run


@kernel
def rerun(
    frame: int,
    state: int,
    budget: int,
    given: int,
    rows: int,
    count: int,
    target: int,
    out: int,
    ordered: int,
) -> int:
    """Run a question's program from its start; return why it stopped.

    The table `given` takes so many rows, for which it must have room and nothing that finds rows; where it
    has rows already, the number is negative. The table `target` has a row-set and no index. `out` and
    `ordered` are the buffers of this thread.
    """
    if count >= 0:
        there = get(given, T_ROWS)
        for n in range(count * get(given, T_ARITY)):
            store32(there, n, load32(rows, n))
        put_count(given, count)
    if get(target, T_COUNT):
        slots = get(target, T_SLOTS)
        for n in range(get(target, T_SLOT_COUNT)):
            store32(slots, n, 0)
        put_count(target, 0)
    errors = get(frame, F_ERRORS)
    for n in range(get(frame, F_ERROR_WORDS)):
        put(errors, n, 0)
    for n in range(STATE_WORDS):
        put(state, n, 0)
    put(state, M_BUDGET, budget)
    put(frame, F_OUT, out)
    put(frame, F_SORTED, ordered)
    return run(frame, state)


@kernel
def put_count(table: int, count: int) -> None:
    """Let a table have so many rows, all of them old."""
    put(table, T_COUNT, count)
    put(table, T_LOW, count)
    put(table, T_HIGH, count)
