"""The semantics of aggregates, which map the terms of a group to one term. This is the definition.

Sums are exact and rounded once, so results do not depend on the order of facts.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import Number, number, number_term
from zodiacedge.engine.semantics.host_functions import fold_registered
from zodiacedge.language.vocabulary import CHOOSING
from zodiacedge.terms import XSD_INTEGER, Literal, Term, integer, order_key, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from zodiacedge.engine.registry import Registry
    from zodiacedge.language.ast import Fold, Variable

NUMERIC_FOLDS = frozenset({"SUM", "AVG", "MED"})


def accepts(op: str, terms: Sequence[Term]) -> None:
    """Raise `NoValue` if an aggregate does not accept its arguments."""
    if op in NUMERIC_FOLDS:
        number(terms[0])
    elif op in CHOOSING and not _is_moment(terms[1]):
        number(terms[1])


def _is_moment(term: Term) -> bool:
    return isinstance(term, Literal) and isinstance(value_of(term), datetime)


def choose(op: str, pairs: Iterable[Sequence[Term]]) -> Term:
    """Return the first term of the pair whose second one is greatest or least; of ties, likewise."""

    def key(pair: Sequence[Term]) -> tuple[object, object]:
        return order_key(pair[1]), order_key(pair[0])

    return (max if op == "ARGMAX" else min)(pairs, key=key)[0]


def fold_group(aggregate: Fold, bindings: Sequence[Mapping[Variable, Term]], registry: Registry) -> Term:
    """Return the result of an aggregate over the bindings of a group, all accepted."""
    if aggregate.by is not None:
        return choose(aggregate.op, [[binding[v] for v in aggregate.arguments] for binding in bindings])
    terms = [binding[aggregate.argument] for binding in bindings]
    return fold(aggregate.op, list(set(terms)) if aggregate.distinct else terms, registry)


def fold(op: str, terms: Sequence[Term], registry: Registry) -> Term:
    """Return the result of an aggregate over a group's terms, one per binding, all accepted."""
    ordered = sorted(terms, key=order_key)
    if op in _FOLDS:
        return _FOLDS[op](ordered)
    return fold_registered(registry.folds[op], ordered)


def _integers(terms: Sequence[Term]) -> bool:
    return all(isinstance(t, Literal) and t.datatype == XSD_INTEGER for t in terms)


def _total(terms: Sequence[Term]) -> Fraction:
    return sum((Fraction(number(t)) for t in terms), Fraction())


def _rounded(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise NoValue("a sum beyond the largest double") from None


def _sum(terms: Sequence[Term]) -> Term:
    total = _total(terms)
    return number_term(int(total) if _integers(terms) else _rounded(total))


def _average(terms: Sequence[Term]) -> Term:
    return number_term(_rounded(_total(terms)) / len(terms))


def _median(terms: Sequence[Term]) -> Term:
    middle = len(terms) // 2
    if len(terms) % 2:
        return terms[middle]
    pair = terms[middle - 1 : middle + 1]
    mean = _total(pair) / 2
    value: Number = _rounded(mean)
    if _integers(pair) and mean.denominator == 1:
        value = int(mean)
    return number_term(value)


_FOLDS: dict[str, Callable[[Sequence[Term]], Term]] = {
    "COUNT": lambda terms: integer(len(terms)),
    "SUM": _sum,
    "AVG": _average,
    "MIN": lambda terms: terms[0],
    "MAX": lambda terms: terms[-1],
    "MED": _median,
}
