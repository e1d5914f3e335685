"""Spark jobs: how they are started, watched and cancelled.

A thread that waits for a job lets others work in the engine meanwhile, and cancels the job if it is
interrupted. `task_result` says how tasks answer.
"""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pickle import PicklingError
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import WeakSet

from zodiacedge.engine.spark.cluster.session import Cluster, cores
from zodiacedge.engine.spark.cluster.task_files import JOB
from zodiacedge.engine.spark.cluster.task_result import ROWS, BatchTask, InputTask, decoded, values_of
from zodiacedge.engine.yield_point import ALONE, YieldPoint
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Given = TypeVar("_Given")
_Result = TypeVar("_Result")
_LOOK_SECONDS = 0.02
_TELL_SECONDS = 0.5
_MOST_AT_ONCE = 4
# A worker learns within this time that its job was cancelled.
_LATE_SECONDS = 10.0


class TaskFolder(Protocol):
    """A folder that tasks write to."""

    def sweep(self, job: str) -> None:
        """Remove the files of a job that failed or was cancelled."""


@dataclass(frozen=True)
class Jobs:
    """Runs jobs on a cluster, all in one group, so that they can be counted and stopped."""

    cluster: Cluster = field(default_factory=Cluster)
    group: str = field(default_factory=lambda: f"zodiacedge-{uuid.uuid4().hex[:12]}")
    _listeners: list[Callable[[str], None]] = field(default_factory=list, repr=False, compare=False)
    _otherwise: list[Callable[[str], None]] = field(default_factory=list, repr=False, compare=False)

    _scratches: WeakSet[TaskFolder] = field(default_factory=WeakSet, repr=False, compare=False)
    _ended: dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    """Jobs that failed or were cancelled, and when."""

    @contextmanager
    def telling(self, listener: Callable[[str], None]) -> Iterator[None]:
        """Call a listener, within a `with` block, with the purpose of each job."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def tell_otherwise(self, listener: Callable[[str], None]) -> None:
        """Call a listener with the purpose of each job while there is none of a `with` block."""
        self._otherwise.append(listener)

    @cached_property
    def session(self) -> SparkSession:
        """The session, started when first needed."""
        return self.cluster.session()

    @cached_property
    def cores(self) -> int:
        """How many tasks run at the same time."""
        return cores(self.session)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_MOST_AT_ONCE, "zodiacedge-spark")

    def count(self) -> int:
        """Return how many jobs there were."""
        return len(self.session.sparkContext.statusTracker().getJobIdsForGroup(self.group))

    def one(
        self, work: Callable[[_Given], _Result], given: _Given, why: str, yield_point: YieldPoint = ALONE
    ) -> _Result:
        """Run one task and return its result."""
        (result,) = self.each(work, [given], why, yield_point)
        return result

    def each(
        self,
        work: Callable[[_Given], _Result],
        given: Sequence[_Given],
        why: str,
        yield_point: YieldPoint = ALONE,
        watch: Callable[[int], None] | None = None,
    ) -> list[_Result]:
        """Run one task for each input, and return their results in that order.

        If one fails, the files of the others are removed.

        Args:
            work: The work of each task.
            given: The inputs.
            why: The purpose of the job in plain words.
            yield_point: Passed on while others wait.
            watch: Called now and then with the number of tasks that are done.
        """
        if not given:
            return []
        context = self.session.sparkContext
        results = self.run(
            lambda: context.parallelize(given, len(given)).mapPartitions(InputTask(work)).collect(),
            why,
            yield_point,
            watch,
        )
        return values_of(results)

    def each_partition(
        self,
        work: Callable[[Iterator[pa.RecordBatch]], Iterator[_Result]],
        frame: DataFrame,
        why: str,
        yield_point: YieldPoint = ALONE,
    ) -> list[_Result]:
        """Run one task on each partition of a data frame, and return the values that they yield."""
        rows = self.run(lambda: frame.mapInArrow(BatchTask(work), ROWS).collect(), why, yield_point)
        return values_of(decoded(rows))

    def run(
        self,
        action: Callable[[], _Result],
        why: str,
        yield_point: YieldPoint = ALONE,
        watch: Callable[[int], None] | None = None,
    ) -> _Result:
        """Run an action of Spark; `why` is its purpose in plain words."""
        for listener in self._listeners or self._otherwise:
            listener(why)
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

        self._sweep()
        job = self._threads.submit(grouped)
        next_look = time.monotonic() + _TELL_SECONDS
        try:
            while not wait((job,), _LOOK_SECONDS).done:
                yield_point.yield_to_waiters()
                if watch and time.monotonic() > next_look:
                    watch(self._done(tag))
                    next_look = time.monotonic() + _TELL_SECONDS
        except BaseException:
            # The group may have other jobs, too.
            context.cancelJobsWithTag(tag)
            wait((job,))
            self._ended[tag] = time.monotonic()
            self._sweep()
            raise
        try:
            return job.result()
        except PicklingError as error:
            raise _cannot_be_sent(error) from error
        except Exception:
            self._ended[tag] = time.monotonic()
            self._sweep()
            raise

    def clean_up(self, scratch: TaskFolder) -> None:
        """Remove from a folder the files that failed and cancelled jobs leave there."""
        self._scratches.add(scratch)

    def _sweep(self) -> None:
        """Remove the files of failed and cancelled jobs, and those that their workers wrote afterwards."""
        for tag, when in list(self._ended.items()):
            for scratch in list(self._scratches):
                scratch.sweep(tag)
            if time.monotonic() > when + _LATE_SECONDS:
                self._ended.pop(tag, None)

    def _done(self, tag: str) -> int:
        """Count the tasks that are done in jobs with a tag; the session may have other jobs."""
        context = self.session.sparkContext
        tracker = context.statusTracker()
        # The tracker of PySpark knows no tags.
        tagged = context._jsc.sc().statusTracker().getJobIdsForTag(tag)  # noqa: SLF001
        jobs = [job for job in map(tracker.getJobInfo, tagged) if job]
        stages = (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds)
        return sum(stage.numCompletedTasks for stage in stages if stage)


def _cannot_be_sent(error: PicklingError) -> UsageProblem:
    return UsageProblem(
        Diagnostic(
            "U026",
            f"a registered function or aggregate cannot be sent to Spark's tasks: {error}",
            "let it make locks, connections and open files itself, when it is called",
        )
    )
