"""Formats rule text: one statement per line, canonical spacing, long bodies wrapped, all comments kept.

    label: head(X) :-
        a(X, Y),  # a comment at the end of a line stays behind its token
        not b(Y) .

The text is laid out again from its tokens and the comments between them: names, numbers and words stay as
they were written, and only white space changes. Of empty lines, one is left between statements and comments
where there were any. Formatting twice is formatting once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.errors import SyntaxProblem
from zodiacedge.language.parser import read_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIDTH = 100
_INDENT = "    "
_COMMENT = re.compile(r"(?:#|//)[^\n]*")
_OPERANDS = frozenset({"iri", "variable", "blank", "prefixed", "name", "number", "string", "language"})
_CONJUNCTIONS = frozenset({",", "&", "∧", "and"})
_OPERATOR_WORDS = frozenset({"and", "div"})
_RESERVED = frozenset({"and", "not", "as", "on", "with"})


@dataclass(frozen=True, slots=True)
class _Comment:
    text: str
    own_line: bool
    after_empty_line: bool


@dataclass(frozen=True, slots=True)
class _Piece:
    """A token and the comments before it."""

    kind: str
    text: str
    comments: tuple[_Comment, ...]
    after_empty_line: bool


def format_text(text: str, name: str = "<text>") -> str:
    """Return a program text in canonical layout, or raise with its syntax errors."""
    tokens, diagnostics = read_tokens(text, name)
    errors = [d for d in diagnostics if d.severity == "error"]
    if errors:
        raise SyntaxProblem(errors)
    pieces, end = [], 0
    for token in tokens:
        pieces.append(_piece(token.kind, text[token.start : token.end], text[end : token.start], at=end))
        end = token.end
    pieces.append(_piece("end", "", text[end:], at=end))
    lines: list[str] = []
    for statement in _statements(pieces):
        _put_before(lines, statement[0])
        lines += _laid_out(statement)
    return "".join(f"{line}\n" for line in lines)


def _piece(kind: str, text: str, gap: str, *, at: int) -> _Piece:
    comments, end = [], 0
    for match in _COMMENT.finditer(gap):
        before = gap[end : match.start()]
        own_line = at == 0 or "\n" in gap[: match.start()]
        comments.append(_Comment(match.group().rstrip(), own_line, before.count("\n") > 1))
        end = match.end()
    return _Piece(kind, text, tuple(comments), gap[end:].count("\n") > 1)


def _statements(pieces: Sequence[_Piece]) -> Iterator[Sequence[_Piece]]:
    """Divide at full stops, and behind a PREFIX, which has none; the end of the text is a statement too."""
    start = 0
    for n, piece in enumerate(pieces):
        is_declared = piece.kind == "iri" and n - start == 2 and pieces[n - 1].kind == "prefix"
        if (piece.kind == "sign" and piece.text == ".") or is_declared:
            yield pieces[start : n + 1]
            start = n + 1
    yield pieces[start:]


def _put_before(lines: list[str], first: _Piece) -> None:
    """Put the comments and the empty lines before a statement, or a comment behind the statement before."""
    for comment in first.comments:
        if not comment.own_line:
            lines[-1] += f"  {comment.text}"
            continue
        if comment.after_empty_line and lines:
            lines.append("")
        lines.append(comment.text)
    if first.after_empty_line and lines and first.kind != "end":
        lines.append("")


def _laid_out(statement: Sequence[_Piece]) -> list[str]:
    if statement[0].kind == "end":
        return []
    line = "".join(f"{_space(statement, n)}{piece.text}" for n, piece in enumerate(statement))
    if len(line) <= WIDTH and not any(piece.comments for piece in statement[1:]):
        return [line]
    return _wrapped(statement)


def _wrapped(statement: Sequence[_Piece]) -> list[str]:
    """Break after `:-`, after each conjunct, and around comments."""
    lines, line, depth, in_aggregate = [], "", 0, False
    for n, piece in enumerate(statement):
        for comment in piece.comments if n else ():
            if line:
                lines.append(line)
            line = ""
            if comment.own_line:
                lines.append(f"{_INDENT}{comment.text}")
            else:
                lines[-1] += f"  {comment.text}"
        if line:
            line += f"{_space(statement, n)}{piece.text}"
        else:
            line = f"{_INDENT if lines else ''}{piece.text}"
        if piece.kind == "sign":
            depth += (piece.text == "(") - (piece.text == ")")
        word = piece.text.lower()
        # The commas behind ON and WITH separate variables and folds.
        in_aggregate |= not depth and piece.kind == "name" and word in {"on", "with"}
        if not depth and not in_aggregate and (word == ":-" or word in _CONJUNCTIONS):
            lines.append(line)
            line = ""
    return [*lines, line] if line else lines


def _space(statement: Sequence[_Piece], n: int) -> str:
    """Return what stands between a token and the one before it."""
    if n == 0:
        return ""
    last, piece = statement[n - 1], statement[n]
    if piece.kind == "sign":
        if piece.text in {",", ")", "^^"}:
            return ""
        if piece.text == "(":
            return (
                ""
                if _is_operand(statement, n - 1) or last.text == "(" or _is_prefix_sign(statement, n - 1)
                else " "
            )
    if piece.kind == "language" or last.text in {"(", "@", "^^"}:
        return ""
    # The sign of a number would become part of it.
    return "" if _is_prefix_sign(statement, n - 1) and piece.kind != "number" else " "


def _is_prefix_sign(statement: Sequence[_Piece], n: int) -> bool:
    """Whether a token is a negation, or a sign without an operand on its left."""
    piece = statement[n]
    if piece.kind != "sign":
        return False
    return piece.text in {"!", "¬"} or (piece.text == "-" and not (n and _is_operand(statement, n - 1)))


def _is_operand(statement: Sequence[_Piece], n: int) -> bool:
    """Whether a token ends an operand or names an application, and is no word between operands."""
    piece = statement[n]
    if piece.kind not in _OPERANDS:
        return piece.kind == "sign" and piece.text == ")"
    word = piece.text.lower()
    if piece.kind != "name" or word not in _RESERVED | _OPERATOR_WORDS:
        return True
    return word not in _RESERVED and not (n and _is_operand(statement, n - 1))
