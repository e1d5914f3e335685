"""A batch of files that arrived in a folder, and the problem of a stream of them that ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, StoreProblem

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class FileBatch:
    """A batch of files: the stream, the number of the batch, and the paths."""

    stream: str
    number: int
    files: tuple[Path, ...]
    gone: tuple[Path, ...] = ()
    """Files of the batch that were removed before it was delivered."""


def stream_ended(folder: Path, problem: Exception) -> StoreProblem:
    """Return the problem of a stream that ended before its time."""
    lines = str(problem).strip().splitlines()
    why = lines[0] if lines else type(problem).__name__
    note = "start it again: no file is applied twice"
    return StoreProblem(Diagnostic("D016", f"the stream from {folder} ended: {why}", note))
