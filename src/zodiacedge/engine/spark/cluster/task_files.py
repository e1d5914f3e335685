"""Files that tasks write: their file systems, and the removal of files of a task that fails."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The local property of Spark with the name of a task's job.
JOB = "zodiacedge.job"
# Errors that mean a file cannot be removed; it is removed with its folder in the end.
GONE = (OSError, ValueError, pa.ArrowException)
LOCAL = fs.LocalFileSystem()
_NOTED: ContextVar[list[str] | None] = ContextVar("_NOTED", default=None)


def located(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI, and the path in it."""
    if "://" not in uri:
        return LOCAL, uri
    system: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    return system


def note_file(path: str) -> None:
    """Note a file that is about to be written, so that it is removed if its task fails."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(path)


@contextmanager
def all_or_nothing() -> Iterator[list[str]]:
    """Yield a list of the files written in a `with` block; they are removed if the block fails."""
    noted: list[str] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    except BaseException:
        remove_files(noted)
        raise
    finally:
        _NOTED.reset(token)


def remove_files(paths: Iterable[str]) -> None:
    """Remove files that are not needed any more."""
    for path in paths:
        try:
            system, inner_path = located(path)
            system.delete_file(inner_path)
        except GONE:
            continue
