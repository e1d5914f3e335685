"""Warnings that need the facts or the graph.

They are about unknown predicates, unread relations, strings taken for IRIs, and values computed in recursion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, nearest
from zodiacedge.language.ast import (
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Predicate,
    conjuncts,
    operands,
    variables,
)
from zodiacedge.language.printer import format_argument, format_predicate, quote
from zodiacedge.language.spelling import Spelling
from zodiacedge.language.unify import pattern_of
from zodiacedge.terms import IRI, RDF_TYPE, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.errors import Span
    from zodiacedge.graph import HyperGraph
    from zodiacedge.language.ast import Conjunct, Expression, Rule, Variable
    from zodiacedge.terms import Term

_MOST_NAMES = 500
_MOST_UNREAD = 5
_ALL_CLASSES = Predicate(RDF_TYPE, 2)
# Functions that make longer texts or larger numbers of their own results.
_GROWING = frozenset({"concat", "replace", "exp"})


def mistaken_constants(body: Iterable[Conjunct], holds: Callable[[Term], bool]) -> Iterator[Diagnostic]:
    """Warn of a constant that occurs in explicit facts as a string but not as an IRI.

    `wt1` is an IRI in a rule and a string in a CSV cell.
    """
    spans: dict[str, Span | None] = {}
    for conjunct in conjuncts(body):
        for operand in operands(conjunct):
            if isinstance(operand, IRI):
                spans.setdefault(operand.value, conjunct.span)
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


def unread_relations(
    loaded: Iterable[Predicate], atoms: Iterable[Atom], prefixes: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Hint at relations that were loaded and that no atom of a rule or query reads, all in one diagnostic."""
    read = {atom.predicate for atom in atoms}
    unread = sorted(
        predicate
        for predicate in set(loaded) - read - {_ALL_CLASSES}
        if predicate.arity != 1 or _ALL_CLASSES not in read
    )
    if not unread:
        return
    shown = ", ".join(f"{format_predicate(name, prefixes)}/{arity}" for name, arity in unread[:_MOST_UNREAD])
    more = f" and {len(unread) - _MOST_UNREAD:,} more" if len(unread) > _MOST_UNREAD else ""
    hint = "check the name of the file, or give the relation's name: --facts relation=FILE"
    for name, arity in unread[:_MOST_UNREAD]:
        arities = sorted(predicate.arity for predicate in read if predicate.name == name)
        near = nearest(name, sorted({predicate.name for predicate in read})[:_MOST_NAMES])
        if arities:
            wanted = " and ".join(map(str, arities))
            hint = (
                f"{format_predicate(name, prefixes)} is read with {wanted} arguments, and loaded with {arity}"
            )
            break
        if near:
            hint = f"did you mean {format_predicate(near, prefixes)}?"
            break
    yield Diagnostic(
        "W018",
        f"loaded, and read by no rule and no query: {shown}{more}",
        hint,
        severity="hint",
    )


def endless_values(rules: Mapping[str, Rule], graph: HyperGraph) -> Iterator[Diagnostic]:
    """Warn of rules that compute values from values of their own hyper-node, without a bound.

    A comparison in the rule, or an atom that reads facts of another node, bounds a value. Rules are resolved.
    """
    for key, rule in rules.items():
        bindings = [c for c in rule.body if isinstance(c, Binding)]
        growing = [b for b in bindings if any(map(_grows, operands(b)))]
        if not growing or not graph.recursive(graph.homes[key]):
            continue
        recursive = _computed(_read_in_recursion(rule, graph, graph.homes[key]), bindings)
        comparisons = [c for c in rule.body if isinstance(c, Comparison) and c.operator != "!="]
        if any(v in recursive for comparison in comparisons for v in variables(comparison)):
            continue
        for binding in growing:
            derived = _computed({binding.variable}, bindings)
            if not recursive.isdisjoint(variables(binding.expression)) and not derived.isdisjoint(
                rule.head.args
            ):
                yield Diagnostic(
                    "W025",
                    f"{format_argument(binding.variable)} is computed in recursion, which may never end",
                    "bound it with a comparison; where the data bound it, silence this",
                    binding.span,
                    "warning",
                )
                break


def _grows(operand: Expression) -> bool:
    """Whether an expression may have values without end if its result is an operand again."""
    if isinstance(operand, Call):
        return operand.registered or operand.function in _GROWING
    return isinstance(operand, Binary) and operand.operator != "%"


def _read_in_recursion(rule: Rule, graph: HyperGraph, node: int) -> set[Variable]:
    """Return the variables that only positive atoms which read facts of their own node bind."""
    inside: set[Variable] = set()
    outside: set[Variable] = set()
    for atom in rule.body:
        if isinstance(atom, Atom):
            writers = graph.rules.deriving(pattern_of(atom))
            recursive = any(graph.homes[writer] == node for writer in writers)
            (inside if recursive else outside).update(variables(atom))
    return inside - outside


def _computed(given: set[Variable], bindings: Sequence[Binding]) -> set[Variable]:
    """Return variables with those that bindings compute from them."""
    computed = set(given)
    for _ in bindings:
        computed |= {b.variable for b in bindings if not computed.isdisjoint(variables(b.expression))}
    return computed
