"""An explanation as Markdown: nested lists, then the rules as a block of code, to paste into a ticket."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zodiacedge.explain.forms.outlines import outline

if TYPE_CHECKING:
    from zodiacedge.explain.forms.lines import OutlineLine, Piece
    from zodiacedge.explain.forms.outlines import Explained

# At its start, a line of an edit has a sign, which would begin a list in the list.
_SIGN = re.compile(r"^([+-]) ")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_TICKS = re.compile(r"`+")


def to_markdown(answer: Explained, depth: int | None) -> str:
    """Return the lists, the texts of the rules, and remarks."""
    shown = outline(answer, depth)
    parts = ["\n".join(f"{'  ' * line.level}- {_content(line)}" for line in shown.lines)]
    if shown.rules:
        texts = "\n".join(
            text if text.startswith(f"{name}: ") else f"{name}: {text}" for name, text in shown.rules
        )
        longest = max(map(len, _TICKS.findall(texts)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append(f"{fence}text\n{texts}\n{fence}")
    parts += [_escaped(note) for note in shown.notes]
    return "\n\n".join(parts)


def _content(line: OutlineLine) -> str:
    first, *rest = line.pieces
    number = ""
    if line.number:
        number = f" see ({line.number})" if line.refers is not None else f" ({line.number})"
    text = " ".join((_piece(first) + number + "".join(map(_piece, rest))).split("  ")).strip()
    return _SIGN.sub(r"\\\1 ", text)


def _piece(piece: Piece) -> str:
    if piece.tone in {"code", "rule"} and piece.text:
        return _code(piece.text)
    return _escaped(piece.text)


def _code(text: str) -> str:
    """Return a span of code: more ticks around it than inside."""
    ticks = "`" * (max(map(len, _TICKS.findall(text)), default=0) + 1)
    space = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{ticks}{space}{text}{space}{ticks}".replace("\n", " ")


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
