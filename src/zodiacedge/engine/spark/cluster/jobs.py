"""Spark jobs: starting, watching and cancelling them.

A thread that waits for a job yields the engine to other threads, and cancels the job if it is interrupted.
"""

from __future__ import annotations

import logging
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pickle import PicklingError
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from zodiacedge.engine.spark.cluster.session import Cluster
from zodiacedge.engine.spark.cluster.task_files import JOB
from zodiacedge.engine.spark.cluster.task_result import ROWS, BatchTask, InputTask, decoded, values_of
from zodiacedge.engine.yield_point import ALONE, YieldPoint
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Input = TypeVar("_Input")
_Result = TypeVar("_Result")
_POLL_SECONDS = 0.02
_WATCH_SECONDS = 0.5
_MOST_AT_ONCE = 4
# A worker may write files for this long after its job was cancelled.
_LATE_SECONDS = 10.0


class TaskFolder(Protocol):
    """A folder that tasks write to."""

    def remove_job_files(self, job: str) -> None:
        """Remove the files of a job that failed or was cancelled."""


_LOGGER = logging.getLogger(__name__)


class _Listener(NamedTuple):
    begins: Callable[[str], None]
    moves: Callable[[str, int, int], None] | None


@dataclass(frozen=True)
class Jobs:
    """The jobs of an engine: one job group on a cluster, so that they can be counted and stopped."""

    cluster: Cluster = field(default_factory=Cluster)
    group: str = field(default_factory=lambda: f"zodiacedge-{uuid.uuid4().hex[:12]}")
    _listeners: list[_Listener] = field(default_factory=list, repr=False, compare=False)
    _fallback_listeners: list[_Listener] = field(default_factory=list, repr=False, compare=False)
    _scratches: WeakSet[TaskFolder] = field(default_factory=WeakSet, repr=False, compare=False)
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
        """The session, started at first use."""
        return self.cluster.session()

    @cached_property
    def cores(self) -> int:
        """The number of tasks that run at the same time."""
        return max(int(self.session.sparkContext.defaultParallelism), 1)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_MOST_AT_ONCE, "zodiacedge-spark")

    def count(self) -> int:
        """Return the number of jobs so far."""
        return len(self.session.sparkContext.statusTracker().getJobIdsForGroup(self.group))

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
        context = self.session.sparkContext
        results = self.run(
            lambda: context.parallelize(inputs, len(inputs)).mapPartitions(InputTask(function)).collect(),
            why,
            yield_point,
            watch,
        )
        return values_of(results)

    def each_partition(
        self,
        function: Callable[[Iterator[pa.RecordBatch]], Iterator[_Result]],
        frame: DataFrame,
        why: str,
        yield_point: YieldPoint = ALONE,
    ) -> list[_Result]:
        """Run one task on each partition of a DataFrame, and return the values that they yield."""
        rows = self.run(lambda: frame.mapInArrow(BatchTask(function), ROWS).collect(), why, yield_point)
        return values_of(decoded(rows))

    def run(
        self,
        action: Callable[[], _Result],
        why: str,
        yield_point: YieldPoint = ALONE,
        watch: Callable[[int], None] | None = None,
    ) -> _Result:
        """Run a Spark action; `why` is its purpose, for progress reports."""
        listeners = tuple(self._listeners or self._fallback_listeners)
        for listener in listeners:
            listener.begins(why)
        # A caller that watches its tasks reports on them itself.
        moves = () if watch else tuple(listener.moves for listener in listeners if listener.moves)
        context = self.session.sparkContext
        tag = uuid.uuid4().hex

        def grouped() -> _Result:
            context.setJobGroup(self.group, why, interruptOnCancel=True)
            context.setLocalProperty(JOB, tag)
            context.addJobTag(tag)
            try:
                return action()
            finally:
                context.removeJobTag(tag)

        self._remove_files_of_ended_jobs()
        job = self._threads.submit(grouped)
        started = time.monotonic()
        next_watch = started + _WATCH_SECONDS
        try:
            while not wait((job,), _POLL_SECONDS).done:
                yield_point.yield_to_waiters()
                if (watch or moves) and time.monotonic() > next_watch:
                    completed, tasks = self._count_tasks(tag)
                    if watch:
                        watch(completed)
                    for move in moves if tasks else ():
                        move(why, completed, tasks)
                    next_watch = time.monotonic() + _WATCH_SECONDS
        except BaseException:
            # By tag: the group may have other jobs.
            context.cancelJobsWithTag(tag)
            wait((job,))
            self._note_end(tag)
            raise
        try:
            result = job.result()
            _LOGGER.debug("Spark job: %s, %.3f s", why, time.monotonic() - started)
            return result  # noqa: TRY300 - the log is part of it
        except PicklingError as error:
            raise _not_picklable(error) from error
        except Exception:
            self._note_end(tag)
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

    def _count_tasks(self, tag: str) -> tuple[int, int]:
        """Count the completed tasks of the jobs with a tag, and those of all stages that are known."""
        context = self.session.sparkContext
        tracker = context.statusTracker()
        # PySpark's tracker cannot select by tag.
        tagged = context._jsc.sc().statusTracker().getJobIdsForTag(tag)  # noqa: SLF001
        jobs = [job for job in map(tracker.getJobInfo, tagged) if job]
        known = (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds)
        stages = [stage for stage in known if stage]
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def _not_picklable(error: PicklingError) -> UsageProblem:
    return UsageProblem(
        Diagnostic(
            "U026",
            f"a registered function or aggregate cannot be sent to Spark's tasks: {error}",
            "let it make locks, connections and open files itself, when it is called",
        )
    )
