"""Jobs on a session with Spark's driver in this process: tasks are the partitions of an RDD.

A job of one small task takes half the time that it would take as a DataFrame's.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.engine.spark.cluster.task_result import InputTask, TaskFailure, TaskResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.spark.cluster.runner import JobName

_Input = TypeVar("_Input")
_Value = TypeVar("_Value")


class ClassicRunner:
    """Runs tasks by the SparkContext of a session."""

    def __init__(self, session: SparkSession, *, ours: bool) -> None:
        """Take a session; the log of one that is not `ours` is left as it is."""
        self._context = session.sparkContext
        self._ours = ours

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time."""
        return max(int(self._context.defaultParallelism), 1)

    @property
    def ui(self) -> str:
        """The address of the Spark UI; empty if there is none."""
        return str(self._context.uiWebUrl or "")

    def collect(
        self, function: Callable[[_Input], _Value], inputs: Sequence[_Input], job: str
    ) -> list[TaskResult[_Value] | TaskFailure]:
        """Run one task for each input, and return their results in that order."""
        tasks = self._context.parallelize(inputs, len(inputs))
        results: list[TaskResult[_Value] | TaskFailure]
        results = tasks.mapPartitions(InputTask(function, job)).collect()
        return results

    @contextmanager
    def named(self, name: JobName, frame: DataFrame | None) -> Iterator[None]:
        """Name the jobs that this thread starts in a `with` block."""
        del frame  # all sessions share the context
        context, tags = self._context, (name.engine, name.tag)
        context.setJobGroup(name.group, name.purpose, interruptOnCancel=True)
        for tag in tags:
            context.addJobTag(tag)
        try:
            yield
        finally:
            for tag in tags:
                context.removeJobTag(tag)

    def cancel(self, tag: str, frame: DataFrame | None) -> None:
        """Cancel the jobs with a tag; their group may have others."""
        del frame
        self._context.cancelJobsWithTag(tag)

    def progress(self, tag: str) -> tuple[int, int]:
        """Count the completed tasks of the jobs with a tag, and all of their tasks that are known."""
        tracker = self._context.statusTracker()
        jobs = [job for job in map(tracker.getJobInfo, self.jobs(tag)) if job]
        known = (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds)
        stages = [stage for stage in known if stage]
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    def jobs(self, tag: str) -> list[int]:
        """Return the numbers of the jobs with a tag."""
        # PySpark's tracker cannot select by tag.
        tagged = self._context._jsc.sc().statusTracker().getJobIdsForTag(tag)  # noqa: SLF001
        return sorted(int(job) for job in tagged)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Silence Spark's own log of problems in a `with` block, because they are raised."""
        bridge = logging.getLogger("py4j.clientserver")
        level = bridge.level
        bridge.setLevel(logging.CRITICAL + 1)
        if self._ours:
            self._context.setLogLevel("OFF")
        try:
            yield
        finally:
            if self._ours:
                self._context.setLogLevel("ERROR")
            bridge.setLevel(level)
