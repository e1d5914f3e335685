"""Our engine from facts that lie ready: one evaluation of all rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.engine.spark.maintain.propagate import IN_ONE_TASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.api import NodeRun, State
    from zodiacedge.language.ast import Predicate
    from zodiacedge_bench.measure.task import Task


class SparkTrial:
    """One evaluation from scratch. A version on Spark stays as it is: all trials start from the same one."""

    def __init__(self, base: State, task: Task, *, counting: bool = True) -> None:
        """Take a version with the facts of a task; `counting` says whether the clock sees that too."""
        self._base = base
        self._after = base
        self._task = task
        self._counting = counting
        self._counts: Mapping[Predicate, int] = {}

    def work(self) -> None:
        """Evaluate node after node, and count."""
        base, task = self._base, self._task
        nothing = base.effective_delta(base.batch(), base.batch())
        self._after = base.maintain(task.rules, task.graph, nothing, Settings()).commit()
        if self._counting:
            self._counts = self._after.derived_counts()

    def counts(self) -> dict[str, int]:
        """Return the derived facts per predicate."""
        found = self._counts if self._counting else self._after.derived_counts()
        return {predicate.name: count for predicate, count in found.items()}

    @property
    def how(self) -> Mapping[str, int]:
        """By which ways nodes were evaluated, and how many by each."""
        return strategies(self._after.runs)


def strategies(runs: Iterable[NodeRun]) -> dict[str, int]:
    """Count nodes by the way they took; the reasons are left out."""
    means = (run.strategy.partition(":")[0] for run in runs)
    means = (IN_ONE_TASK if one.endswith(IN_ONE_TASK) else one for one in means)
    return dict(Counter(means).most_common())


def strategies_text(found: Mapping[str, int]) -> str:
    """Return ways as people read them."""
    return ", ".join(f"{count:,} {strategy}" for strategy, count in found.items())
