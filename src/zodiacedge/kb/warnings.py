"""Warnings that depend on the facts: unknown predicates, unread relations, strings mistaken for IRIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, nearest
from zodiacedge.language.ast import (
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Negation,
    Predicate,
    Unary,
    conjuncts,
)
from zodiacedge.language.printer import format_predicate, quote
from zodiacedge.language.spelling import Spelling
from zodiacedge.terms import IRI, RDF_TYPE, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from zodiacedge.errors import Span
    from zodiacedge.terms import Term

_MOST_NAMES = 500
_MOST_UNREAD = 5
_ALL_CLASSES = Predicate(RDF_TYPE, 2)


def mistaken_constants(body: Iterable[Conjunct], holds: Callable[[Term], bool]) -> Iterator[Diagnostic]:
    """Warn of a constant that occurs in explicit facts as a string but not as an IRI.

    `wt1` is an IRI in a rule and a string in a CSV cell.
    """
    spans: dict[str, Span | None] = {}
    for conjunct in conjuncts(body):
        for name in _names(conjunct):
            spans.setdefault(name.value, conjunct.span)
    for value, span in spans.items():
        if holds(Literal(value)) and not holds(IRI(value)):
            yield Diagnostic(
                "W005",
                f"no fact holds the IRI <{value}>, but some hold the string {quote(value)}",
                f"a bare name is an IRI in a rule and a string in a table cell: write {quote(value)} for "
                f"the string, or <{value}> in the table",
                span,
                "warning",
            )


def _names(node: Conjunct | Expression) -> Iterator[IRI]:
    match node:
        case IRI():
            yield node
        case Atom(relation=relation, args=(member, IRI())) if relation == RDF_TYPE:
            yield from _names(member)
        case Atom(args=args) | Call(args=args):
            for arg in args:
                yield from _names(arg)
        case Comparison(left=left, right=right) | Binary(left=left, right=right):
            yield from _names(left)
            yield from _names(right)
        case Negation(atom=inner) | Binding(expression=inner) | Unary(operand=inner):
            yield from _names(inner)
        case _:
            return


def unknown_predicates(atoms: Iterable[Atom], known: Collection[Predicate]) -> Iterator[Diagnostic]:
    """Warn of predicates that no rule and no fact uses, with the nearest name."""
    names = {p.name for p in known}
    for atom in atoms:
        name, arity = atom.predicate
        if atom.predicate in known or name == RDF_TYPE:
            continue
        arities = sorted(p.arity for p in known if p.name == name)
        near = Spelling(names).nearest(name) or nearest(name, sorted(names)[:_MOST_NAMES], 0.6)
        hint = "no rule and no fact uses it"
        if arities:
            hint = f"it is known with {' and '.join(map(str, arities))} arguments"
        elif near:
            hint = f"did you mean {format_predicate(near)}?"
        yield Diagnostic(
            "W004",
            f"unknown predicate {format_predicate(name)} with {arity} argument{'' if arity == 1 else 's'}",
            hint,
            atom.span,
            "warning",
        )


def unread_relations(loaded: Iterable[Predicate], atoms: Iterable[Atom]) -> Iterator[Diagnostic]:
    """Hint at relations that were loaded and that no atom of a rule or query reads, all in one diagnostic."""
    read = {atom.predicate for atom in atoms}
    unread = sorted(
        predicate
        for predicate in set(loaded) - read - {_ALL_CLASSES}
        if predicate.arity != 1 or _ALL_CLASSES not in read
    )
    if not unread:
        return
    shown = ", ".join(f"{format_predicate(name)}/{arity}" for name, arity in unread[:_MOST_UNREAD])
    more = f" and {len(unread) - _MOST_UNREAD:,} more" if len(unread) > _MOST_UNREAD else ""
    hint = "check the name of the file, or give the relation's name: --facts relation=FILE"
    for name, arity in unread[:_MOST_UNREAD]:
        arities = sorted(predicate.arity for predicate in read if predicate.name == name)
        near = nearest(name, sorted({predicate.name for predicate in read})[:_MOST_NAMES])
        if arities:
            wanted = " and ".join(map(str, arities))
            hint = f"{format_predicate(name)} is read with {wanted} arguments, and loaded with {arity}"
            break
        if near:
            hint = f"did you mean {format_predicate(near)}?"
            break
    yield Diagnostic(
        "W018",
        f"loaded, and read by no rule and no query: {shown}{more}",
        hint,
        severity="hint",
    )
