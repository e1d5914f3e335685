"""Lines into statements: a change ends with a full stop, a query with its line unless more must follow.

A line that begins another statement ends a change that lacks its full stop, so that a mistake costs one
statement.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zodiacedge.language.parser import read_program
from zodiacedge.language.scanner import PREFIX_NAME, comments

if TYPE_CHECKING:
    from typing import Protocol

    class Lines(Protocol):
        """Where lines come from: a terminal or a pipe."""

        def __call__(self, *, more: bool) -> str | None:
            """Return the next line, of a statement that has begun or not; None at the end of the input."""


_LABEL = re.compile(r"-\s*[^\W\d][\w\-]*\s*$")
_CHANGE = ("+", "-", "@")
_UNFINISHED = (",", ":-", "?-", "(", "∧", "&")
# What may follow a body that could end here: its next conjunct, the rest of an expression, its full stop.
_CONTINUATION = re.compile(
    r"\s*(?:[,&∧)*/%=<>!^]|:[-=]|\.\s*(?:$|#|//)|[-+]\s*(?:[\d(?_]|[A-Z]\w*\b(?!\s*[(:]))|div\b)"
)


class Statements:
    """The statements of an input, one after the other."""

    def __init__(self, read: Lines) -> None:
        """Read from an input, line by line."""
        self._read = read
        self._kept: str | None = None

    def next(self) -> str | None:
        """Return the next statement, of one line or more; None at the end of the input.

        An empty line ends a statement in any case.
        """
        lines: list[str] = []
        while (line := self._line(more=bool(lines))) is not None:
            if lines and _begins_another(lines, line):
                self._kept = line
                break
            empty = not (line if lines else _without_comment(line)).strip()
            if not empty:
                lines.append(line.rstrip())
            if lines and (empty or _is_whole(lines)):
                break
        return "\n".join(lines) or None

    def _line(self, *, more: bool) -> str | None:
        line, self._kept = self._kept, None
        return self._read(more=more) if line is None else line


def _is_whole(lines: list[str]) -> bool:
    first, end = lines[0].lstrip(), _without_comment(lines[-1]).rstrip()
    if first.startswith(_CHANGE) and not (len(lines) == 1 and _LABEL.match(first)):
        return end.endswith(".")
    return not end.endswith(_UNFINISHED)


def _begins_another(lines: list[str], line: str) -> bool:
    """Whether a line cannot belong to the lines before it, which lack nothing but a full stop."""
    first = lines[0].lstrip()
    if not first.startswith(("+", "-")) or not _without_comment(line).strip() or _CONTINUATION.match(line):
        return False
    text = "\n".join([first[1:], *lines[1:], "."])
    # Whether prefixes are declared is for the statement to find out.
    prefixes = {prefix[:-1]: "" for prefix in PREFIX_NAME.findall(text)}
    return not read_program(text, prefixes=prefixes)[1]


def _without_comment(line: str) -> str:
    comment = next(comments(line), None)
    return line[: comment.start] if comment else line
