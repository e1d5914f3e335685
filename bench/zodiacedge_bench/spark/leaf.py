"""Deleting and inserting a leaf rule, which no rule reads, beside materialising again on Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from zodiacedge.kb.change import Change
from zodiacedge_bench.measure.embedded import EmbeddedTrial
from zodiacedge_bench.measure.harness import Expected, Measurement, Run, WrongCountError, fewest
from zodiacedge_bench.spark.clock import Window, timed
from zodiacedge_bench.spark.measured import measure_on_spark
from zodiacedge_bench.spark.trial import SparkTrial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge_bench.measure.task import Task
    from zodiacedge_bench.spark.session import BenchSession

# Leaf rules of LUBM: they read a large explicit relation, a derived class, and a large derived relation.
LEAVES = ("r15", "r48", "r93")


@dataclass(frozen=True, slots=True)
class LeafFigure:
    """The times of inserting or deleting a leaf rule or a fact, and of materialising the result again."""

    workload: str
    change: str
    runs: tuple[Run, ...]
    windows: tuple[Window, ...]
    nodes: int
    """The number of visited hyper-nodes."""
    grown: int
    """The increase of the number of visible facts."""
    again: Measurement
    wanted: float = 5
    """The speed-up over materialising again that is a target."""

    @property
    def best(self) -> Run:
        """The run with the least wall time."""
        return min(self.runs, key=lambda run: run.seconds)

    @property
    def window(self) -> Window:
        """The window of the best run."""
        return self.windows[self.runs.index(self.best)]

    @property
    def factor(self) -> float:
        """The speed-up over materialising again."""
        return self.again.best.seconds / self.best.seconds

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "workload": self.workload,
            "change": self.change,
            "seconds": self.best.seconds,
            "cpu_seconds": self.best.cpu_seconds,
            "runs": [asdict(run) for run in self.runs],
            "nodes": self.nodes,
            "net_facts": self.grown,
            "again_seconds": self.again.best.seconds,
            "again_cpu_seconds": self.again.best.cpu_seconds,
            "again_runs": [asdict(run) for run in self.again.runs],
            "factor": self.factor,
        }


class Leaves:
    """Measures leaf rules of a task."""

    def __init__(
        self, session: BenchSession, task: Task, runs: int | None, progress: Callable[[str], None]
    ) -> None:
        """Materialise the task once, outside the clock."""
        self._task = task
        self._modules = session.modules
        self._runs = runs
        self._progress = progress
        progress(f"{task.name}: loading")
        self._kb = session.base(task)
        self._base = self._kb.state
        self._kb.apply(Change(add_rules=task.program))

    def measure(self, labels: tuple[str, ...] = LEAVES) -> Iterator[LeafFigure]:
        """Delete and insert each rule; every count must be the embedded engine's."""
        complete = self._again(self._task)
        for label in labels:
            rest = self._task.without(label)
            reduced = self._again(rest)
            deletion = Series(f"{label} out", partial(_delete, label=label))
            text = self._task.rule_texts(label)
            insertion = Series(f"{label} in", partial(_insert, text=text))
            while not deletion.runs or len(deletion.runs) < (self._runs or fewest(deletion.runs)):
                for series, after in ((deletion, reduced), (insertion, complete)):
                    self._progress(f"{self._task.name}: {series.change}")
                    series.run(self._kb)
                    name = f"{self._task.name} on Spark after {series.change}"
                    Expected(after.counts).check(name, _without_zeros(self._kb.derived()))
            for series, after in ((deletion, reduced), (insertion, complete)):
                yield series.figure(self._task.name, after)

    def _again(self, task: Task) -> Measurement:
        """Materialise on Spark from the facts; counting is outside the clock, as it is for changes."""
        self._progress(f"{task.name}: materialising again")
        embedded = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=self._modules)
        embedded.evaluate()
        task.expected.check(f"the embedded engine on {task.name}", embedded.counts())
        expected = Expected(_without_zeros(embedded.counts()))
        measurement, _ = measure_on_spark(
            f"Spark on {task.name}",
            lambda: SparkTrial(self._base, task, counting=False),
            expected,
            self._runs,
        )
        return measurement


class Series:
    """Repeated runs of the same change."""

    def __init__(self, change: str, apply: Callable[[KnowledgeBase], ChangeReport]) -> None:
        """Take the name of the change, and a function that applies it."""
        self.change = change
        self.runs: list[Run] = []
        self._apply = apply
        self._windows: list[Window] = []
        self._nodes = 0
        self._grown = 0

    def run(self, kb: KnowledgeBase) -> None:
        """Apply the change with the clock running."""
        done = timed(lambda: self._apply(kb))
        report = done.result
        rules = len(report.rules_added) + len(report.rules_removed)
        if rules + report.facts_added + report.facts_removed != 1:
            raise WrongCountError(f"{self.change} had no effect: {report}")
        self.runs.append(done.run)
        self._windows.append(done.window)
        self._nodes = len(report.nodes)
        self._grown = sum(report.net_change().values())

    def figure(self, workload: str, again: Measurement) -> LeafFigure:
        """Return the figure, given the time of materialising again."""
        runs, windows = tuple(self.runs), tuple(self._windows)
        return LeafFigure(workload, self.change, runs, windows, self._nodes, self._grown, again)


def _delete(kb: KnowledgeBase, label: str) -> ChangeReport:
    with kb.change() as change:
        change.remove_rules(label)
    return change.report


def _insert(kb: KnowledgeBase, text: str) -> ChangeReport:
    with kb.change() as change:
        change.add_rules(text)
    return change.report


def _without_zeros(counts: dict[str, int]) -> dict[str, int]:
    # A knowledge base lists every predicate with rules, an engine only those with facts.
    return {name: count for name, count in counts.items() if count}
