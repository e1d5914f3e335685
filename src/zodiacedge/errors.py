"""What can go wrong, as data.

The exception tree::

    ZodiacError                 anything a user can cause; carries diagnostics
    ├── SyntaxProblem           text that does not follow the grammar
    ├── CheckProblem            a program that parses and breaks a rule of the language
    ├── StratificationProblem   a cycle through negation or aggregation
    ├── LoadProblem             a file or a value that cannot be read or written
    ├── LimitReached            a limit on facts, rounds, seconds or memory
    ├── EvaluationProblem       an evaluation error in strict mode
    ├── StoreProblem            a store that cannot be opened, read or written
    └── UsageProblem            a call or an option that makes no sense

A `Diagnostic` has a stable code (`docs/diagnostics.md` lists them), says what is wrong and what to
do, and knows where. This module renders diagnostics as text; only the command line prints them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Severity = Literal["error", "warning", "hint"]

# Of a longer source line only the stretch around the marker is shown.
_WIDEST = 110


@dataclass(frozen=True)
class Source:
    """A named text that spans point into."""

    name: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        # Where each line starts, and where one behind the last would.
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both counted from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1."""
        if not 1 <= number < len(self._starts):
            return ""
        return self.text[self._starts[number - 1] : self._starts[number] - 1].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source: half-open character offsets."""

    source: Source
    start: int
    end: int

    def __repr__(self) -> str:
        """Show the place as a person would write it: file:line:column."""
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of the other."""
        return Span(self.source, self.start, other.end)

    @property
    def text(self) -> str:
        """The source text of this stretch."""
        return self.source.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a stable code, what is wrong, what to do about it, and where."""

    code: str
    message: str
    note: str = ""
    span: Span | None = None
    severity: Severity = "error"
    related: tuple[tuple[str, Span], ...] = ()

    def render(self) -> str:
        """Return the finding as text: place, source line with a marker, what is wrong, what to do."""
        place = f"{self.span!r}: " if self.span else ""
        parts = [f"{place}{self.severity} {self.code}: {self.message}"]
        if self.span:
            parts += _marked(self.span)
        for label, span in self.related:
            parts.append(f"{span!r}: {label}")
            parts += _marked(span)
        if self.note:
            parts.append(f"  = {self.note}")
        return "\n".join(parts)

    def to_dict(self) -> dict[str, object]:
        """Return the finding as plain values for JSON."""
        found: dict[str, object] = {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "note": self.note,
        }
        if self.span:
            line, column = self.span.source.position(self.span.start)
            found |= {"file": self.span.source.name, "line": line, "column": column}
        return found


def _marked(span: Span) -> list[str]:
    line, column = span.source.position(span.start)
    whole = span.source.line(line).replace("\t", " ")
    first = max(0, min(column - 1 - _WIDEST // 3, len(whole) - _WIDEST))
    text = whole[first : first + _WIDEST]
    if first:
        text = f"…{text[1:]}"
    if first + _WIDEST < len(whole):
        text = f"{text[:-1]}…"
    place = column - 1 - first
    width = max(1, min(span.end - span.start, len(text) - place))
    gutter = f"{line:>5} | "
    return [f"{gutter}{text}", " " * (len(gutter) + place) + "^" * width]


class ZodiacError(Exception):
    """Anything a user can cause. `diagnostics` holds every finding."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        """Take one finding or several."""
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__(found)

    def __str__(self) -> str:
        """Return the findings as text; thousands are found before anybody reads one."""
        return "\n".join(d.render() for d in self.diagnostics)


class SyntaxProblem(ZodiacError):
    """Text that does not follow the grammar."""


class CheckProblem(ZodiacError):
    """A program that parses and breaks a rule of the language."""


class StratificationProblem(ZodiacError):
    """A cycle of the rule dependency graph passes through negation or aggregation."""


class LoadProblem(ZodiacError):
    """A file or a value that cannot be read or written."""


class LimitReached(ZodiacError):
    """A limit on facts, rounds, seconds or memory ended the work."""


class EvaluationProblem(ZodiacError):
    """An evaluation error in strict mode."""


class StoreProblem(ZodiacError):
    """A store that cannot be opened, read or written."""


class UsageProblem(ZodiacError):
    """A call or an option that makes no sense."""


def counted(number: int, noun: str) -> str:
    """Return a number with what it counts: `1 argument`, `2 arguments`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def nearest(name: str, known: Sequence[str], likeness: float = 0.75) -> str | None:
    """Return the known name most like the given one, if one is close enough to suggest."""
    found = get_close_matches(name, known, n=1, cutoff=likeness)
    return found[0] if found else None
