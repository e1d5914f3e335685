"""Running what was assembled.

The machine comes back when it needs something, and now and then to be watched.
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

# Steps of the machine between two looks, and about how long they take.
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
) -> int:
    """Run to the fixpoint and return how many rounds it took.

    Args:
        assembly: What to run.
        frame: The machine's frame for it.
        registry: What the host registered.
        watch: Called now and then.
        seconds: When it should be called at the latest, for the first time and between two times.
    """
    budget = steps_within(seconds)
    state = frame.state
    state.fill(0)
    state[L.M_BUDGET] = budget
    # Those of this thread: work of the thread that assembled this may wait with something in its own.
    frame.words[L.F_OUT], frame.words[L.F_SORTED] = assembly.store.terms.buffers(OUT_WORDS)
    return go_on(assembly, frame, registry, watch, budget, run(frame.at, frame.state_at))


def steps_within(seconds: float) -> int:
    """Return how many steps the machine may take before it comes back to be watched."""
    return _BUDGET if seconds >= _SECONDS else max(int(_BUDGET * seconds / _SECONDS), _LEAST_BUDGET)


def go_on(
    assembly: Assembly,
    frame: Frame,
    registry: Registry,
    watch: Callable[[int], None],
    budget: int,
    reason: int,
) -> int:
    """Give the machine what it stopped for and run on, to the fixpoint; return how many rounds it took."""
    state = frame.state
    dictionary = assembly.store.dictionary
    while reason != L.DONE:
        if reason == L.NEEDS_ROOM:
            wanted = int(state[L.M_TARGET])
            next(table for table in assembly.targets if table.at == wanted).reserve(int(state[L.M_FILLED]))
        elif reason == L.NEEDS_TERMS:
            dictionary.reserve(_MORE_TERMS)
        elif reason == L.NEEDS_HOST:
            for host in assembly.hosts:
                host.compute(dictionary, registry)
            for table in assembly.targets:
                # The pass is made again from its start. Only here would its rows come twice.
                if not table.has_hash_set and not table.is_marked:
                    table.clear()
        watch(int(state[L.M_ROUND]))
        state[L.M_BUDGET] = budget
        reason = run(frame.at, frame.state_at)
    return int(state[L.M_ROUND])
