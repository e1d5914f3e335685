"""The journal of a stream that needs no Spark: the files of each batch, on disk before the batch is applied.

The journal is a file of JSON lines: the name of the stream, then the files of batch 0, 1, and so on. A last
line that was not written to its end is a batch that nobody has seen, and is cut off.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from zodiacedge.store.location.atomic_files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Sequence


class FileJournal:
    """The name of a stream and the files of its batches."""

    def __init__(self, path: Path) -> None:
        """Read a journal, or begin one with a new name; raise ValueError if it is damaged."""
        self._path = path
        lines = _complete_lines(path)
        self.stream = _stream(lines[0]) if lines else str(uuid4())
        self.batches = [tuple(map(Path, _files(line))) for line in lines[1:]]
        self._is_new = not lines

    def append(self, files: Sequence[Path]) -> int:
        """Write the files of the next batch to disk, and return its number."""
        lines = [{"stream": self.stream}] if self._is_new else []
        data = "".join(f"{json.dumps(line)}\n" for line in (*lines, {"files": [str(file) for file in files]}))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            # A torn line that a killed process left is cut off.
            file.truncate(len(_complete_bytes(self._path)))
            file.write(data.encode())
            file.flush()
            os.fsync(file.fileno())
        if self._is_new:
            sync_folder(self._path.parent)
            self._is_new = False
        self.batches.append(tuple(files))
        return len(self.batches) - 1

    def files(self, last: int) -> frozenset[Path]:
        """Return the files of the batches up to a number."""
        return frozenset(file for batch in self.batches[: last + 1] for file in batch)


def _complete_bytes(path: Path) -> bytes:
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def _complete_lines(path: Path) -> list[object]:
    try:
        return [json.loads(line) for line in _complete_bytes(path).splitlines()]
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _stream(line: object) -> str:
    match line:
        case {"stream": str() as stream}:
            return stream
    raise ValueError("the journal of files does not name its stream")


def _files(line: object) -> list[str]:
    match line:
        case {"files": list() as files} if all(isinstance(file, str) for file in files):
            return files
    raise ValueError("a line of the journal of files is not a batch")
