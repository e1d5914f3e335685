"""Diagnostics as data, and the exceptions that carry them.

The exception tree::

    ZodiacError                 anything a user can cause; carries diagnostics
    ├── SyntaxProblem           text that does not follow the grammar
    ├── CheckProblem            a program that parses and breaks a rule of the language
    ├── StratificationProblem   a cycle through negation or aggregation
    ├── LoadProblem             a file or a value that cannot be read or written
    ├── LimitReached            a limit on facts, rounds, seconds or memory
    ├── EvaluationProblem       an evaluation error in strict mode
    ├── PackProblem             a pack that cannot be made, read, installed or removed
    ├── FleetProblem            a fleet of devices: keys, signatures, hubs, agents
    ├── StoreProblem            a store that cannot be opened, read or written
    │   └── StoreBusy           a store that another process writes to: try again
    └── UsageProblem            a call or an option that makes no sense

A `Diagnostic` has a stable code (`docs/diagnostics.md` lists them), a message, a note with the remedy and
a source span. This module renders diagnostics as text; only the command line prints them.
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

# Longer source lines are clipped to the text around the marker.
_MAX_WIDTH = 110


@dataclass(frozen=True)
class Source:
    """A named text that spans point into."""

    name: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        # The offset of each line, and the offset behind the last line.
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
    """A range of characters in a source: half-open offsets."""

    source: Source
    start: int
    end: int

    def __repr__(self) -> str:
        """Return the position as `file:line:column`."""
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: Span) -> Span:
        """Return the span from the start of this span to the end of another."""
        return Span(self.source, self.start, other.end)

    @property
    def text(self) -> str:
        """The source text of the span."""
        return self.source.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding: its stable code, the message, a note with the remedy, and its position."""

    code: str
    message: str
    note: str = ""
    span: Span | None = None
    severity: Severity = "error"
    related: tuple[tuple[str, Span], ...] = ()

    def render(self) -> str:
        """Return the finding as text: position, message, source line with a marker, note."""
        position = f"{self.span!r}: " if self.span else ""
        parts = [f"{position}{self.severity} {self.code}: {self.message}"]
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
        fields: dict[str, object] = {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "note": self.note,
        }
        if self.span:
            line, column = self.span.source.position(self.span.start)
            fields |= {"file": self.span.source.name, "line": line, "column": column}
        return fields


def _marked(span: Span) -> list[str]:
    line, column = span.source.position(span.start)
    full = span.source.line(line).replace("\t", " ")
    first = max(0, min(column - 1 - _MAX_WIDTH // 3, len(full) - _MAX_WIDTH))
    text = full[first : first + _MAX_WIDTH]
    if first:
        text = f"…{text[1:]}"
    if first + _MAX_WIDTH < len(full):
        text = f"{text[:-1]}…"
    offset = column - 1 - first
    width = max(1, min(span.end - span.start, len(text) - offset))
    gutter = f"{line:>5} | "
    return [f"{gutter}{text}", " " * (len(gutter) + offset) + "^" * width]


class ZodiacError(Exception):
    """An error that a user can cause. `diagnostics` holds every finding."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        """Store one or more findings."""
        findings = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = findings
        super().__init__(findings)

    def __str__(self) -> str:
        """Render the findings. They are rendered late: most are never printed."""
        return "\n".join(d.render() for d in self.diagnostics)


class SyntaxProblem(ZodiacError):
    """Text that does not follow the grammar."""


class CheckProblem(ZodiacError):
    """A program that parses and breaks a rule of the language."""


class StratificationProblem(ZodiacError):
    """A cycle of the rule dependency graph passes through negation or aggregation."""

    def __init__(
        self, diagnostics: Diagnostic | Iterable[Diagnostic], cycles: Iterable[tuple[str, ...]] = ()
    ) -> None:
        """Store the findings, and the keys of the rules of each cycle."""
        super().__init__(diagnostics)
        self.cycles = tuple(cycles)


class LoadProblem(ZodiacError):
    """A file or a value that cannot be read or written."""


class LimitReached(ZodiacError):
    """A limit on facts, rounds, seconds or memory ended the evaluation."""


class EvaluationProblem(ZodiacError):
    """An evaluation error in strict mode."""


class PackProblem(ZodiacError):
    """A pack that cannot be made, read, installed or removed."""


class FleetProblem(ZodiacError):
    """Something about a fleet of devices: keys, signatures, hubs, agents."""


class StoreProblem(ZodiacError):
    """A store that cannot be opened, read or written."""


class StoreBusy(StoreProblem):
    """A store that another process writes to: the same call may succeed later."""


class UsageProblem(ZodiacError):
    """A call or an option that makes no sense."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 argument`, `2 arguments`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def nearest(name: str, known: Sequence[str], cutoff: float = 0.75) -> str | None:
    """Return the known name most similar to a name, or None if none is similar enough."""
    matches = get_close_matches(name, known, n=1, cutoff=cutoff)
    return matches[0] if matches else None
