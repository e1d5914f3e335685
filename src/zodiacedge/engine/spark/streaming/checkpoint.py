"""Which files Spark noted as a batch of a stream, before it handed them over: read from its checkpoint.

Spark passes over files that are gone when their batch comes, so what it hands over may be less than it noted.
A batch ends at a place in the source's log of files; the batch before it ended where it begins.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def noted_files(checkpoint: Path, number: int) -> frozenset[str]:
    """Return the addresses of the files of a batch, written as they are read; raise ValueError if unknown."""
    begin = _end(checkpoint, number - 1) if number else -1
    places = range(begin + 1, _end(checkpoint, number) + 1)
    return frozenset(path for place in places for path in _files(checkpoint, place))


def _end(checkpoint: Path, number: int) -> int:
    """Return the place in the source's log that a batch ends with."""
    *_, last = _lines(checkpoint / "offsets" / str(number))
    found = last["logOffset"]
    if not isinstance(found, int):
        raise ValueError(f"the batch {number} has no end")  # noqa: TRY004 - it is the value of a file
    return found


def _files(checkpoint: Path, place: int) -> Iterator[str]:
    folder = checkpoint / "sources" / "0"
    # Now and then all places so far are noted together.
    single, together = folder / str(place), folder / f"{place}.compact"
    for line in _lines(together if together.exists() else single):
        if line["batchId"] == place:
            yield unquote(str(line["path"]))


def _lines(path: Path) -> Iterator[dict[str, object]]:
    """Yield the documents of a file, the first line of which tells the version of the format."""
    try:
        _, *lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    for line in lines:
        if not isinstance(found := json.loads(line), dict):
            raise ValueError(f"{path} does not say what it should")  # noqa: TRY004 - as above
        yield found
