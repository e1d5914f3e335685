"""Kernel that runs an assembled delta query again: it fills the tables and runs the machine, in one call.

A small change evaluates a dozen delta queries; separate calls would take longer than the joins.
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
    """Run a delta query's code from its start; return why it stopped.

    `count` rows are copied to the table `given`, which must have room for them, and neither a hash set nor an
    index; if the table is filled already, `count` is negative. The table `target` has a hash set and no
    index. `out` and `ordered` are the buffers of this thread.
    """
    if count >= 0:
        copied = get(given, L.T_ROWS)
        for n in range(count * get(given, L.T_ARITY)):
            store32(copied, n, load32(rows, n))
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
    """Set the number of rows of a table, all of them old."""
    put(table, L.T_COUNT, count)
    put(table, L.T_LOW, count)
    put(table, L.T_HIGH, count)
