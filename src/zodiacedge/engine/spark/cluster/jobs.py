"""Spark jobs: starting, watching and cancelling them.

A thread that waits for a job yields the engine to other threads, and cancels the job if it is interrupted.
"""

from __future__ import annotations

import itertools
import logging
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pickle import PicklingError
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from zodiacedge.engine.api import RanJob
from zodiacedge.engine.spark.cluster.runner import JobName, Runner, refuse_stopped, runner_for
from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.engine.spark.cluster.task_result import ROWS, BatchTask, decoded, values_of
from zodiacedge.engine.yield_point import ALONE, YieldPoint
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

_Input = TypeVar("_Input")
_Result = TypeVar("_Result")
_POLL_SECONDS = 0.02
_WATCH_SECONDS = 0.5
_MOST_AT_ONCE = 4
# A worker may write files for this long after its job was cancelled.
_LATE_SECONDS = 10.0
_LONGEST_RULE = 40
# What Spark reports of a task whose executor has not the package.
_MISSING_PACKAGE = "No module named 'zodiacedge'"


class TaskFolder(Protocol):
    """A folder that tasks write to."""

    def remove_job_files(self, job: str) -> None:
        """Remove the files of a job that failed or was cancelled."""


_LOGGER = logging.getLogger(__name__)
_GROUP: ContextVar[JobGroup | None] = ContextVar("_GROUP", default=None)


class _Listener(NamedTuple):
    begins: Callable[[str], None]
    moves: Callable[[str, int, int], None] | None


@dataclass
class JobGroup:
    """The jobs of one change or question: their group in the Spark UI, what they are for, and which ran."""

    name: str
    purpose: str = ""
    step: str = ""
    ran: list[RanJob] = field(default_factory=list)

    def naming(self, why: str) -> str:
        """Return the description of a job."""
        return ": ".join(part for part in (self.purpose, self.step, why) if part)


@dataclass(frozen=True)
class Jobs:
    """The jobs of an engine: one job group on a cluster, so that they can be counted and stopped."""

    cluster: Cluster = field(default_factory=Cluster)
    group: str = field(default_factory=lambda: f"zodiacedge-{uuid.uuid4().hex[:12]}")
    _listeners: list[_Listener] = field(default_factory=list, repr=False, compare=False)
    _fallback_listeners: list[_Listener] = field(default_factory=list, repr=False, compare=False)
    _scratches: WeakSet[TaskFolder] = field(default_factory=WeakSet, repr=False, compare=False)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False, compare=False)
    _ended: dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    """The times when jobs failed or were cancelled, by tag."""

    @contextmanager
    def telling(
        self, begins: Callable[[str], None], moves: Callable[[str, int, int], None] | None = None
    ) -> Iterator[None]:
        """Call listeners within a `with` block.

        Args:
            begins: Called with the purpose of each job.
            moves: Called every half second with the purpose of a job, its completed tasks, and all tasks
                that are known.
        """
        listener = _Listener(begins, moves)
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def tell_otherwise(
        self, begins: Callable[[str], None], moves: Callable[[str, int, int], None] | None = None
    ) -> None:
        """Call listeners outside of `telling` blocks."""
        self._fallback_listeners.append(_Listener(begins, moves))

    @cached_property
    def session(self) -> SparkSession:
        """The session of the engine's own work, started at first use."""
        return self.cluster.working_session()

    @cached_property
    def runner(self) -> Runner:
        """What runs tasks on the session."""
        return runner_for(self.session, ours=self.cluster.given is None)

    @cached_property
    def cores(self) -> int:
        """The number of tasks that run at the same time."""
        return self.runner.cores

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_MOST_AT_ONCE, "zodiacedge-spark")

    def count(self) -> int:
        """Return the number of jobs so far."""
        return len(self.runner.jobs(self.group))

    @contextmanager
    def together(self, purpose: str) -> Iterator[JobGroup]:
        """Put the jobs that this thread runs in a `with` block into a group of their own."""
        group = JobGroup(f"{self.group}-{next(self._numbers)}", purpose)
        token = _GROUP.set(group)
        try:
            yield group
        finally:
            _GROUP.reset(token)

    def about(self, rules: Sequence[str], rounds: int = 0) -> None:
        """Name the rules and the round that the next jobs of this thread's group are for."""
        group = _GROUP.get()
        if group:
            first, last = (_cut(rules[at]) for at in (0, -1))
            names = f"rule {first}" if len(rules) == 1 else f"rules {first} to {last} ({len(rules):,})"
            group.step = f"{names}, round {rounds}" if rounds else names

    def one(
        self, function: Callable[[_Input], _Result], value: _Input, why: str, yield_point: YieldPoint = ALONE
    ) -> _Result:
        """Run one task and return its result."""
        (result,) = self.each(function, [value], why, yield_point)
        return result

    def each(
        self,
        function: Callable[[_Input], _Result],
        inputs: Sequence[_Input],
        why: str,
        yield_point: YieldPoint = ALONE,
        watch: Callable[[int], None] | None = None,
    ) -> list[_Result]:
        """Run one task for each input, and return the results in that order.

        If a task fails, the files of all are removed.

        Args:
            function: The function that each task runs.
            inputs: The inputs.
            why: The purpose of the job, for progress reports.
            yield_point: Lets other threads run meanwhile.
            watch: Called every half second with the number of completed tasks.
        """
        if not inputs:
            return []
        runner = self.runner
        results = self._run(lambda job: runner.collect(function, inputs, job), why, yield_point, watch=watch)
        return values_of(results)

    def each_partition(
        self,
        function: Callable[[Iterator[pa.RecordBatch]], Iterator[_Result]],
        frame: DataFrame,
        why: str,
        yield_point: YieldPoint = ALONE,
    ) -> list[_Result]:
        """Run one task on each partition of a DataFrame, and return the values that they yield."""

        def collected(job: str) -> list[Row]:
            return frame.mapInArrow(BatchTask(function, job), ROWS).collect()

        return values_of(decoded(self._run(collected, why, yield_point, frame)))

    def run(
        self,
        action: Callable[[], _Result],
        why: str,
        yield_point: YieldPoint = ALONE,
        frame: DataFrame | None = None,
    ) -> _Result:
        """Run a Spark action; `why` is its purpose, and `frame` one of its DataFrames if users made it."""
        return self._run(lambda _: action(), why, yield_point, frame)

    def _run(
        self,
        action: Callable[[str], _Result],
        why: str,
        yield_point: YieldPoint,
        frame: DataFrame | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> _Result:
        """Run an action on the tag of its job."""
        refuse_stopped(self.session)
        listeners = tuple(self._listeners or self._fallback_listeners)
        for listener in listeners:
            listener.begins(why)
        # A caller that watches its tasks reports on them itself.
        moves = () if watch else tuple(listener.moves for listener in listeners if listener.moves)
        runner, tag, group = self.runner, uuid.uuid4().hex, _GROUP.get()
        name = JobName(
            self.group, group.name if group else self.group, tag, group.naming(why) if group else why
        )

        def named() -> _Result:
            with runner.named(name, frame):
                return action(tag)

        self._remove_files_of_ended_jobs()
        job = self._threads.submit(named)
        started = time.monotonic()
        next_watch = started + _WATCH_SECONDS
        try:
            while not wait((job,), _POLL_SECONDS).done:
                yield_point.yield_to_waiters()
                if (watch or moves) and time.monotonic() > next_watch:
                    completed, tasks = runner.progress(tag)
                    if watch:
                        watch(completed)
                    for move in moves if tasks else ():
                        move(why, completed, tasks)
                    next_watch = time.monotonic() + _WATCH_SECONDS
        except BaseException:
            runner.cancel(tag, frame)
            wait((job,))
            self._note_end(tag)
            raise
        try:
            result = job.result()
            if group:
                group.ran += [
                    RanJob(number, name.purpose, _address(runner.ui, number)) for number in runner.jobs(tag)
                ]
            _LOGGER.debug("Spark job: %s, %.3f s", why, time.monotonic() - started)
            return result  # noqa: TRY300 - the log is part of it
        except PicklingError as error:
            raise _not_picklable(error) from error
        except Exception as error:
            self._note_end(tag)
            if _MISSING_PACKAGE in str(error):
                raise _not_on_executors() from error
            raise

    def register_scratch(self, scratch: TaskFolder) -> None:
        """Register a folder from which the files of failed and cancelled jobs are removed."""
        self._scratches.add(scratch)

    def _note_end(self, tag: str) -> None:
        self._ended[tag] = time.monotonic()
        self._remove_files_of_ended_jobs()

    def _remove_files_of_ended_jobs(self) -> None:
        """Remove the files of failed and cancelled jobs, including those that workers write late."""
        for tag, when in list(self._ended.items()):
            for scratch in list(self._scratches):
                scratch.remove_job_files(tag)
            if time.monotonic() > when + _LATE_SECONDS:
                self._ended.pop(tag, None)


def _cut(rule: str) -> str:
    return rule if len(rule) <= _LONGEST_RULE else f"{rule[: _LONGEST_RULE - 3]}..."


def _not_picklable(error: PicklingError) -> UsageProblem:
    return UsageProblem(
        Diagnostic(
            "U026",
            f"a registered function or aggregate cannot be sent to Spark's tasks: {error}",
            "let it make locks, connections and open files itself, when it is called",
        )
    )


def _not_on_executors() -> UsageProblem:
    return UsageProblem(
        Diagnostic(
            "U031",
            "the Python of Spark's tasks has no package zodiacedge",
            "on one machine, start the session after "
            'os.environ["PYSPARK_PYTHON"] = sys.executable, so that tasks run in this Python; on a cluster, '
            "install the package there, or send it along: "
            "spark.addArtifacts(str(ze.package_archive()), pyfile=True), or spark-submit --py-files",
        )
    )


def _address(ui: str, number: int) -> str:
    """Return the page of a job in the Spark UI; empty without a UI."""
    return f"{ui}/jobs/job/?id={number}" if ui else ""
