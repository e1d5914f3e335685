"""Characters to tokens, on demand and in context.

Two readings exist because two characters mean two things: where an operand may start, `<` opens an
IRI and `-5` is a number; where an operator may stand, `<` compares and `-` subtracts. The parser
knows which place it is at and asks for one reading or the other. What tokens mean is the parser's
business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from zodiacedge.errors import Diagnostic, Source, Span, SyntaxProblem

_NAME = r"[^\W\d]\w*"
_LOCAL = r"(?:[\w%]|:)(?:[\w\-%:]|\.(?=[\w\-%:.]))*"
_IRI = r'<(?:[^\x00-\x20<>"{}|^`\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>'
_DIGITS = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?!\w)"

_OPERAND = re.compile(
    rf"""(?P<iri>{_IRI})
    | (?P<variable>\?\w+)
    | (?P<blank>_:\w(?:[\w\-]|\.(?=[\w\-.]))*)
    | (?P<prefixed>(?:[^\W\d_](?:[\w\-]|\.(?=[\w\-.]))*)?:{_LOCAL})
    | (?P<name>{_NAME})
    | (?P<number>[+-]?{_DIGITS})
    | (?P<string>"(?:[^"\\\n\r]|\\[^\n\r])*")
    | (?P<sign>:-|\?-|:=|!=|<=|>=|\*\*|[-(),.!¬&∧=<>+*/%@:])
    """,
    re.VERBOSE,
)
_OPERATOR = re.compile(rf"(?P<sign>:-|\?-|:=|!=|<=|>=|\*\*|\^\^|[-(),.!¬&∧=<>+*/%@:])|(?P<name>{_NAME})")
# The slashes of `http://` are no comment: after a broken IRI they would hide the end of the statement.
_SPACE = re.compile(r"(?:\s+|\#[^\n]*|(?<!:)//[^\n]*)*")
_PREFIX_NAME = re.compile(r"(?:[^\W\d_](?:[\w\-]|\.(?=[\w\-.]))*)?:")
_LABEL = re.compile(r"([^\W\d][\w\-]*):(?=\s|$)")
_LANGUAGE = re.compile(r"@([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--[a-z]+)?)")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


class Token(NamedTuple):
    """A kind (`iri variable blank prefixed name number string sign end`), its text, and where."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Scanner:
    """Reads tokens from a source, one at a time, in the reading asked for."""

    source: Source
    position: int = 0
    last_end: int = 0
    _peeked: tuple[int, bool, Token] | None = None

    def skip_space(self) -> int:
        """Pass over white space and comments; return where the next token starts."""
        found = _SPACE.match(self.source.text, self.position)
        if found:
            self.position = found.end()
        return self.position

    def peek(self, *, operand: bool) -> Token:
        """Return the next token in the reading asked for, without moving."""
        if self._peeked and self._peeked[0] == self.position and self._peeked[1] == operand:
            return self._peeked[2]
        start = self.skip_space()
        text = self.source.text
        found = (_OPERAND if operand else _OPERATOR).match(text, start)
        if found:
            token = Token(found.lastgroup or "", found.group(), start, found.end())
        elif start >= len(text):
            token = Token("end", "the end of the text", start, start)
        else:
            token = Token("bad", text[start], start, start + 1)
        self._peeked = (start, operand, token)
        return token

    def as_operand(self, token: Token) -> Token:
        """Return what stands at a token's place in the reading that knows strings, variables and numbers."""
        found = _OPERAND.match(self.source.text, token.start)
        return Token(found.lastgroup or "", found.group(), token.start, found.end()) if found else token

    def take(self, token: Token) -> Token:
        """Move behind a token that was peeked."""
        self.position = self.last_end = token.end
        return token

    def directly_at(self, text: str) -> bool:
        """Whether the given text stands right here, with no white space before it."""
        return self.source.text.startswith(text, self.position)

    def label(self) -> Token | None:
        """Take `name:` and the white space behind it, if that is what stands here."""
        return self._special(_LABEL, "label", group=1)

    def prefix_name(self) -> Token | None:
        """Take the `ex:` of a prefix declaration."""
        return self._special(_PREFIX_NAME, "prefix", group=0)

    def language(self) -> Token | None:
        """Take the `@en` that directly follows a string."""
        found = _LANGUAGE.match(self.source.text, self.position)
        if not found:
            return None
        return self.take(Token("language", found.group(1), found.start(), found.end()))

    def _special(self, form: re.Pattern[str], kind: str, *, group: int) -> Token | None:
        start = self.skip_space()
        found = form.match(self.source.text, start)
        if not found:
            return None
        return self.take(Token(kind, found.group(group), start, found.end()))

    def span(self, start: int) -> Span:
        """Return the span from an offset to the end of the last token taken."""
        return Span(self.source, start, max(self.last_end, start + 1))

    def to_statement_end(self) -> None:
        """Pass over the rest of a broken statement: behind the next `.` that ends one."""
        text = self.source.text
        while True:
            token = self.peek(operand=True)
            if token.kind == "end":
                return
            if token.kind == "bad" and token.text == '"':
                # Nobody knows where an open string was meant to end: go on with the next line.
                newline = text.find("\n", token.start)
                self.position = len(text) if newline < 0 else newline
                return
            self.take(token)
            if token.text == "." and (token.end >= len(text) or text[token.end] in " \t\r\n#/"):
                return


def unescape(text: str, span: Span) -> str:
    """Replace the escapes of a string or an IRI by the characters they stand for."""
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] in "uU" and len(code) > 1:
            number = int(code[1:], 16)
            if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
                return chr(number)
        elif code in _ESCAPES:
            return _ESCAPES[code]
        raise SyntaxProblem(
            Diagnostic(
                "L002",
                f"\\{code} is not an escape",
                r"write \t \b \n \r \f \" \' \\ \uXXXX or \UXXXXXXXX",
                span,
            )
        )

    return _ESCAPE.sub(character, text)
