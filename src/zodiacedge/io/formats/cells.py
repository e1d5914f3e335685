r"""Terms as cells of CSV, TSV, JSON lines and string columns: reading and writing.

A cell is one of these, and any other text is a plain string, spaces included:

    5  -7  +05                      xsd:integer
    1.50                            xsd:decimal
    5e0  2.5E-3                     xsd:double
    true  false                     xsd:boolean
    <http://example.org/a>  <wt1>   an IRI
    _:b1                            a blank node
    "text"                          a string, with the escapes of Turtle
    "text"@en                       a string with a language
    "5"^^xsd:byte  "x"^^<iri>       a literal with a datatype

Similar texts are plain strings too: `"abc`, `"a"b`, `<a b>`, `.5`, `5.`, `1,5`. Writing is the exact
inverse: a string is quoted only if it would be read as another term. CSV quoting is left to `tabular`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zodiacedge.io.problems import problem
from zodiacedge.language.printer import format_term
from zodiacedge.terms import (
    IRI,
    RDF_LANGSTRING,
    XSD,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    literal,
    string,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# Lexical forms that the RDF writers use too.
IRI_FORM = re.compile(r'[^\x00-\x20<>"{}|^`\\\ud800-\udfff]*')
_LETTERS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff_0-9"
)
_INSIDE = rf"{_LETTERS}\-\u00b7\u0300-\u036f\u203f\u2040"
LABEL_FORM = re.compile(rf"[{_LETTERS}](?:[{_INSIDE}.]*[{_INSIDE}])?")
LANGUAGE_FORM = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")

_CELL = re.compile(
    rf"""(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | <(?P<iri>{IRI_FORM.pattern})>
    | _:(?P<label>{LABEL_FORM.pattern})
    | "(?P<text>(?:[^"\\\n\r]|\\.)*+)"
      (?:@(?P<language>{LANGUAGE_FORM.pattern})
        |\^\^(?:<(?P<datatype>{IRI_FORM.pattern})>|xsd:(?P<local>[A-Za-z]+)))?
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Other texts are plain strings, whatever follows.
_FIRST_CHARACTERS = frozenset('0123456789+-<_"')
_BARE_TYPES = frozenset({XSD_INTEGER, XSD_DECIMAL, XSD_DOUBLE, XSD_BOOLEAN})
_XSD_NAME = re.compile(re.escape(XSD) + r"([A-Za-z]+)")


def read_cell(text: str) -> Term:
    """Return the term of a cell."""
    if text in {"true", "false"}:
        return Literal(text, XSD_BOOLEAN)
    if text[:1] not in _FIRST_CHARACTERS or not text:
        return Literal(text)
    parsed = _CELL.fullmatch(text)
    if not parsed:
        return Literal(text)
    match parsed.lastgroup:
        case "number":
            return read_number(text)
        case "iri":
            return IRI(text[1:-1])
        case "label":
            return BlankNode(text[2:])
        case _:
            return _quoted(parsed, text)


def read_number(text: str) -> Literal:
    """Return the literal of a number: integer, decimal or, with an exponent, double."""
    if "e" in text or "E" in text:
        return literal(text, XSD_DOUBLE)
    return literal(text, XSD_DECIMAL if "." in text else XSD_INTEGER)


def write_cell(term: Term) -> str:
    """Return the cell of a term: the inverse of `read_cell`."""
    match term:
        case IRI(value=value):
            return f"<{checked_iri(value)}>"
        case BlankNode(label=label):
            return f"_:{checked_label(label)}"
        case Literal(lexical=lexical, datatype=datatype):
            if datatype == XSD_STRING:
                plain = lexical[:1] not in _FIRST_CHARACTERS and lexical not in {"true", "false"}
                return lexical if plain or read_cell(lexical) == term else quote(lexical)
            if datatype in _BARE_TYPES and read_cell(lexical) == term:
                return lexical
            return quoted_literal(term)


def plain_cell(term: Term, prefixes: Mapping[str, str]) -> str:
    """Return a term for people and spreadsheets: no brackets, quotes or datatypes. It cannot be read back."""
    match term:
        case IRI(value=value):
            return format_term(term, prefixes).strip("<>") if ":" in value else value
        case BlankNode(label=label):
            return f"_:{label}"
        case Literal(lexical=lexical):
            number = value_of(term)
            return repr(number) if isinstance(number, float) else lexical


def quoted_literal(term: Literal, *, short: bool = True) -> str:
    """Return a quoted literal with its tag or datatype; `short` abbreviates XSD datatypes to `xsd:`."""
    if term.datatype == RDF_LANGSTRING and term.language:
        if not LANGUAGE_FORM.fullmatch(term.language):
            raise problem("I015", f"{term.language!r} is not a language tag", "write it like en or de-ch")
        return f"{quote(term.lexical)}@{term.language}"
    if term.datatype == XSD_STRING:
        return quote(term.lexical)
    local = _XSD_NAME.fullmatch(term.datatype) if short else None
    name = f"xsd:{local.group(1)}" if local else f"<{checked_iri(term.datatype)}>"
    return f"{quote(term.lexical)}^^{name}"


def quote(text: str) -> str:
    """Return a quoted text on one line, with the escapes of N-Triples and Turtle."""
    return f'"{_SPECIAL.sub(_escape, text)}"'


def checked_iri(value: str) -> str:
    """Return an IRI's text; raise if it cannot be written."""
    if not IRI_FORM.fullmatch(value):
        raise problem("I015", f"{value!r} is not an IRI", "percent-encode the character (a space is %20)")
    return value


def checked_label(label: str) -> str:
    """Return a blank node's label; raise if it cannot be written."""
    if not LABEL_FORM.fullmatch(label):
        raise problem(
            "I015",
            f"a blank node cannot be written with the label {label!r}",
            "a label has letters, digits, _ and -, and dots inside",
        )
    return label


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


def _quoted(match: re.Match[str], whole: str) -> Literal:
    text = unescape(match["text"])
    if text is None:
        return Literal(whole)
    if match["language"]:
        return string(text, match["language"])
    if match["local"]:
        return literal(text, XSD + match["local"])
    return literal(text, match["datatype"]) if match["datatype"] is not None else Literal(text)


def unescape(text: str) -> str | None:
    """Replace escapes by their characters; return None if an escape is invalid."""
    if "\\" not in text:
        return text
    parts: list[str] = []
    end = 0
    for match in _ESCAPE.finditer(text):
        code = match.group(1)
        number = int(code[1:], 16) if len(code) > 1 else -1
        if len(code) > 1 and number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
            character = chr(number)
        elif code in _ESCAPED:
            character = _ESCAPED[code]
        else:
            return None
        parts += (text[end : match.start()], character)
        end = match.end()
    return "".join(parts) + text[end:]
