r"""The regular expressions of XPath, which SPARQL uses, as patterns of Python's `re`.

The syntax is that of XML Schema with XPath's additions: anchors, reluctant quantifiers, back-references,
groups without capture, and the flags `s m i x q`. A construct that means something else to Python (`\w`, `$`,
`[a-z-[aeiou]]`) is translated; a construct that XPath does not have (`\b`, look-around) is refused. Unicode
blocks (`\p{IsGreek}`) are refused too: Python has no table of them.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache, lru_cache
from itertools import groupby

from zodiacedge.util.linear_matching import Expression

Ranges = tuple[tuple[int, int], ...]

_FLAGS = {"s": re.DOTALL, "i": re.IGNORECASE, "m": 0, "x": 0, "q": 0}
_SPACES = " \t\n\r"
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = frozenset(r"\|.?*+(){}-[]^$")
_QUANTIFIER = re.compile(r"[?*+]\??|\{[0-9]+(,[0-9]*)?\}\??")
_CATEGORY = re.compile(r"\{([A-Z][a-z]?)\}")
_DIGITS = re.compile("[0-9]+")
_WORDS_EXCLUDE = ("P", "Z", "C")
_START, _END = r"(?:\A)", r"(?:\Z)"
# Behind a line feed that is not the last character, and before any line feed.
_LINE_START, _LINE_END = r"(?:\A|(?<=\n)(?!\Z))", r"(?=\n|\Z)"
# The characters that may start an XML name, and those that may follow.
_NAME_START = (
    ":A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = _NAME_START + "--.0-9\u00b7\u0300-\u036f\u203f-\u2040"


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: str) -> Expression:
    """Return the compiled form of a regular expression, or raise `ValueError` if XPath does not allow it."""
    if not set(flags) <= set(_FLAGS):
        raise ValueError(f"the flags of a regular expression are s m i x q, not {flags!r}")
    options = 0
    for flag in flags:
        options |= _FLAGS[flag]
    try:
        if "q" in flags:
            return Expression(re.escape(pattern), options)
        spaced = _without_spaces(pattern) if "x" in flags else pattern
        return Expression(_Translation(spaced, lines="m" in flags).result(), options)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"{pattern!r} is not a regular expression: {problem}") from None


class _Translation:
    """A translation from the left to the right, as far as position `_at`."""

    def __init__(self, pattern: str, *, lines: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._anchors = {"^": _LINE_START, "$": _LINE_END} if lines else {"^": _START, "$": _END}
        self._groups = 0
        self._open: list[int] = []
        self._closed: set[int] = set()

    def result(self) -> str:
        """Return the pattern for Python."""
        translated: list[str] = []
        repeatable = False
        while self._at < len(self._pattern):
            if quantifier := _QUANTIFIER.match(self._pattern, self._at):
                if not repeatable:
                    raise re.error("nothing to repeat", self._pattern, self._at)
                self._at = quantifier.end()
                translated.append(quantifier.group())
                repeatable = False
                continue
            character = self._next()
            translated.append(self._piece(character))
            repeatable = character not in "(|"
        if self._open:
            raise self._refused("a group is not closed")
        return "".join(translated)

    def _piece(self, character: str) -> str:
        match character:
            case "(":
                return self._group()
            case ")":
                return self._group_end()
            case "[":
                return self._class()
            case "^" | "$":
                return self._anchors[character]
            case "." | "|":
                return character
            case "\\" if digits := _DIGITS.match(self._pattern, self._at):
                return self._back_reference(digits.group())
            case "\\":
                return f"[{_in_class(self._escape())}]"
            case "]" | "{" | "}":
                raise self._refused(f"{character} needs a backslash")
            case _:
                return re.escape(character)

    def _group(self) -> str:
        captures = not self._sees("?")
        if captures:
            self._groups += 1
        elif not self._sees("?:"):
            raise self._refused("groups are (…) and (?:…)")
        else:
            self._at += 2
        self._open.append(self._groups if captures else 0)
        return "(" if captures else "(?:"

    def _group_end(self) -> str:
        if not self._open:
            raise self._refused("a group is not open")
        self._closed.add(self._open.pop())
        return ")"

    def _back_reference(self, digits: str) -> str:
        # As many digits as make the number of a group; the rest are characters.
        while len(digits) > 1 and int(digits) > self._groups:
            digits = digits[:-1]
        self._at += len(digits)
        number = int(digits)
        if number == 0 or number not in self._closed:
            raise self._refused(f"there is no group {number} before it")
        # A group without a match matches the empty string.
        return rf"(?({number})\{number}|)"

    def _class(self) -> str:
        sign = ""
        if self._sees("^"):
            self._at += 1
            sign = "^"
        first = self._at
        members = ""
        excluded = ""
        while (character := self._next()) != "]" or self._at == first + 1:
            if character == "-" and self._sees("[") and members:
                self._at += 1
                excluded = self._class()
                if not self._sees("]"):
                    raise self._refused("a subtraction ends a class")
                continue
            if character in "[]" or (character == "-" and self._at > first + 1 and not self._sees("]")):
                raise self._refused(f"{character} needs a backslash")
            members += self._members(character)
        positive = f"[{sign}{members}]"
        return f"(?:(?!{excluded}){positive})" if excluded else positive

    def _members(self, character: str) -> str:
        """Return a character, a range or an escape of a class."""
        low = self._escape() if character == "\\" else _one(character)
        rest = self._pattern[self._at : self._at + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] in "[]":
            return _in_class(low)
        self._at += 1
        character = self._next()
        high = self._escape() if character == "\\" else _one(character)
        if not _is_character(low) or not _is_character(high) or low > high:
            raise self._refused("a range is from a character to a later one")
        return _in_class(((low[0][0], high[0][1]),))

    def _escape(self) -> Ranges:
        """Return the characters of an escape."""
        letter = self._next()
        if letter in _CONTROLS:
            return _one(_CONTROLS[letter])
        if letter in _ESCAPED:
            return _one(letter)
        if letter in "pP":
            category = _CATEGORY.match(self._pattern, self._at)
            if not category or category[1] not in _categories():
                raise self._refused("unknown category of characters")
            self._at = category.end()
            ranges = _categories()[category[1]]
            return ranges if letter == "p" else _complement(ranges)
        if letter in "sSdDwWiIcC":
            ranges = _named(letter.lower())
            return ranges if letter.islower() else _complement(ranges)
        raise self._refused(f"\\{letter} is not an escape")

    def _sees(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise self._refused("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _refused(self, reason: str) -> re.error:
        return re.error(reason, self._pattern, self._at)


def _without_spaces(pattern: str) -> str:
    """Return a pattern without white space, which stays inside classes."""
    kept: list[str] = []
    depth = 0
    escaped = False
    for character in pattern:
        if not escaped and character == "[":
            depth += 1
        elif not escaped and character == "]":
            depth -= 1
        if depth > 0 or character not in _SPACES:
            kept.append(character)
            escaped = character == "\\" and not escaped
    return "".join(kept)


def _one(character: str) -> Ranges:
    return ((ord(character), ord(character)),)


def _is_character(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _in_class(ranges: Ranges) -> str:
    return "".join(
        re.escape(chr(low)) if low == high else f"{re.escape(chr(low))}-{re.escape(chr(high))}"
        for low, high in ranges
    )


def _complement(ranges: Ranges) -> Ranges:
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if start < low:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    if start <= sys.maxunicode:
        gaps.append((start, sys.maxunicode))
    return tuple(gaps)


@cache
def _named(letter: str) -> Ranges:
    match letter:
        case "s":
            return tuple((ord(space), ord(space)) for space in _SPACES)
        case "d":
            return _categories()["Nd"]
        case "w":
            excluded = (pair for name in _WORDS_EXCLUDE for pair in _categories()[name])
            return _complement(tuple(excluded))
        case _:
            pairs = re.findall(r"(.)-(.)|(.)", _NAME_START if letter == "i" else _NAME, re.DOTALL)
            return tuple((ord(low or alone), ord(high or alone)) for low, high, alone in pairs)


@cache
def _categories() -> dict[str, Ranges]:
    """Return the characters of every general category of Unicode, and of every group of categories."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for name, run in groupby(range(sys.maxunicode + 1), lambda code: unicodedata.category(chr(code))):
        codes = list(run)
        for category in (name, name[0]):
            ranges.setdefault(category, []).append((codes[0], codes[-1]))
    return {name: tuple(pairs) for name, pairs in ranges.items()}
