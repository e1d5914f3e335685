"""Measures edits beside an evaluation of the changed program from scratch.

A trial opens a knowledge base, commits its edits one after the other with the clock running, and returns to
its start. After each edit all tables are compared with the evaluation from scratch.
"""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from zodiacedge_bench.measure.embedded import NO_MODULES, OURS, EmbeddedTrial
from zodiacedge_bench.measure.fingerprint import fingerprint
from zodiacedge_bench.measure.harness import Measurement, clocked, fewest, settled
from zodiacedge_bench.measure.live import knowledge_base, store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from zodiacedge.engine.api import NodeRun
    from zodiacedge_bench.changes.edits import Committed, Edit
    from zodiacedge_bench.measure.fingerprint import Fingerprint
    from zodiacedge_bench.measure.harness import Run
    from zodiacedge_bench.measure.task import Task


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's figures of its prototype: seconds, or the factor over an evaluation from scratch."""

    seconds: float | None = None
    factor: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """An edit, and the task after it."""

    name: str
    edit: Edit
    result: Task
    published: Published = field(default_factory=Published)
    shown: bool = True
    """Whether the edit is measured, or only returns to the start."""
    first: bool = False
    """Whether no change before it built indexes that it can use."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Edits that lead from a task back to it."""

    name: str
    workload: str
    start: Task
    steps: tuple[Step, ...]
    at: float = 0
    """The position on a curve, if the experiment is a point of one."""
    axis: str = ""
    """The label of the positions on the curve."""


@dataclass(frozen=True, slots=True)
class ChangeFigure:
    """The time of a change, beside the time of its result from scratch."""

    experiment: str
    workload: str
    change: str
    engine: str
    runs: tuple[Run, ...]
    grown: int
    """The growth of the number of visible facts."""
    strategy: tuple[str, ...]
    """The strategy of each visited hyper-node."""
    scratch: Measurement
    published: Published
    at: float = 0
    axis: str = ""
    moved: int = 0
    """The number of facts that segments gained or lost."""
    first: bool = False
    """Whether no change before it built indexes that it can use."""
    slowest: NodeRun | None = None
    """The hyper-node of the last run that took longest."""

    @property
    def cpu_seconds(self) -> float:
        """The least processor time of all runs."""
        return min(run.cpu_seconds for run in self.runs)

    @property
    def best(self) -> Run:
        """The run with the least wall time."""
        return min(self.runs, key=lambda run: run.seconds)

    @property
    def seconds(self) -> float:
        """The wall time of the best run."""
        return self.best.seconds

    @property
    def factor(self) -> float:
        """The speed-up over the evaluation from scratch."""
        return self.scratch.best.seconds / self.seconds

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "experiment": self.experiment,
            "workload": self.workload,
            "change": self.change,
            "engine": self.engine,
            "at": self.at,
            "seconds": self.seconds,
            "cpu_seconds": self.best.cpu_seconds,
            "runs": [asdict(run) for run in self.runs],
            "net_facts": self.grown,
            "moved_facts": self.moved,
            "first": self.first,
            "strategy": list(self.strategy),
            "scratch_seconds": self.scratch.best.seconds,
            "scratch_cpu_seconds": self.scratch.best.cpu_seconds,
            "scratch_runs": [asdict(run) for run in self.scratch.runs],
            "derived": dict(self.scratch.counts),
            "factor": self.factor,
            "published_seconds": self.published.seconds,
            "published_factor": self.published.factor,
        }


class Changes:
    """Measures experiments: each change next to its evaluation from scratch, as a machine's speed varies."""

    def __init__(self, progress: Callable[[str], None], *, runs: int | None, modules: bool) -> None:
        """Set the options.

        Args:
            progress: Called with the name of each measurement.
            runs: Runs per figure, instead of the usual number.
            modules: Whether modules evaluate nodes of a known shape.
        """
        self._progress = progress
        self._runs = runs
        self._modules = modules
        self._results: dict[str, _Result] = {}

    def measure(self, experiments: Iterable[Experiment]) -> list[ChangeFigure]:
        """Return a figure for each step that is shown."""
        with settled():
            return [figure for experiment in experiments for figure in self._figures(experiment)]

    def _figures(self, experiment: Experiment) -> Iterable[ChangeFigure]:
        done: list[list[_Timed]] = []
        while not done or len(done) < (self._runs or _fewest(done)):
            done.append(self._trial(experiment))
        for timed in zip(*done, strict=True):
            step, last = timed[-1].step, timed[-1].committed
            yield ChangeFigure(
                experiment.name,
                experiment.workload,
                step.name,
                OURS if self._modules else NO_MODULES,
                tuple(edit.committed.run for edit in timed),
                last.grown,
                last.strategy,
                Measurement(tuple(edit.scratch for edit in timed), self._result_of(step.result).counts),
                step.published,
                experiment.at,
                experiment.axis,
                last.moved,
                step.first,
                max(last.nodes, key=lambda node: node.seconds, default=None),
            )

    def _trial(self, experiment: Experiment) -> list[_Timed]:
        """Commit all edits once; return the times of those that are shown."""
        task = experiment.start
        kb = knowledge_base(task, modules=self._modules)
        timed: list[_Timed] = []

        def check(when: str, result: Task) -> None:
            actual = fingerprint(store_of(kb), task.loaded)
            expected = self._result_of(result).fingerprint
            actual.check(f"{experiment.name}, {experiment.workload}, {when}", expected)

        check("before any change", task)
        for step in experiment.steps:
            self._progress(f"{experiment.name}: {experiment.workload}, {step.name}")
            scratch = self._from_scratch(step.result) if step.shown else None
            gc.collect()
            committed = step.edit.commit(kb)
            if scratch:
                timed.append(_Timed(step, committed, scratch))
            check(f"after {step.name}", step.result)
        check("after all changes", task)
        return timed

    def _from_scratch(self, task: Task) -> Run:
        """Evaluate a task from scratch, with the clock running."""
        trial = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=self._modules)
        gc.collect()
        run, _ = clocked(trial.evaluate)
        counts = trial.counts()
        task.expected.check(f"from scratch, {task.name}", counts)
        if task.name not in self._results:
            self._results[task.name] = _Result(counts, fingerprint(trial.store, task.loaded))
        return run

    def _result_of(self, task: Task) -> _Result:
        if task.name not in self._results:
            self._from_scratch(task)
        return self._results[task.name]


@dataclass(frozen=True, slots=True)
class _Timed:
    # One run of a step, and the evaluation from scratch right before it.
    step: Step
    committed: Committed
    scratch: Run


@dataclass(frozen=True, slots=True)
class _Result:
    # The expected result of evaluating a task from scratch.
    counts: Mapping[str, int]
    fingerprint: Fingerprint


def _fewest(done: list[list[_Timed]]) -> int:
    return max(
        (fewest([edit.committed.run for edit in timed]) for timed in zip(*done, strict=True)), default=1
    )
