"""The interface between jobs and a session, and which implementation a session needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.spark.cluster.task_result import TaskFailure, TaskResult

_Input = TypeVar("_Input")
_Value = TypeVar("_Value")


class JobName(NamedTuple):
    """The names of a job: the engine and the change that it is for, a tag of its own, and its purpose."""

    engine: str
    group: str
    tag: str
    purpose: str


class Runner(Protocol):
    """Runs tasks on a session, and names and cancels its jobs."""

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time."""

    @property
    def ui(self) -> str:
        """The address of the Spark UI; empty if there is none."""

    def collect(
        self, function: Callable[[_Input], _Value], inputs: Sequence[_Input], job: str
    ) -> list[TaskResult[_Value] | TaskFailure]:
        """Run one task for each input, and return their results in that order."""

    def named(self, name: JobName, frame: DataFrame | None) -> AbstractContextManager[None]:
        """Name the jobs that this thread starts in a `with` block, on the session of a frame or its own."""

    def cancel(self, tag: str, frame: DataFrame | None) -> None:
        """Cancel the jobs with a tag."""

    def progress(self, tag: str) -> tuple[int, int]:
        """Count the completed tasks of the jobs with a tag, and all of their tasks that are known."""

    def jobs(self, tag: str) -> list[int]:
        """Return the numbers of the jobs with a tag; none where Spark does not tell."""

    def silence(self) -> AbstractContextManager[None]:
        """Silence Spark's own log of problems in a `with` block, because they are raised."""


def is_connect(session: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def refuse_stopped(session: SparkSession) -> None:
    """Raise if a session was stopped: none of its jobs can run."""
    # PySpark has no public name for it on a classic session.
    stopped = session.client.is_closed if is_connect(session) else session.sparkContext._jsc is None  # noqa: SLF001
    if stopped:
        hint = "start one, and open the knowledge base with it: ze.open(…, spark=session)"
        raise UsageProblem(Diagnostic("U035", "the Spark session is stopped", hint))


def runner_for(session: SparkSession, *, ours: bool) -> Runner:
    """Return what runs the tasks of a session; `ours` is one that this process started itself."""
    if is_connect(session):
        from zodiacedge.engine.spark.cluster.connect import ConnectRunner  # noqa: PLC0415 - loads its client

        return ConnectRunner(session)
    from zodiacedge.engine.spark.cluster.classic import ClassicRunner  # noqa: PLC0415 - as above

    return ClassicRunner(session, ours=ours)
