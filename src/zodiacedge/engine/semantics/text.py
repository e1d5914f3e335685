"""Functions on text, with the semantics of the SPARQL 1.1 functions of the same names, on single terms."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.language.printer import format_term
from zodiacedge.terms import (
    RDF_LANGSTRING,
    XSD_INTEGER,
    XSD_STRING,
    Literal,
    Term,
    boolean,
    double,
    integer,
    is_number,
    literal,
    string,
    value_of,
)
from zodiacedge.util.regular_expressions import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def _text(term: Term) -> Literal:
    if isinstance(term, Literal) and term.datatype in {XSD_STRING, RDF_LANGSTRING}:
        return term
    raise NoValue(f"{format_term(term)} is not a text")


def _compatible(text: Literal, term: Term) -> str:
    # SPARQL's argument compatibility: a plain string, or a text in the same language.
    argument = _text(term)
    if argument.language in {"", text.language}:
        return argument.lexical
    raise NoValue(f"{format_term(argument)} is in another language than {format_term(text)}")


def _rounded(term: Term) -> int:
    value = value_of(term)
    if is_number(term) and isinstance(value, int | float):
        return math.floor(value + 0.5)
    raise NoValue(f"{format_term(term)} is not a number")


def _concat(*terms: Term) -> Literal:
    texts = [_text(t) for t in terms]
    languages = {t.language for t in texts}
    return string("".join(t.lexical for t in texts), languages.pop() if len(languages) == 1 else "")


def _substr(term: Term, start: Term, length: Term | None = None) -> Literal:
    text = _text(term)
    first = _rounded(start)
    end = len(text.lexical) + 1 if length is None else first + _rounded(length)
    return string(text.lexical[max(first, 1) - 1 : max(end, 1) - 1], text.language)


def _replace(term: Term, old: Term, new: Term) -> Literal:
    text = _text(term)
    pattern = _compatible(text, old)
    if not pattern:
        raise NoValue("replace needs something to look for")
    return string(text.lexical.replace(pattern, _compatible(text, new)), text.language)


def _before(term: Term, part: Term) -> Literal:
    text = _text(term)
    before, found, _ = _split(text, part)
    return string(before, text.language) if found else string("")


def _after(term: Term, part: Term) -> Literal:
    text = _text(term)
    _, found, after = _split(text, part)
    return string(after, text.language) if found else string("")


def _split(text: Literal, part: Term) -> tuple[str, bool, str]:
    """Return a text before and after the first occurrence of a part, and whether there is one."""
    separator = _compatible(text, part)
    if not separator:
        return "", True, text.lexical
    before, found, after = text.lexical.partition(separator)
    return before, bool(found), after


def _regex(term: Term, pattern: Term, flags: Term | None = None) -> Literal:
    text = _text(term)
    try:
        form = compiled(_plain(pattern), _plain(flags) if flags else "")
    except ValueError as problem:
        raise NoValue(str(problem)) from None
    return boolean(form.matches(text.lexical))


def _plain(term: Term) -> str:
    if isinstance(term, Literal) and term.datatype == XSD_STRING:
        return term.lexical
    raise NoValue(f"{format_term(term)} is not a plain string")


def _num(term: Term) -> Literal:
    if is_number(term):
        value = value_of(term)
        return double(value) if isinstance(value, float) else integer(int(str(value)))
    text = _text(term).lexical
    if not _NUMBER.fullmatch(text):
        raise NoValue(f"{format_term(term)} does not read as a number")
    if re.fullmatch(r"[+-]?[0-9]+", text):
        result = literal(text, XSD_INTEGER)
        if value_of(result) is None:
            raise NoValue("an integer beyond 64 bits")
        return result
    number = float(text)
    if not math.isfinite(number):
        raise NoValue("not a finite number")
    return double(number)


def _test(holds: Callable[[str, str], bool]) -> Callable[[Term, Term], Literal]:
    def call(term: Term, part: Term) -> Literal:
        text = _text(term)
        return boolean(holds(text.lexical, _compatible(text, part)))

    return call


def _mapped(change: Callable[[str], str]) -> Callable[[Term], Literal]:
    def call(term: Term) -> Literal:
        text = _text(term)
        return string(change(text.lexical), text.language)

    return call


TEXT_FUNCTIONS: dict[str, Callable[..., Literal]] = {
    "concat": _concat,
    "strlen": lambda term: integer(len(_text(term).lexical)),
    "substr": _substr,
    "lower": _mapped(str.lower),
    "upper": _mapped(str.upper),
    "contains": _test(lambda text, part: part in text),
    "startswith": _test(str.startswith),
    "endswith": _test(str.endswith),
    "replace": _replace,
    "strbefore": _before,
    "strafter": _after,
    "regex": _regex,
    "num": _num,
}
