"""Measurement of a plan: its rows after each step, counted by the rule machine.

The plan runs once as a whole, which loads kernels and builds indexes, and then once per step, each time one
step further, on the facts of a state. Evaluations that are not measured have no extra cost.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.evaluate.seminaive import NodeEvaluation
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.machine.assemble import Assembly
from zodiacedge.engine.embedded.machine.execute import execute
from zodiacedge.engine.embedded.machine.sources import NodeReads
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.limits import Meter
from zodiacedge.plan.measurement import Measurement, StepCount
from zodiacedge.plan.variants import can_fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.engine.api import Settings
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.language.ast import Aggregate, Argument
    from zodiacedge.plan.algebra import Plan, Step


def measure(store: Database, plan: Plan, settings: Settings) -> Measurement:
    """Run a plan without a delta on all facts of a database."""
    return _PlanRun(store, plan, settings).measurement()


class _PlanRun:
    def __init__(self, store: Database, plan: Plan, settings: Settings) -> None:
        self._store = store
        self._plan = plan
        self._settings = settings
        self._meter = Meter(settings.limits)
        self._aggregate_rows = Table(0)
        # The segment of the node is complete, so the plan has no delta and no own tables.
        self._reads = NodeReads(store.outside, lambda _: (), self._rows_of)

    def measurement(self) -> Measurement:
        plan = self._plan
        self._whole()
        inner = self._counts(plan.inner, exact=True)
        steps = self._counts(plan.steps, exact=can_fail(plan.rule.body))
        return Measurement(plan, steps, inner, *self._whole())

    def _whole(self) -> tuple[int, float]:
        """Run the whole plan; return the number of its distinct heads, and the seconds."""
        plan = self._plan
        started = time.perf_counter()
        if plan.rule.aggregate:
            run = NodeEvaluation(
                self._store, {"": plan.rule}, self._settings.registry, lambda *_: self._look()
            )
            self._aggregate_rows = run.aggregate_rows("", plan.rule.aggregate)
        seconds = time.perf_counter() - started
        target = Table(len(plan.head))
        last = self._run(plan.steps, plan.head, target, exact=can_fail(plan.rule.body))
        return len(target), seconds + last.seconds

    def _counts(self, steps: tuple[Step, ...], *, exact: bool) -> tuple[StepCount, ...]:
        return tuple(self._run(steps[: n + 1], (), Table(0), exact=exact) for n in range(len(steps)))

    def _run(
        self, steps: Sequence[Step], head: Sequence[Argument], target: Table, *, exact: bool
    ) -> StepCount:
        target.ensure_hash_set()
        registry = self._settings.registry
        assembly = Assembly(self._store, self._reads, registry)
        assembly.add(steps, head, target, later=False, rule=0, exact=exact, every=True, distinct_rows=True)
        frame = assembly.frame([], 1)
        started = time.perf_counter()
        execute(assembly, frame, registry, lambda _: self._look())
        seconds = time.perf_counter() - started
        if assembly.hosts:
            # The machine repeats a pass after the host has computed values: count in a pass without new ones.
            target.clear()
            execute(assembly, frame, registry, lambda _: self._look())
        return StepCount(int(frame.state[L.M_DERIVED]), seconds)

    def _rows_of(self, aggregate: Aggregate) -> Table:
        del aggregate  # a rule has one aggregate
        return self._aggregate_rows

    def _look(self) -> None:
        self._meter.look(self._plan.rule.label, self._plan.rule.span)
