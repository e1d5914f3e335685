"""A question that was assembled, asked again: its tables filled and emptied and the machine run in one call.

A small change asks a dozen questions, and these steps one by one would take longer than the search.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel, load32, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
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
    has rows already, the number is negative. The table `target` has a hash set and no index. `out` and
    `ordered` are the buffers of this thread.
    """
    if count >= 0:
        there = get(given, L.T_ROWS)
        for n in range(count * get(given, L.T_ARITY)):
            store32(there, n, load32(rows, n))
        put_count(given, count)
    if get(target, L.T_COUNT):
        slots = get(target, L.T_SLOTS)
        for n in range(get(target, L.T_SLOT_COUNT)):
            store32(slots, n, 0)
        put_count(target, 0)
    errors = get(frame, L.F_ERRORS)
    for n in range(get(frame, L.F_ERROR_WORDS)):
        put(errors, n, 0)
    for n in range(L.STATE_WORDS):
        put(state, n, 0)
    put(state, L.M_BUDGET, budget)
    put(frame, L.F_OUT, out)
    put(frame, L.F_SORTED, ordered)
    return run(frame, state)


@kernel
def put_count(table: int, count: int) -> None:
    """Let a table have so many rows, all of them old."""
    put(table, L.T_COUNT, count)
    put(table, L.T_LOW, count)
    put(table, L.T_HIGH, count)
