"""The report on a load: bad lines, counts per file, and progress.

They are data. Showing them is left to the command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from zodiacedge.errors import Diagnostic, LoadProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MAX_LISTED = 5
_EXCERPT_LENGTH = 200


@dataclass(frozen=True, slots=True)
class BadLine:
    """A skipped line, or a skipped row of a columnar file: position and reason.

    Lines and rows count from 1. The offset is that of the line's first byte after decompression; rows of
    columnar files have none. `text` is the beginning of the line.
    """

    file: str
    line: int
    reason: str
    offset: int | None = None
    text: str = ""
    unit: Literal["line", "row"] = "line"

    def __str__(self) -> str:
        """Return the finding as `file:line: reason`."""
        row = "row " if self.unit == "row" else ""
        return f"{self.file}:{row}{self.line}: {self.reason}"

    def to_dict(self) -> dict[str, object]:
        """Return the finding as plain values for JSON."""
        return {
            "file": self.file,
            "line": self.line,
            "unit": self.unit,
            "offset": self.offset,
            "reason": self.reason,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class FileReport:
    """Counts of one file, and the relation of its rows if it is a table."""

    file: str
    format: str
    facts: int
    bad: int
    relation: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the counts as plain values for JSON."""
        counts = {"file": self.file, "format": self.format, "facts": self.facts, "bad_lines": self.bad}
        return counts | ({"relation": self.relation} if self.relation else {})


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The report on a load: counts per file, the first bad lines, and warnings of files.

    `facts` counts duplicates.
    """

    files: tuple[FileReport, ...] = ()
    bad_lines: tuple[BadLine, ...] = ()
    seconds: float = 0.0
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def facts(self) -> int:
        """The number of facts of all files, with duplicates."""
        return sum(f.facts for f in self.files)

    @property
    def bad(self) -> int:
        """The number of skipped lines."""
        return sum(f.bad for f in self.files)

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values for JSON."""
        return {
            "facts": self.facts,
            "bad_lines": self.bad,
            "seconds": self.seconds,
            "files": [f.to_dict() for f in self.files],
            "examples": [b.to_dict() for b in self.bad_lines],
            "warnings": [w.to_dict() for w in self.warnings],
        }


def table_report(relation: str, facts: int, dropped: int, seconds: float) -> LoadReport:
    """Return the report on a table in memory or of Spark, from which rows with a null were left out."""
    warnings: list[Diagnostic] = []
    if dropped:
        rows = f"{dropped:,} rows" if dropped > 1 else "1 row"
        message = f"{rows} of the table of {relation} with a null: left out"
        note = "fill the cells, or leave the rows out where the table is made"
        warnings.append(Diagnostic("W030", message, note, severity="warning"))
    report = FileReport("the table", "table", facts, dropped, relation)
    return LoadReport((report,), (), seconds, tuple(warnings))


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """Progress of a load: bytes on disk of all its files, and the facts and bad lines so far."""

    file: str
    bytes_read: int
    bytes_total: int
    facts: int
    bad: int


class ProgressCallback(Protocol):
    """A function that is called after each batch and at the end of each file."""

    def __call__(self, progress: LoadProgress, /) -> None:
        """Receive the progress of a load."""


@dataclass(slots=True)
class Findings:
    """Collector of warnings and bad lines: counts all, keeps the first ones, passes each to a callback."""

    keep: int = 20
    notify: Callable[[BadLine], None] | None = None
    total: int = 0
    kept: list[BadLine] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)

    def wanted(self, bad: int) -> int:
        """Return how many of the next bad lines must be passed to `add`; further ones are only counted."""
        return bad if self.notify else min(bad, self.keep - len(self.kept))

    def count(self, bad: int) -> None:
        """Count bad lines without their text."""
        self.total += bad

    def add(self, bad: BadLine) -> None:
        """Add a bad line."""
        self.total += 1
        if len(self.kept) < self.keep:
            self.kept.append(bad)
        if self.notify:
            self.notify(bad)


def excerpt(data: bytes) -> str:
    """Return the beginning of a line for a report; invalid bytes are escaped."""
    return data[: _EXCERPT_LENGTH * 4].decode("utf-8", "backslashreplace")[:_EXCERPT_LENGTH].rstrip("\r\n")


def strict_problem(total: int, bad_lines: Sequence[BadLine]) -> LoadProblem:
    """Return the problem of bad lines in strict mode: one message with the first lines."""
    lines = "\n".join(f"    {bad}" for bad in bad_lines[:_MAX_LISTED])
    more = total - min(len(bad_lines), _MAX_LISTED)
    rest = f"\n    … and {more} more" if more and bad_lines else ""
    listing = f":\n{lines}{rest}" if lines else ""
    count = "1 bad line" if total == 1 else f"{total} bad lines"
    return LoadProblem(
        Diagnostic(
            "I012",
            f"strict loading found {count}{listing}",
            "mend the lines, or load without strict to skip and report them; nothing was changed",
        )
    )
