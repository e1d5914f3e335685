"""A trial of the engine `spark`: one evaluation of all rules from loaded facts."""

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
    """One evaluation from scratch. Versions are immutable: all trials start from the same one."""

    def __init__(self, base: State, task: Task, *, counting: bool = True) -> None:
        """Take a version with the facts of a task; `counting` says whether counting is timed."""
        self._base = base
        self._after = base
        self._task = task
        self._counting = counting
        self._counts: Mapping[Predicate, int] = {}

    def evaluate(self) -> None:
        """Evaluate node after node, and count."""
        base, task = self._base, self._task
        nothing = base.effective_delta(base.batch(), base.batch())
        self._after = base.maintain(task.rules, task.graph, nothing, Settings()).commit()
        if self._counting:
            self._counts = self._after.derived_counts()

    def counts(self) -> dict[str, int]:
        """Return the derived facts per predicate."""
        counts = self._counts if self._counting else self._after.derived_counts()
        return {predicate.name: count for predicate, count in counts.items()}

    @property
    def how(self) -> Mapping[str, int]:
        """The number of nodes by strategy."""
        return strategies(self._after.runs)


def strategies(runs: Iterable[NodeRun]) -> dict[str, int]:
    """Count nodes by strategy, without the reasons."""
    names = (run.strategy.partition(":")[0] for run in runs)
    names = (IN_ONE_TASK if name.endswith(IN_ONE_TASK) else name for name in names)
    return dict(Counter(names).most_common())


def strategies_text(counts: Mapping[str, int]) -> str:
    """Return counts of strategies as text."""
    return ", ".join(f"{count:,} {strategy}" for strategy, count in counts.items())
