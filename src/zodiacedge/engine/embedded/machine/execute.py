"""Execution of assembled code to its fixpoint, in slices of a step budget.

Between two slices the caller may stop the run, and the host supplies what the machine stopped for: room in a
table or in the dictionary, or results of host functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.machine.assemble import OUT_WORDS
from zodiacedge.engine.embedded.machine.interpreter import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.embedded.machine.assemble import Assembly, Frame
    from zodiacedge.engine.registry import Registry

# Steps of the machine in a slice, and about how long they take.
_BUDGET = 3_000_000
_SECONDS = 0.05
_LEAST_BUDGET = 20_000
_MORE_TERMS = 4096


def execute(
    assembly: Assembly,
    frame: Frame,
    registry: Registry,
    watch: Callable[[int], None],
    seconds: float = math.inf,
    first_round: int = 0,
) -> int:
    """Run to the fixpoint and return the number of rounds.

    Args:
        assembly: The code.
        frame: The machine's frame for it. Without own tables it runs one round only.
        registry: The registered functions.
        watch: Called with the number of the round after each slice.
        seconds: The longest time of a slice, about.
        first_round: The number of the round to start with.
    """
    budget = step_budget(seconds)
    state = frame.state
    state.fill(0)
    state[L.M_BUDGET] = budget
    state[L.M_ROUND] = first_round
    # The buffers of this thread: the thread that assembled the code may be paused with rows in its own.
    frame.words[L.F_OUT], frame.words[L.F_SORTED] = assembly.store.terms.buffers(OUT_WORDS)
    return resume(assembly, frame, registry, watch, budget, run(frame.at, frame.state_at))


def step_budget(seconds: float) -> int:
    """Return the number of steps in a slice of so many seconds."""
    return _BUDGET if seconds >= _SECONDS else max(int(_BUDGET * seconds / _SECONDS), _LEAST_BUDGET)


def resume(
    assembly: Assembly,
    frame: Frame,
    registry: Registry,
    watch: Callable[[int], None],
    budget: int,
    reason: int,
) -> int:
    """Supply what the machine stopped for and run to the fixpoint; return the number of rounds."""
    state = frame.state
    dictionary = assembly.store.dictionary
    while reason != L.DONE:
        if reason == L.NEEDS_ROOM:
            target = int(state[L.M_TARGET])
            next(table for table in assembly.targets if table.at == target).reserve(int(state[L.M_FILLED]))
        elif reason == L.NEEDS_TERMS:
            dictionary.reserve(_MORE_TERMS)
        elif reason == L.NEEDS_HOST:
            for host in assembly.hosts:
                host.compute(dictionary, registry)
            for table in assembly.targets:
                # The pass is repeated from its start, and such a table would hold its rows twice.
                if not table.has_hash_set and not table.is_marked:
                    table.clear()
        watch(int(state[L.M_ROUND]))
        state[L.M_BUDGET] = budget
        reason = run(frame.at, frame.state_at)
    return int(state[L.M_ROUND])
