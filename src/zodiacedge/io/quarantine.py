"""Quarantine: a folder with all bad lines as JSON lines, for repair."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from zodiacedge.io.problems import problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    from zodiacedge.io.report import BadLine

_NAME = "bad-lines-{:04d}.jsonl"
_MOST_FILES = 10_000


@contextmanager
def quarantine(folder: str | PathLike[str]) -> Iterator[Callable[[BadLine], None]]:
    """Write bad lines to a new file of a folder; the file is created with the first bad line.

    An entry has the bad line's file, number, offset of its first byte, beginning and reason.
    """
    opened: list[IO[str]] = []

    def add(bad: BadLine) -> None:
        if not opened:
            opened.append(_new_file(Path(folder)))
        opened[0].write(json.dumps(bad.to_dict(), ensure_ascii=False) + "\n")

    try:
        yield add
    finally:
        for file in opened:
            file.close()


def _new_file(folder: Path) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, _MOST_FILES):
            path = folder / _NAME.format(number)
            if not path.exists():
                return path.open("x", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise problem("I016", f"{folder} cannot take bad lines: {reason}", "name another folder") from error
    raise problem("I016", f"{folder} has too many files of bad lines", "name another folder")
