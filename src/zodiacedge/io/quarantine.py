"""Quarantine: a folder with what was not taken as JSON lines: bad lines, for repair, and late facts."""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from zodiacedge.io.formats.jsonl import json_line
from zodiacedge.io.problems import problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from os import PathLike

    from zodiacedge.io.report import BadLine
    from zodiacedge.language.ast import Fact

_BAD_LINES = "bad-lines-{:04d}.jsonl"
_LATE_FACTS = "late-facts-{:04d}.jsonl"
QUARANTINED = ("bad-lines-*.jsonl", "late-facts-*.jsonl")
"""The patterns of the names of these files."""
_MOST_FILES = 10_000


@contextmanager
def quarantine(folder: str | PathLike[str]) -> Iterator[Callable[[BadLine], None]]:
    """Write bad lines to a new file of a folder; the file is created with the first bad line.

    An entry has the bad line's file, number, offset of its first byte, beginning and reason.
    """
    opened: list[IO[str]] = []

    def add(bad: BadLine) -> None:
        if not opened:
            opened.append(_new_file(Path(folder), _BAD_LINES))
        opened[0].write(json.dumps(bad.to_dict(), ensure_ascii=False) + "\n")

    try:
        yield add
    finally:
        for file in opened:
            file.close()


def quarantine_late(folder: str | PathLike[str], facts: Iterable[Fact]) -> None:
    """Write late facts to a new file of a folder, if there are any; it can be loaded as it is."""
    later = iter(facts)
    first = next(later, None)
    if first is None:
        return
    with _new_file(Path(folder), _LATE_FACTS) as file:
        for fact in chain((first,), later):
            name, arity = fact.predicate
            file.write(json_line(name, fact.args[:arity]) + "\n")


def _new_file(folder: Path, name: str) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, _MOST_FILES):
            path = folder / name.format(number)
            if not path.exists():
                return path.open("x", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise problem("I016", f"{folder} cannot take bad lines: {reason}", "name another folder") from error
    raise problem("I016", f"{folder} has too many files of bad lines", "name another folder")
