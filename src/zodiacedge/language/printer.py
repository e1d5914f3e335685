"""Syntax tree to text; parsing the text returns the same tree."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from zodiacedge.language.ast import (
    ANONYMOUS,
    Aggregate,
    Argument,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Fact,
    Negation,
    Now,
    Query,
    Rule,
    Unary,
    Variable,
    variables,
)
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES, FUNCTION_PREFIX, NOW, RESERVED, UNITS
from zodiacedge.terms import (
    IRI,
    RDF_LANGSTRING,
    RDF_TYPE,
    XSD_BOOLEAN,
    XSD_DAY_TIME_DURATION,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    from_python,
    microseconds,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.errors import Diagnostic

_NAME = re.compile(r"[^\W\d]\w*")
_CONSTANT = re.compile(r"[^\W\d_A-Z]\w*")
_LOCAL = re.compile(r"[^\W\d]\w*")
_BARE_VARIABLE = re.compile(r"(?:[A-Z]|_[A-Za-z])\w*")
_BARE_NUMBER = {
    XSD_INTEGER: re.compile(r"[+-]?[0-9]+"),
    XSD_DECIMAL: re.compile(r"[+-]?[0-9]+\.[0-9]+"),
    XSD_DOUBLE: re.compile(r"[+-]?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+"),
}
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|<[^<>"\s]*>')
_STRING_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)
_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "div": 2, "**": 4}
_MINUS_LEVEL = 3
_PRIMARY_LEVEL = 5


def format_node(node: object) -> str:
    """Return a fact, an atom, a rule or a query; a fact and an atom without a full stop."""
    match node:
        case Rule():
            return format_rule(node)
        case Query():
            return format_query(node)
        case Fact():
            # A fact of values of Python is printed as it is added.
            return format_atom(Fact(node.relation, tuple(map(_term, node.args))))
        case Atom():
            return format_atom(node)
        case _:
            raise TypeError(node)


def _term(argument: object) -> Term:
    return argument if isinstance(argument, IRI | BlankNode | Literal) else from_python(argument)


def format_rule(rule: Rule, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return `label: head :- body .`, with windows as the author wrote them."""
    rule = replace(rule.source, label=rule.label, source=None) if rule.source else rule
    label = f"{rule.label}: " if rule.label else ""
    return f"{label}{format_atom(rule.head, prefixes)} :- {format_body(rule.body, prefixes)} ."


def format_query(query: Query, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return `ans(columns) :- body .`, with the head's own name if there is a head."""
    columns = ", ".join(format_argument(c, prefixes) for c in query.columns)
    name = format_predicate(query.head.predicate.name, prefixes) if query.head else "ans"
    return f"{name}({columns}) :- {format_body(query.body, prefixes)} ."


def format_body(body: tuple[Conjunct, ...], prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return the conjuncts, separated by commas."""
    return ", ".join(format_conjunct(c, prefixes) for c in body)


def format_conjunct(conjunct: Conjunct, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return one conjunct of a body."""
    match conjunct:
        case Atom():
            return format_atom(conjunct, prefixes)
        case Negation(atom=inner):
            return f"not {format_atom(inner, prefixes)}"
        case Comparison(left=left, operator=operator, right=right):
            return f"{format_expression(left, prefixes)} {operator} {format_expression(right, prefixes)}"
        case Binding(variable=variable, expression=expression):
            shown = format_expression(expression, prefixes)
            if _needs_bind(variable, expression):
                return f"BIND({shown} AS {_variable(variable)})"
            return f"{_variable(variable)} := {shown}"
        case Aggregate(body=body, groups=groups, folds=folds):
            on = f" ON {', '.join(map(_variable, groups))}" if groups else ""
            results = ", ".join(
                f"{f.op}({'DISTINCT ' if f.distinct else ''}{', '.join(map(_variable, f.arguments))})"
                f" AS {_variable(f.target)}"
                for f in folds
            )
            return f"AGGREGATE({format_body(body, prefixes)}){on} WITH {results}"


def format_atom(atom: Atom | Fact, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return an atom; `rdf:type` with a constant class is written as the class."""
    if isinstance(atom, Atom) and atom.shown:
        written, own = atom.shown
        values = dict(zip(own, atom.args, strict=True))
        atom = replace(written, args=tuple(values.get(arg, arg) for arg in written.args))
    args: tuple[Argument, ...] = atom.args
    name = atom.relation
    if name == RDF_TYPE and len(args) == 2 and isinstance(args[1], IRI):
        name, args = args[1].value, args[:1]
    text = f"{format_predicate(name, prefixes)}({', '.join(format_argument(a, prefixes) for a in args)})"
    within = atom.within if isinstance(atom, Atom) else None
    return f"{text} within {format_term(within, prefixes)}" if within else text


def format_predicate(name: str, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return a predicate's name, without brackets if possible."""
    if _NAME.fullmatch(name) and name.lower() not in RESERVED:
        return name
    return _iri(name, prefixes)


def format_argument(arg: Argument, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return a term or a variable."""
    return _variable(arg) if isinstance(arg, Variable) else format_term(arg, prefixes)


def format_term(term: Term, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return a constant in the language's own syntax."""
    match term:
        case IRI(value=value):
            if _is_bare(value):
                return value
            return _iri(value, prefixes)
        case BlankNode(label=label):
            return f"_:{label}"
        case Literal(lexical=lexical, datatype=datatype, language=language):
            form = _BARE_NUMBER.get(datatype)
            if form and form.fullmatch(lexical):
                return lexical
            if datatype == XSD_BOOLEAN and lexical in {"true", "false"}:
                return lexical
            if datatype == XSD_DAY_TIME_DURATION and (length := value_of(term)) is not None:
                return _length(term, length, prefixes)
            quoted = quote(lexical)
            if datatype == RDF_LANGSTRING and language:
                return f"{quoted}@{language}"
            return quoted if datatype == XSD_STRING else f"{quoted}^^{_iri(datatype, prefixes)}"


def format_expression(
    expression: Expression, prefixes: Mapping[str, str] = DEFAULT_PREFIXES, level: int = 0
) -> str:
    """Return an expression, in brackets if it binds less tightly than `level`."""
    match expression:
        case Unary(operand=operand):
            inner = format_expression(operand, prefixes, _MINUS_LEVEL)
            # -5 would be parsed as a number, not as minus applied to 5.
            text = f"-({inner})" if isinstance(operand, Literal) else f"-{inner}"
            own = _MINUS_LEVEL
        case Binary(operator=operator, left=left, right=right):
            own = _LEVEL[operator]
            left_level, right_level = (_PRIMARY_LEVEL, _MINUS_LEVEL) if operator == "**" else (own, own + 1)
            text = (
                f"{format_expression(left, prefixes, left_level)} {operator} "
                f"{format_expression(right, prefixes, right_level)}"
            )
        case Call(function=function, args=args, registered=registered):
            name = f"{FUNCTION_PREFIX}:{function}" if registered else function
            return f"{name}({', '.join(format_expression(a, prefixes) for a in args)})"
        case Now():
            return NOW
        case _:
            text = format_argument(expression, prefixes)
            own = _MINUS_LEVEL if text[0] in "+-" else _PRIMARY_LEVEL
    return f"({text})" if own < level else text


def _is_bare(name: str) -> bool:
    """Whether an IRI may be written without brackets."""
    return bool(_CONSTANT.fullmatch(name)) and name[0].islower() and name.lower() not in {*RESERVED, NOW}


def _length(term: Literal, value: object, prefixes: Mapping[str, str]) -> str:
    """Return a length of time in the greatest unit that it is a multiple of, `90 min`."""
    micros = microseconds(value) if isinstance(value, timedelta) else 0
    if not micros:
        return "0 s"
    for unit, size in UNITS.items():
        if micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{quote(term.lexical)}^^{_iri(XSD_DAY_TIME_DURATION, prefixes)}"


def abbreviate(text: str, prefixes: Mapping[str, str]) -> str:
    """Return a text for people with the IRIs in angle brackets abbreviated; strings stay as they are."""
    if not prefixes or "<" not in text:
        return text
    return _BRACKETS.sub(lambda m: m[0] if m[0][0] == '"' else _iri(m[0][1:-1], prefixes), text)


def abbreviated(finding: Diagnostic, prefixes: Mapping[str, str]) -> Diagnostic:
    """Return a finding with the IRIs of its message and note abbreviated."""
    message, note = (abbreviate(text, prefixes) for text in (finding.message, finding.note))
    return replace(finding, message=message, note=note)


def quote(text: str) -> str:
    """Return a text as a quoted and escaped string."""
    return f'"{text.translate(_STRING_ESCAPES)}"'


def _needs_bind(variable: Variable, expression: Expression) -> bool:
    # The parser numbers each `_`, so the text must keep their order.
    serial = [int(v.name.removeprefix(ANONYMOUS)) for v in (variable, *variables(expression)) if v.anonymous]
    return variable.anonymous and serial[0] > min(serial)


def _variable(variable: Variable) -> str:
    if variable.anonymous:
        return "_"
    name = variable.name
    bare = _BARE_VARIABLE.fullmatch(name) and name.lower() not in RESERVED
    return name if bare else f"?{name}"


def _iri(value: str, prefixes: Mapping[str, str]) -> str:
    for prefix, base in prefixes.items():
        if base and value.startswith(base) and _LOCAL.fullmatch(value, len(base)):
            return f"{prefix}:{value[len(base) :]}"
    return f"<{value}>"
