"""Jobs on a session of Spark Connect, whose driver is a server: tasks are the rows of a DataFrame.

There is no SparkContext: tags name jobs and cancel them. Progress is what the server sends while a job runs.
"""

from __future__ import annotations

import atexit
import pickle
import threading
import weakref
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from zodiacedge.engine.spark.cluster.task_result import ROWS, BatchTask, TaskFailure, TaskResult, decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.shell.progress import StageInfo

    from zodiacedge.engine.spark.cluster.runner import JobName

_Input = TypeVar("_Input")
_Value = TypeVar("_Value")
_SEPARATOR = ","
# Inputs of more bytes are sent as rows, each to one task, instead of all of them to every task.
_MOST_BYTES = 1 << 20


class ConnectRunner:
    """Runs tasks on the server of a session."""

    def __init__(self, session: SparkSession) -> None:
        """Take a session that nobody else uses."""
        self._session = session
        self._thread = threading.local()
        self._progress: dict[str, tuple[int, int]] = {}
        # At exit the client would ask a server that may be gone, for minutes. Exit handlers run last first.
        atexit.register(_disconnect, weakref.ref(session))
        session.registerProgressHandler(self._note)  # type: ignore[arg-type] # any callable will do

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time, as far as the server tells."""
        # Spark gives a range as many partitions as there are cores.
        return max(self._session.range(1 << 20).mapInArrow(_counted, "rows long").count(), 1)

    @property
    def ui(self) -> str:
        """The address of the Spark UI: a client does not know it."""
        return ""

    def collect(
        self, function: Callable[[_Input], _Value], inputs: Sequence[_Input], job: str
    ) -> list[TaskResult[_Value] | TaskFailure]:
        """Run one task for each input, and return their results in that order."""
        from pyspark.serializers import CPickleSerializer  # noqa: PLC0415 - heavy

        # As an RDD's elements: also with the functions that users register.
        serializer = CPickleSerializer()
        count, pickled = len(inputs), [serializer.dumps(value) for value in inputs]  # type: ignore[no-untyped-call]
        if sum(map(len, pickled)) * count <= _MOST_BYTES:
            frame = self._session.range(0, count, 1, count)
            task = _NumberedTask(function, tuple(pickled))
        else:
            table = pa.table(
                {"id": pa.array(range(count), pa.int64()), "input": pa.array(pickled, pa.binary())}
            )
            frame = self._session.createDataFrame(table).repartition(count, "id")
            task = _NumberedTask(function)
        numbered: list[tuple[int, TaskResult[_Value] | TaskFailure]] = []
        results: Iterator[TaskResult[tuple[int, _Value]] | TaskFailure]
        results = decoded(frame.mapInArrow(BatchTask(task, job), ROWS).collect())
        for result in results:
            if isinstance(result, TaskFailure):
                numbered.append((count, result))
            else:
                number, value = result.value
                numbered.append((number, TaskResult(value, result.files)))
        return [result for _, result in sorted(numbered, key=lambda pair: pair[0])]

    @contextmanager
    def named(self, name: JobName, frame: DataFrame | None) -> Iterator[None]:
        """Tag the jobs that this thread starts in a `with` block."""
        session = frame.sparkSession if frame is not None else self._session
        tags = [part.replace(_SEPARATOR, ";") for part in (name.group, name.purpose, name.tag) if part]
        for tag in tags:
            session.addTag(tag)
        self._thread.tag = name.tag
        try:
            yield
        finally:
            self._thread.tag = None
            self._progress.pop(name.tag, None)
            for tag in tags:
                session.removeTag(tag)

    def cancel(self, tag: str, frame: DataFrame | None) -> None:
        """Cancel the jobs with a tag."""
        (frame.sparkSession if frame is not None else self._session).interruptTag(tag)

    def progress(self, tag: str) -> tuple[int, int]:
        """Count the completed tasks of the jobs with a tag, and all of their tasks that are known."""
        return self._progress.get(tag, (0, 0))

    def jobs(self, tag: str) -> list[int]:
        """Return the numbers of the jobs with a tag: a client does not know them."""
        del tag
        return []

    def silence(self) -> AbstractContextManager[None]:
        """Return a block without effect: the log is the server's."""
        return nullcontext()

    def _note(self, stages: Iterable[StageInfo] | None, **_: object) -> None:
        """Take note of the progress of a job; called by the thread that waits for it."""
        tag = getattr(self._thread, "tag", None)
        if tag:
            known = list(stages or ())
            completed = sum(stage.num_completed_tasks for stage in known)
            self._progress[tag] = completed, sum(stage.num_tasks for stage in known)


@dataclass(frozen=True)
class _NumberedTask(Generic[_Input, _Value]):
    """A task on rows that are numbers of inputs, or numbers and inputs: yields each number and its result."""

    function: Callable[[_Input], _Value]
    inputs: tuple[bytes, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, _Value]]:
        for batch in batches:
            for row in range(batch.num_rows):
                number = batch.column(0)[row].as_py()
                pickled = self.inputs[number] if self.inputs else batch.column(1)[row].as_py()
                yield number, self.function(pickle.loads(pickled))  # noqa: S301 - this engine's own


def _disconnect(session: weakref.ref[SparkSession]) -> None:
    """Close the connection of a session that is still there."""
    alive = session()
    if alive is not None:
        alive.client.close()


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield one row for a partition."""
    yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(batch.num_rows for batch in batches)])})
