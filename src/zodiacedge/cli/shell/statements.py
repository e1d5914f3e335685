"""Lines into statements: a change ends with a full stop, a query with its line unless more must follow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zodiacedge.language.scanner import comments

if TYPE_CHECKING:
    from typing import Protocol

    class Lines(Protocol):
        """Where lines come from: a terminal or a pipe."""

        def __call__(self, *, more: bool) -> str | None:
            """Return the next line, of a statement that has begun or not; None at the end of the input."""


_LABEL = re.compile(r"-\s*[^\W\d][\w\-]*\s*$")
_CHANGE = ("+", "-", "@")
_UNFINISHED = (",", ":-", "?-", "(", "∧", "&")


def next_statement(read: Lines) -> str | None:
    """Return the next statement, of one line or more; None at the end of the input.

    An empty line ends a statement in any case.
    """
    lines: list[str] = []
    while (line := read(more=bool(lines))) is not None:
        empty = not (line if lines else _without_comment(line)).strip()
        if not empty:
            lines.append(line.rstrip())
        if lines and (empty or _is_whole(lines)):
            break
    return "\n".join(lines) or None


def _is_whole(lines: list[str]) -> bool:
    first, end = lines[0].lstrip(), _without_comment(lines[-1]).rstrip()
    if first.startswith(_CHANGE) and not (len(lines) == 1 and _LABEL.match(first)):
        return end.endswith(".")
    return not end.endswith(_UNFINISHED)


def _without_comment(line: str) -> str:
    comment = next(comments(line), None)
    return line[: comment.start] if comment else line
