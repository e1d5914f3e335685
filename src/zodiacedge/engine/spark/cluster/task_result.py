"""The result of a task: a value and the working files it wrote, or the problem it met.

A problem that a user can cause is returned as data and raised in the driver. A failed task removes its own
files; the driver removes those of the other tasks of the job. Tasks of an RDD return results directly, tasks
of a DataFrame in rows of one binary column.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import pyarrow as pa

from zodiacedge.engine.spark.cluster.task_files import (
    all_or_nothing,
    count_read,
    remove_files,
    rows_read,
)
from zodiacedge.errors import Diagnostic, LimitReached, ZodiacError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Row

_Input = TypeVar("_Input")
_Value = TypeVar("_Value")
_COLUMN = "result"
ROWS = f"{_COLUMN} binary"
"""The schema of a DataFrame of task results."""
_END = object()


class TaskResult(NamedTuple, Generic[_Value]):
    """The value that a task returned, the working files that it wrote, and how many rows it read."""

    value: _Value
    files: tuple[str, ...]
    read: int = 0


@dataclass(frozen=True)
class TaskFailure:
    """A problem that a task met."""

    kind: type[ZodiacError]
    diagnostics: tuple[Diagnostic, ...]


_OUT_OF_MEMORY = TaskFailure(
    LimitReached,
    (
        Diagnostic(
            "E006",
            "a task on Spark ran out of memory; nothing was changed",
            "give Python workers more memory (spark.executor.memoryOverhead), or let tasks take fewer rows "
            "(gather_rows); a registered function may also need too much",
        ),
    ),
)


def _result(compute: Callable[[], _Value], job: str) -> TaskResult[_Value] | TaskFailure:
    """Compute the result of a task; if that fails, remove the files that it wrote."""
    try:
        with rows_read() as read, all_or_nothing(job) as files:
            value = compute()
    except ZodiacError as problem:
        return TaskFailure(type(problem), tuple(problem.diagnostics))
    except MemoryError:
        return _OUT_OF_MEMORY
    return TaskResult(value, tuple(files), read.rows)


@dataclass(frozen=True)
class InputTask(Generic[_Input, _Value]):
    """A task on the elements of an RDD's partition, with a result per element."""

    function: Callable[[_Input], _Value]
    job: str
    """The tag of the job."""

    def __call__(self, inputs: Iterable[_Input]) -> Iterator[TaskResult[_Value] | TaskFailure]:
        """Yield a result per element; Spark reuses a worker only if it has read all of its input."""
        for element in inputs:
            yield _result(partial(self.function, element), self.job)


@dataclass(frozen=True)
class BatchTask(Generic[_Value]):
    """A task on the rows of a DataFrame's partition, with a result per value that it yields."""

    function: Callable[[Iterator[pa.RecordBatch]], Iterator[_Value]]
    job: str
    """The tag of the job."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield encoded results until the first failure; then read the rest of the input unused."""
        values = self.function(batches)
        while True:
            result = _result(partial(next, values, _END), self.job)
            if isinstance(result, TaskResult) and result.value is _END:
                return
            yield pa.RecordBatch.from_pydict({_COLUMN: pa.array([pickle.dumps(result)], pa.binary())})
            if isinstance(result, TaskFailure):
                for _ in batches:
                    continue


def decoded(rows: Iterable[Row]) -> Iterator[TaskResult[_Value] | TaskFailure]:
    """Decode the results in the rows of a DataFrame."""
    return (pickle.loads(row[_COLUMN]) for row in rows)  # noqa: S301 - a task of this engine wrote it


def values_of(results: Iterable[TaskResult[_Value] | TaskFailure]) -> list[_Value]:
    """Return the values of all tasks; if one failed, remove the files of all and raise its problem."""
    listed = list(results)
    done = [result for result in listed if not isinstance(result, TaskFailure)]
    failures = [result for result in listed if isinstance(result, TaskFailure)]
    if failures:
        remove_files(path for result in done for path in result.files)
        raise failures[0].kind(list(failures[0].diagnostics))
    count_read(sum(result.read for result in done))
    return [result.value for result in done]
