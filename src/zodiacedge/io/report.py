"""What a load found: bad lines, counts per file, and how far it is.

All of it is data. The library counts and calls back; drawing a bar or printing a line is left to the
command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from zodiacedge.errors import Diagnostic, LoadProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LISTED = 5
_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line (or a row of a columnar file) that was skipped: where it stands and why.

    Lines and rows count from 1. The offset is that of the line's first byte, in the text as it is
    after decompression; rows of columnar files have none. `text` is the beginning of the line.
    """

    file: str
    line: int
    reason: str
    offset: int | None = None
    text: str = ""
    unit: Literal["line", "row"] = "line"

    def __str__(self) -> str:
        """Show the finding as a person would write it: file:line: reason."""
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
    """What one file gave."""

    file: str
    format: str
    facts: int
    bad: int

    def to_dict(self) -> dict[str, object]:
        """Return the counts as plain values for JSON."""
        return {"file": self.file, "format": self.format, "facts": self.facts, "bad_lines": self.bad}


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load gave: counts per file, and the first bad lines (all are counted, not all kept).

    `facts` counts what the files state, a fact stated twice as two.
    """

    files: tuple[FileReport, ...] = ()
    bad_lines: tuple[BadLine, ...] = ()
    seconds: float = 0.0

    @property
    def facts(self) -> int:
        """How many facts the files state."""
        return sum(f.facts for f in self.files)

    @property
    def bad(self) -> int:
        """How many lines were skipped."""
        return sum(f.bad for f in self.files)

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values for JSON."""
        return {
            "facts": self.facts,
            "bad_lines": self.bad,
            "seconds": self.seconds,
            "files": [f.to_dict() for f in self.files],
            "examples": [b.to_dict() for b in self.bad_lines],
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is: bytes on disk over all its files, and what came of them so far."""

    file: str
    bytes_read: int
    bytes_total: int
    facts: int
    bad: int


class ProgressCallback(Protocol):
    """Called after each batch and at the end of each file."""

    def __call__(self, progress: Progress, /) -> None:
        """Take note of how far the load is."""


@dataclass(slots=True)
class Findings:
    """Collects bad lines: counts all, keeps the first few, hands each to whoever wants it."""

    keep: int = 20
    notify: Callable[[BadLine], None] | None = None
    total: int = 0
    kept: list[BadLine] = field(default_factory=list)

    def wanted(self, bad: int) -> int:
        """Return how many of so many more bad lines somebody wants, the first ones; others only count."""
        return bad if self.notify else min(bad, self.keep - len(self.kept))

    def count(self, bad: int) -> None:
        """Count bad lines that nobody wants."""
        self.total += bad

    def add(self, bad: BadLine) -> None:
        """Note one more bad line."""
        self.total += 1
        if len(self.kept) < self.keep:
            self.kept.append(bad)
        if self.notify:
            self.notify(bad)


def excerpt(data: bytes) -> str:
    """Return the beginning of a line for a report, whatever bytes it holds."""
    return data[: _EXCERPT * 4].decode("utf-8", "backslashreplace")[:_EXCERPT].rstrip("\r\n")


def strict_problem(total: int, bad_lines: Sequence[BadLine]) -> LoadProblem:
    """Return the problem that bad lines are in strict mode: one message with the first few."""
    lines = "\n".join(f"    {bad}" for bad in bad_lines[:_LISTED])
    more = total - min(len(bad_lines), _LISTED)
    rest = f"\n    … and {more} more" if more and bad_lines else ""
    what = "1 bad line" if total == 1 else f"{total} bad lines"
    listing = f":\n{lines}{rest}" if lines else ""
    return LoadProblem(
        Diagnostic(
            "I012",
            f"strict loading found {what}{listing}",
            "mend the lines, or load without strict to skip and report them; nothing was changed",
        )
    )
