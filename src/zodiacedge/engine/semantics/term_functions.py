"""Functions on terms of every kind, with the semantics of the SPARQL 1.1 functions of the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.language.printer import format_term
from zodiacedge.terms import IRI, XSD_STRING, BlankNode, Literal, Term, boolean, is_iri, string

if TYPE_CHECKING:
    from collections.abc import Callable


def _str(term: Term) -> Literal:
    match term:
        case IRI(value=value):
            return string(value)
        case Literal(lexical=lexical):
            return string(lexical)
        case BlankNode():
            raise NoValue("a blank node has no text")


def _iri(term: Term) -> IRI:
    match term:
        case IRI():
            return term
        case Literal(lexical=text, datatype=datatype) if datatype == XSD_STRING and is_iri(text):
            return IRI(text)
        case _:
            raise NoValue(f"{format_term(term)} is not the text of an IRI")


def _literal(term: Term) -> Literal:
    if isinstance(term, Literal):
        return term
    raise NoValue(f"{format_term(term)} is not a literal")


TERM_FUNCTIONS: dict[str, Callable[[Term], Term]] = {
    "str": _str,
    "iri": _iri,
    "lang": lambda term: string(_literal(term).language),
    "datatype": lambda term: IRI(_literal(term).datatype),
    "isiri": lambda term: boolean(isinstance(term, IRI)),
    "isliteral": lambda term: boolean(isinstance(term, Literal)),
}
