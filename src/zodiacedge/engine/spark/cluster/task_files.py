"""Files that tasks write: where they are, and how those of a task that fails are removed."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The local property of Spark that tells a task the name of its job.
JOB = "zodiacedge.job"
# Removing a file is retried by nobody: the folder goes at the end anyway.
GONE = (OSError, ValueError, pa.ArrowException)
LOCAL = fs.LocalFileSystem()
_NOTED: ContextVar[list[str] | None] = ContextVar("_NOTED", default=None)


def located(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a place, and the place in it."""
    if "://" not in uri:
        return LOCAL, uri
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    return found


def note_file(path: str) -> None:
    """Remember a file that is about to be written, so that it goes if its task fails."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(path)


@contextmanager
def all_or_nothing() -> Iterator[list[str]]:
    """Yield a list that gets the places of all files written in a `with` block; they go if it fails."""
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
    """Remove files that nobody will ever ask for."""
    for path in paths:
        try:
            system, place = located(path)
            system.delete_file(place)
        except GONE:
            continue
