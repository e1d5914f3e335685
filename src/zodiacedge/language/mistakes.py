"""Findings for text that leaves the grammar: the unexpected token, and the probable intention.

The parser knows what it expected. Users have the habits of SQL, SPARQL, Prolog and Python, and
leave out full stops; a message that names the habit helps more than one that names the token.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, Span, nearest
from zodiacedge.language.ast import Variable
from zodiacedge.language.vocabulary import AGGREGATES, COMPARISONS, FUNCTIONS
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from zodiacedge.language.ast import Expression
    from zodiacedge.language.scanner import Scanner, Token

NEGATION_FORM = "write the opposite comparison, as != for =; or give what is negated a rule of its own"
COMP_FORM = "a comparison is COMP(e1, op, e2)"
BIND_FORM = "a binding is BIND(expression AS ?v)"
AGGREGATE_FORM = "an aggregate is AGGREGATE(body) ON ?g WITH op(?x) AS ?v"
FOLD_FORM = "a result is op(?x) AS ?v, and the AGGREGATE stands last in a body"

# Operators of other languages, and the equivalent here.
_OPERATORS = {"==": "=", "<>": "!=", "=<": "<=", "=>": ">="}
_ARROWS = ("<-", "<=", "->", "=>", ":=")
_SIGNS = {
    "'": "a string stands in double quotes",
    "`": "a string stands in double quotes",
    ";": "a disjunction is two rules with the same head",
    "|": "a disjunction is two rules with the same head",
    "$": "a variable is ?x",
    "\\": "negation is `not p(X)`",
    "%": "a comment starts with # or //",
    "≠": "write !=",
    "≤": "write <=",
    "≥": "write >=",
    "@": "a language follows its string directly",
    "^": "a datatype follows its string directly",
}
_STRAY = {
    "<": "an IRI ends with > and holds no spaces, quotes or braces",
    ":-": "a rule has a head before it; a query is `?- body .`",
}
# Words that are binary operators in other languages, longer ones first.
_WORDS = {
    "not in": "for one value write !=; for several, state a fact for each and write `not listed(X)`",
    "in": "for one value write =; for several, state a fact for each and write `listed(X)`",
    "is not": "write !=",
    "is": "write = to compare and := to bind",
    "between": "write two comparisons: low <= X, X <= high",
    "like": 'a test for a part of a text is contains(X, "part") = true',
    "mod": "write %",
    "div": "write div, in lower case",
}
_WORD = re.compile(rf"(?:{'|'.join(_WORDS).replace(' ', r'[ ]+')})\b(?!\()", re.IGNORECASE)
_NOT_A_NUMBER = re.compile(r"[0-9][\w.]*\w")
_BARE_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?")
_NO_DIGIT_BEFORE = re.compile(r"\.[0-9]+(?:[eE][+-]?[0-9]+)?(?!\w)")
_NO_DIGIT_AFTER = re.compile(r"(?<!\w)[0-9]+\.(?=[^\s\w])")
_SPARQL = re.compile(r"(?:SELECT|ASK|CONSTRUCT|DESCRIBE)\b(?=\s*[?*{$]|\s+[A-Z])", re.IGNORECASE)
_TRIPLE = "a triple `?s ex:p ?o` is written ex:p(?s, ?o), and `?s a ex:C` is ex:C(?s)"
_LABEL = re.compile(r"([^\W\d][\w\-]*)\s+(?:[^\W\d][\w\-.:]*|:[\w\-.:]+|<[^\s<>]*>)\(")


def unexpected(scanner: Scanner, token: Token, expected: str, note: str, code: str) -> Diagnostic:
    """Return the finding for a token that the grammar does not allow here."""
    token = scanner.as_operand(token)
    text = scanner.source.text
    span = Span(scanner.source, token.start, max(token.end, token.start + 1))
    if token.kind == "bad" and token.text == '"':
        return Diagnostic("L019", "a string that does not end", 'close it with " on the same line', span)
    if token.kind == "bad" and (moment := _bare_moment(text, token.start)):
        note = f'a moment is a string with its type: "{moment.group()}"^^xsd:dateTime'
        found = f"{moment.group()} is not a term"
        return Diagnostic(code, found, note, Span(scanner.source, *moment.span()))
    if token.kind == "bad" and (word := _NOT_A_NUMBER.match(text, token.start)):
        note = "a number is 5, 5.0 or 5e0, and a name does not start with a digit"
        return Diagnostic(code, f"{word.group()} is not a number", note, Span(scanner.source, *word.span()))
    if token.text == "." and (number := _number_with_bare_point(text, token.start)):
        note = "a number has a digit on each side of its point: 0.5, 5.0"
        return Diagnostic(
            code, f"{number.group()} is not a number", note, Span(scanner.source, *number.span())
        )
    pair = text[max(0, token.start - 1) : token.start + 1]
    if pair in _OPERATORS:
        both = Span(scanner.source, token.start - 1, token.start + 1)
        return Diagnostic("L009", f"{pair} is not an operator", f"write {_OPERATORS[pair]}", both)
    shown = token.text if token.kind == "end" else f"`{token.text}`"
    if token.kind in {"bad", "sign"}:
        note = _SIGNS.get(token.text[0], note)
    note = note or _STRAY.get(token.text, "")
    return Diagnostic(code, f"expected {expected}, found {shown}", note, span)


def _bare_moment(text: str, day: int) -> re.Match[str] | None:
    # The scanner takes the year and the month for numbers, and stops at the day.
    return _BARE_MOMENT.match(text, max(day - len("2026-01-"), 0))


def _number_with_bare_point(text: str, point: int) -> re.Match[str] | None:
    # A number without digits before or after its point.
    if before := _NO_DIGIT_BEFORE.match(text, point):
        return before
    start = point
    while start and text[start - 1] in "0123456789":
        start -= 1
    return _NO_DIGIT_AFTER.match(text, start)


def not_an_operator(scanner: Scanner, token: Token) -> Diagnostic | None:
    """Return the finding for a word that is an operator in other languages, or None."""
    word = _WORD.match(scanner.source.text, token.start)
    if not word:
        return None
    note = _WORDS[" ".join(word.group().lower().split())]
    return Diagnostic(
        "L009", f"`{word.group()}` is not an operator", note, Span(scanner.source, *word.span())
    )


def label_without_colon(scanner: Scanner, start: int) -> Diagnostic | None:
    """Return the finding for `name head(…)` at the start of a statement."""
    label = _LABEL.match(scanner.source.text, start)
    if not label:
        return None
    name = label.group(1)
    return Diagnostic(
        "L012",
        f"{name} alone is not an atom",
        f"as a label write `{name}:`; an atom has brackets",
        Span(scanner.source, *label.span(1)),
    )


def query_of_sparql(scanner: Scanner, start: int) -> Diagnostic | None:
    """Return the finding for a query that starts as those of SPARQL do, or None."""
    word = _SPARQL.match(scanner.source.text, start)
    if not word:
        return None
    note = f"a query is a body, its conjuncts separated by `,`; {_TRIPLE}"
    span = Span(scanner.source, *word.span())
    return Diagnostic("L001", f"{word.group()} is SPARQL, and this is no query of it", note, span)


def not_a_test(scanner: Scanner, token: Token, span: Span) -> Diagnostic:
    """Return the finding for an expression in place of a conjunct, in front of a token."""
    triple = scanner.as_operand(token).kind in {"name", "prefixed", "iri", "variable"}
    note = _TRIPLE if triple else "compare it: e1 op e2"
    return Diagnostic("L013", "an expression alone is not a test", note, span)


def behind_an_argument(token: Token) -> str:
    """Return the note for an argument that neither a comma nor a bracket follows."""
    if token.text in COMPARISONS:
        return "a comparison is a conjunct, not a value: write a rule for it and one for its opposite"
    return "arguments are separated by `,` and closed by `)`"


def behind_a_head(scanner: Scanner, token: Token) -> str:
    """Return the note for a head that neither `:-` nor a full stop follows."""
    if scanner.source.text.startswith(_ARROWS, token.start):
        return "write :- between the head and the body"
    return _full_stop(scanner, token) or "a rule is `head :- body .`, a fact is `head .`"


def behind_a_conjunct(scanner: Scanner, token: Token) -> str:
    """Return the note for a conjunct that neither a conjunction nor a full stop follows."""
    if token.text in COMPARISONS:
        return "a comparison has two sides"
    if token.text == ")":
        return "there is no `(` for it"
    if token.kind == "end":
        return "a statement ends with a full stop"
    starts_conjunct = scanner.as_operand(token).kind in {"name", "prefixed", "iri", "variable"}
    return _full_stop(scanner, token) or ("conjuncts are separated by `,`" if starts_conjunct else "")


def _full_stop(scanner: Scanner, token: Token) -> str:
    new_line = "\n" in scanner.source.text[scanner.last_end : token.start]
    return "does the statement before it lack its full stop?" if new_line and token.kind == "name" else ""


def not_an_atom(operand: Expression, span: Span, behind: str) -> Diagnostic:
    """Return the finding for a term in place of an atom; `behind` is the text of the next token."""
    shown = span.text
    message, note = f"{shown} alone is not an atom", f"give it arguments, {shown}(X), or write {shown}()"
    if behind == ":":
        note = f"a label is `{shown}:`, without white space before its colon"
    elif isinstance(operand, Variable) and (shown[0] == "?" or operand.anonymous):
        message, note = f"{shown} is a variable, not a predicate", "a predicate is a name"
    elif not isinstance(operand, Variable | IRI):
        message = f"{shown} is not a predicate"
        note = "a predicate is a name, without quotes, or an IRI in angle brackets"
    return Diagnostic("L012", message, note, span)


def not_a_function(name: str, span: Span) -> Diagnostic:
    """Return the finding for a call of an unknown function."""
    if name.upper() in AGGREGATES:
        return Diagnostic("L016", f"{name} is an aggregate, not a function", AGGREGATE_FORM, span)
    near = nearest(name.lower(), tuple(FUNCTIONS))
    note = f"a registered function is func:{name}(…); an atom stands neither in brackets nor in another atom"
    return Diagnostic("L016", f"{name} is not a function", f"did you mean {near}?" if near else note, span)
