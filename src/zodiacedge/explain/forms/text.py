"""An explanation as a tree of lines, plain or in colours.

The rules that it names follow, then remarks. Colours are ANSI sequences; whether a reader wants them is left
to the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.explain.forms.lines import last_of_its_level
from zodiacedge.explain.forms.outlines import outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from zodiacedge.explain.forms.lines import Outline, OutlineLine, Tone
    from zodiacedge.explain.forms.outlines import Explained

_COLOURS: dict[Tone, str] = {
    "rule": "\x1b[36m",
    "quiet": "\x1b[2m",
    "good": "\x1b[32m",
    "bad": "\x1b[31m",
}
_END = "\x1b[0m"


def to_text(answer: Explained, depth: int | None, *, colours: bool = False) -> str:
    """Return the tree, the texts of its rules, and remarks."""
    shown = outline(answer, depth)
    paint = _coloured if colours else _plain
    parts = ["\n".join(tree(shown.lines, paint)), "\n".join(_rules(shown, paint)), "\n".join(shown.notes)]
    return "\n\n".join(part for part in parts if part)


def tree(lines: Sequence[OutlineLine], paint: Callable[[str, Tone], str] | None = None) -> Iterator[str]:
    """Yield lines with the branches of a tree in front; an empty line before each further root."""
    paint = paint or _plain
    open_levels: list[bool] = []
    for number, (line, last) in enumerate(zip(lines, last_of_its_level(lines), strict=True)):
        if line.level == 0 and number:
            yield ""
        del open_levels[line.level :]
        branches = "".join("   " if closed else "│  " for closed in open_levels[1:])
        branch = ("└─ " if last else "├─ ") if line.level else ""
        open_levels.append(last)
        yield paint(branches + branch, "quiet") + _content(line, paint)


def _content(line: OutlineLine, paint: Callable[[str, Tone], str]) -> str:
    first, *rest = line.pieces
    number = ""
    if line.number:
        shown = f"  see [{line.number}]" if line.refers is not None else f" [{line.number}]"
        number = paint(shown, "quiet")
    return paint(*first) + number + "".join(paint(*piece) for piece in rest)


def _rules(shown: Outline, paint: Callable[[str, Tone], str]) -> Iterator[str]:
    for name, text in shown.rules:
        body = text.removeprefix(f"{name}: ")
        yield f"{paint(f'{name}:', 'rule')} {body}"


def _plain(text: str, tone: Tone) -> str:
    del tone
    return text


def _coloured(text: str, tone: Tone) -> str:
    return f"{_COLOURS[tone]}{text}{_END}" if text and tone in _COLOURS else text
