"""Files of tasks: their file systems, removal if their task fails, and how many rows are read of them."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Errors of a removal; the file is then removed with its folder at exit.
REMOVAL_ERRORS = (OSError, ValueError, pa.ArrowException)
LOCAL = fs.LocalFileSystem()
_RECORDED: ContextVar[list[str] | None] = ContextVar("_RECORDED", default=None)
_JOB: ContextVar[str] = ContextVar("_JOB", default="")


@dataclass
class RowsRead:
    """How many rows were read of working files."""

    rows: int = 0


_READ: ContextVar[RowsRead | None] = ContextVar("_READ", default=None)


def located(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI, and the path in it."""
    if "://" not in uri:
        return LOCAL, uri
    system: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    return system


def record_file(path: str) -> None:
    """Record a file before it is written, so that it is removed if its task fails."""
    recorded = _RECORDED.get()
    if recorded is not None:
        recorded.append(path)


@contextmanager
def rows_read() -> Iterator[RowsRead]:
    """Count the rows that this thread, and tasks of its jobs, read of working files in a `with` block.

    What Spark reads for plans of DataFrames is not counted.
    """
    outer, read = _READ.get(), RowsRead()
    token = _READ.set(read)
    try:
        yield read
    finally:
        _READ.reset(token)
        if outer is not None:
            outer.rows += read.rows


def count_read(rows: int) -> None:
    """Note that rows of a working file were read."""
    read = _READ.get()
    if read is not None:
        read.rows += rows


def job_of_this_task() -> str:
    """Return the tag of the job that this thread runs a task of; empty in the driver."""
    return _JOB.get()


@contextmanager
def all_or_nothing(job: str = "") -> Iterator[list[str]]:
    """Yield the list of files written in a `with` block; remove them if the block fails.

    The names of the files have the tag of the job in them, if it is given.
    """
    recorded: list[str] = []
    token, job_token = _RECORDED.set(recorded), _JOB.set(job)
    try:
        yield recorded
    except BaseException:
        remove_files(recorded)
        raise
    finally:
        _RECORDED.reset(token)
        _JOB.reset(job_token)


def remove_files(paths: Iterable[str]) -> None:
    """Remove files; ignore those that cannot be removed."""
    for path in paths:
        try:
            system, inner_path = located(path)
            system.delete_file(inner_path)
        except REMOVAL_ERRORS:
            continue
