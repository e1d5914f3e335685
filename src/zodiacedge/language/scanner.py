"""Context-dependent scanner: text to tokens, one at a time.

There are two scanner modes because two characters are ambiguous: where an operand may start, `<` opens an
IRI and `-5` is a number; where an operator may stand, `<` compares and `-` subtracts. The parser chooses
the mode with each token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import Diagnostic, Source, Span, SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

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
# The slashes of `http://` are no comment: after a malformed IRI they would hide the end of the statement.
_SPACE = re.compile(r"(?:\s+|\#[^\n]*|(?<!:)//[^\n]*)*")
# Strings and IRIs are matched to skip them; a string without its second quote ends with the line.
_COMMENT = re.compile(rf'"(?:[^"\\\n\r]|\\[^\n\r])*"?|{_IRI}|(?P<comment>(?:\#|(?<!:)//)[^\n]*)')
PREFIX_NAME = re.compile(r"(?:[^\W\d_](?:[\w\-]|\.(?=[\w\-.]))*)?:")
# Behind a slash stands the label that a rule has in a pack.
LABEL = r"[^\W\d][\w\-]*(?:/[\w\-]+)?"
_LABEL = re.compile(rf"({LABEL}):(?=\s|$)")
_LANGUAGE = re.compile(r"@([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--[a-z]+)?)")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


class Token(NamedTuple):
    """A token: kind (`iri variable blank prefixed name number string sign end bad`), text and offsets."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Scanner:
    """Scanner of a source: one token at a time, in operand or operator mode."""

    source: Source
    position: int = 0
    last_end: int = 0
    _peeked: tuple[int, bool, Token] | None = None

    def skip_space(self) -> int:
        """Skip white space and comments; return the offset of the next token."""
        match = _SPACE.match(self.source.text, self.position)
        if match:
            self.position = match.end()
        return self.position

    def peek(self, *, operand: bool) -> Token:
        """Return the next token in one of the two modes, without consuming it."""
        if self._peeked and self._peeked[0] == self.position and self._peeked[1] == operand:
            return self._peeked[2]
        start = self.skip_space()
        text = self.source.text
        match = (_OPERAND if operand else _OPERATOR).match(text, start)
        if match:
            token = Token(match.lastgroup or "", match.group(), start, match.end())
        elif start >= len(text):
            token = Token("end", "the end of the text", start, start)
        else:
            token = Token("bad", text[start], start, start + 1)
        self._peeked = (start, operand, token)
        return token

    def as_operand(self, token: Token) -> Token:
        """Return the token at the offset of another, scanned in operand mode."""
        match = _OPERAND.match(self.source.text, token.start)
        return Token(match.lastgroup or "", match.group(), token.start, match.end()) if match else token

    def take(self, token: Token) -> Token:
        """Consume a token that was peeked."""
        self.position = self.last_end = token.end
        return token

    def directly_at(self, text: str) -> bool:
        """Whether a text follows directly, without white space."""
        return self.source.text.startswith(text, self.position)

    def label(self) -> Token | None:
        """Consume a label, `name:` followed by white space, if there is one."""
        return self._take_pattern(_LABEL, "label", group=1)

    def prefix_name(self) -> Token | None:
        """Consume the `ex:` of a prefix declaration."""
        return self._take_pattern(PREFIX_NAME, "prefix", group=0)

    def language(self) -> Token | None:
        """Consume the `@en` that directly follows a string."""
        match = _LANGUAGE.match(self.source.text, self.position)
        if not match:
            return None
        return self.take(Token("language", match.group(1), match.start(), match.end()))

    def _take_pattern(self, form: re.Pattern[str], kind: str, *, group: int) -> Token | None:
        start = self.skip_space()
        match = form.match(self.source.text, start)
        if not match:
            return None
        return self.take(Token(kind, match.group(group), start, match.end()))

    def span(self, start: int) -> Span:
        """Return the span from an offset to the end of the last consumed token."""
        return Span(self.source, start, max(self.last_end, start + 1))

    def skip_statement(self) -> None:
        """Skip the rest of a malformed statement, up to and including its full stop."""
        text = self.source.text
        if text.startswith("%", self.skip_space()):
            # A comment of Prolog: the next line is a statement.
            newline = text.find("\n", self.position)
            self.position = len(text) if newline < 0 else newline
            return
        while True:
            token = self.peek(operand=True)
            if token.kind == "end":
                return
            if token.kind == "bad" and token.text == '"':
                # It is unknown where an open string should end: continue with the next line.
                newline = text.find("\n", token.start)
                self.position = len(text) if newline < 0 else newline
                return
            self.take(token)
            if token.text == "." and (token.end >= len(text) or text[token.end] in " \t\r\n#/"):
                return


@dataclass(slots=True)
class RecordingScanner(Scanner):
    """A scanner that keeps the tokens of a text in order, for tools that need more than the syntax tree."""

    tokens: list[Token] = field(default_factory=list)

    def take(self, token: Token) -> Token:
        """Consume a token; those that the parser has gone back before are forgotten."""
        while self.tokens and self.tokens[-1].start >= token.start:
            self.tokens.pop()
        self.tokens.append(token)
        # A dataclass with slots is another class than the one that `super()` would mean.
        return Scanner.take(self, token)


def comments(text: str) -> Iterator[Token]:
    """Return the comments of a text, malformed or not, as tokens; strings and IRIs contain none."""
    for match in _COMMENT.finditer(text):
        if match.lastgroup:
            yield Token("comment", match.group(), match.start(), match.end())


def unescape(text: str, span: Span) -> str:
    """Replace the escapes of a string or an IRI by their characters."""
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        code = match.group(1)
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
