"""Changes against from scratch: what an edit takes, beside evaluating the program after it from nothing.

A trial opens a knowledge base, commits its edits one after the other with the clock running, and is back
where it began. After each edit every table must hold what the evaluation from nothing gives.
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

    from zodiacedge_bench.changes.edits import Committed, Edit
    from zodiacedge_bench.measure.fingerprint import Fingerprint
    from zodiacedge_bench.measure.harness import Run
    from zodiacedge_bench.measure.task import Task


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper gives for its prototype: seconds, or how many times faster than from scratch."""

    seconds: float | None = None
    factor: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """An edit, and the task that it leads to."""

    name: str
    edit: Edit
    result: Task
    published: Published = field(default_factory=Published)
    shown: bool = True
    """Whether it is measured, or only leads back to the start."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Edits that lead from a task back to it."""

    name: str
    workload: str
    start: Task
    steps: tuple[Step, ...]
    at: float = 0
    """Where it stands on the curve, if it is one of several that make a curve."""
    axis: str = ""
    """What the places on the curve count."""


@dataclass(frozen=True, slots=True)
class ChangeFigure:
    """How long a change takes, and how long its result takes from scratch."""

    experiment: str
    workload: str
    change: str
    engine: str
    runs: tuple[Run, ...]
    grown: int
    """By how much the number of visible facts grew or shrank."""
    strategy: tuple[str, ...]
    """How each hyper-node that was visited was brought up to date."""
    scratch: Measurement
    published: Published
    at: float = 0
    axis: str = ""

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
        """How many times faster than from scratch the change is."""
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
    """Measures experiments. A change is timed next to its rival: a machine's speed changes by the minute."""

    def __init__(self, tell: Callable[[str], None], *, runs: int | None, modules: bool) -> None:
        """Say how.

        Args:
            tell: Called with what is being measured.
            runs: Runs per figure, instead of the usual number.
            modules: Whether nodes of a known shape go to the algorithm made for it.
        """
        self._tell = tell
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
                tuple(one.committed.run for one in timed),
                last.grown,
                last.strategy,
                Measurement(tuple(one.scratch for one in timed), self._result_of(step.result).counts),
                step.published,
                experiment.at,
                experiment.axis,
            )

    def _trial(self, experiment: Experiment) -> list[_Timed]:
        """Go through all edits once; return what those that are shown took."""
        task = experiment.start
        kb = knowledge_base(task, modules=self._modules)
        found: list[_Timed] = []

        def check(when: str, result: Task) -> None:
            kept = fingerprint(store_of(kb), task.loaded)
            expected = self._result_of(result).fingerprint
            kept.check(f"{experiment.name}, {experiment.workload}, {when}", expected)

        check("before any change", task)
        for step in experiment.steps:
            self._tell(f"{experiment.name}: {experiment.workload}, {step.name}")
            scratch = self._from_scratch(step.result) if step.shown else None
            gc.collect()
            committed = step.edit.commit(kb)
            if scratch:
                found.append(_Timed(step, committed, scratch))
            check(f"after {step.name}", step.result)
        check("after all changes", task)
        return found

    def _from_scratch(self, task: Task) -> Run:
        """Evaluate a task from nothing, with the clock running."""
        trial = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=self._modules)
        gc.collect()
        run, _ = clocked(trial.work)
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
    # A step that was taken once, and its rival right before it.
    step: Step
    committed: Committed
    scratch: Run


@dataclass(frozen=True, slots=True)
class _Result:
    # What evaluating a task from nothing must come to.
    counts: Mapping[str, int]
    fingerprint: Fingerprint


def _fewest(done: list[list[_Timed]]) -> int:
    return max((fewest([one.committed.run for one in timed]) for timed in zip(*done, strict=True)), default=1)
