"""The files of a batch of a stream, read from Spark's checkpoint.

Spark writes them there before it delivers the batch, and skips files that are removed in between: a batch may
have fewer files than its checkpoint. A batch ends at an offset in the source's log of files, and begins after
the end of the previous batch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def checkpointed_files(checkpoint: Path, number: int) -> frozenset[str]:
    """Return the URIs of the files of a batch, unquoted; raise ValueError if they are unknown."""
    begin = _end(checkpoint, number - 1) if number else -1
    offsets = range(begin + 1, _end(checkpoint, number) + 1)
    return frozenset(path for offset in offsets for path in _files(checkpoint, offset))


def taken_files(checkpoint: Path, number: int) -> frozenset[Path]:
    """Return the files of all batches up to a number; raise ValueError if they are unknown."""
    end = _end(checkpoint, number)
    logs = (checkpoint / "sources" / "0").glob("[0-9]*")
    # Files that Spark compacted may be there still, and lines may repeat.
    lines = (line for log in logs for line in _lines(log))
    return frozenset(path_of(unquote(str(line["path"]))) for line in lines if _offset(line) <= end)


def stream_of(checkpoint: Path) -> str:
    """Return the id that Spark gave to a stream at its first start."""
    return str(json.loads((checkpoint / "metadata").read_bytes())["id"])


def path_of(uri: str) -> Path:
    """Return the path of an unquoted URI."""
    return Path("/" + uri.removeprefix("file:").lstrip("/"))


def _offset(line: Mapping[str, object]) -> int:
    offset = line["batchId"]
    if not isinstance(offset, int):
        raise ValueError("a file of the checkpoint has no batch")  # noqa: TRY004 - as below
    return offset


def _end(checkpoint: Path, number: int) -> int:
    """Return the offset in the source's log at which a batch ends."""
    *_, last = _lines(checkpoint / "offsets" / str(number))
    offset = last["logOffset"]
    if not isinstance(offset, int):
        raise ValueError(f"the batch {number} has no end")  # noqa: TRY004 - it is the value of a file
    return offset


def _files(checkpoint: Path, offset: int) -> Iterator[str]:
    folder = checkpoint / "sources" / "0"
    # Spark regularly compacts all offsets so far into one file.
    single, compact = folder / str(offset), folder / f"{offset}.compact"
    for line in _lines(compact if compact.exists() else single):
        if line["batchId"] == offset:
            yield unquote(str(line["path"]))


def _lines(path: Path) -> Iterator[dict[str, object]]:
    """Yield the JSON objects of a file, one per line after the version of the format."""
    try:
        _, *lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    for line in lines:
        if not isinstance(document := json.loads(line), dict):
            raise ValueError(f"{path} has a line that is not a JSON object")  # noqa: TRY004 - as above
        yield document
