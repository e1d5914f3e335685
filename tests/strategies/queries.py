"""Random queries with parameters, and what they must equal: the query with the values written into it.

A random rule is read as a query. Some of its variables become parameters, and some of its constants do,
each under a name of its own: so parameters stand in atoms, in classes, under negation, in comparisons and
in expressions, alone or with others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strategies.rules import parsed, random_rule
from zodiacedge.language.ast import (
    Aggregate,
    Argument,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Negation,
    Now,
    Query,
    Unary,
    Variable,
    variables,
)
from zodiacedge.language.printer import format_query
from zodiacedge.language.safety import analyse
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from strategies.dice import Dice
    from strategies.schema import Schema
    from zodiacedge.terms import Term

    Leaf = Callable[[Argument], Argument]


@dataclass(frozen=True, slots=True)
class OpenQuery:
    """A query and its parameters; `usual` are values for those that stand for a constant."""

    query: Query
    parameters: tuple[Variable, ...]
    usual: Mapping[Variable, Term]

    @property
    def text(self) -> str:
        """The query as its author would have written it."""
        return format_query(self.query)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters by name."""
        return tuple(v.name for v in self.parameters)

    @property
    def aggregated(self) -> tuple[Variable, ...]:
        """The parameters that an aggregate binds: a value cannot be written in their place."""
        bound = {v for c in self.query.body if isinstance(c, Aggregate) for v in _seen(c)}
        return tuple(v for v in self.parameters if v in bound)

    @property
    def classes(self) -> frozenset[Variable]:
        """The parameters that stand for a class: only an IRI can be written in their place."""
        atoms = [c.atom if isinstance(c, Negation) else c for c in self.query.body]
        return frozenset(
            v
            for a in atoms
            if isinstance(a, Atom) and a.relation == RDF_TYPE
            for v in a.args[1:]
            if v in self.parameters and isinstance(v, Variable)
        )

    def closed(self, values: Mapping[Variable, Term]) -> str:
        """The query with values in place of parameters, but for those that an aggregate binds."""
        known = {v: value for v, value in values.items() if v not in self.aggregated}
        return format_query(Query(tuple(_value(c, known) for c in self.query.columns), self._body(known)))

    def likely(self) -> tuple[tuple[Variable, ...], str]:
        """Parameters, and a query for values of theirs that lead to answers."""
        body = self._body(self.usual)
        bound = analyse(body).bound
        asked = tuple(v for v in self.parameters if v in bound)
        return asked, format_query(Query(asked, body))

    def _body(self, known: Mapping[Variable, Term]) -> tuple[Conjunct, ...]:
        return tuple(_replaced(c, lambda arg: _value(arg, known)) for c in self.query.body)


def random_open_query(dice: Dice, schema: Schema) -> OpenQuery:
    """Return a random query with parameters."""
    usual: dict[Variable, Term] = {}

    def opened(arg: Argument) -> Argument:
        if isinstance(arg, Variable) or not dice.chance(40):
            return arg
        made = Variable(f"P{len(usual) + 1}")
        usual[made] = arg
        return made

    body = tuple(_replaced(c, opened) for c in parsed(random_rule(dice, schema)).body)
    targets = {c.variable for c in body if isinstance(c, Binding)}
    local = {v for c in body if isinstance(c, Aggregate) for v in variables(c) if v not in _seen(c)}
    seen = dict.fromkeys(v for c in body for v in variables(c) if not v.anonymous)
    free = [v for v in seen if v not in targets and v not in local and v not in usual]
    chosen = dice.shuffled(free)[: dice.amount(30, 50, 20) if usual else 1 + dice.amount(70, 30)]
    parameters = tuple(dice.shuffled([*usual, *chosen]))
    bound = analyse(body, parameters).bound
    columns = dice.shuffled([v for v in seen if v in bound])
    if not any(isinstance(c, Aggregate) for c in body):
        columns = columns[: dice.number(0, len(columns))]
    return OpenQuery(Query(tuple(columns), body), parameters, usual)


def _seen(aggregate: Aggregate) -> tuple[Variable, ...]:
    return (*aggregate.groups, *(fold.target for fold in aggregate.folds))


def _value(arg: Argument, known: Mapping[Variable, Term]) -> Argument:
    return known.get(arg, arg) if isinstance(arg, Variable) else arg


def _replaced(conjunct: Conjunct, leaf: Leaf) -> Conjunct:
    match conjunct:
        case Atom(args=args):
            return replace(conjunct, args=tuple(map(leaf, args)))
        case Negation(atom=inner):
            return Negation(replace(inner, args=tuple(map(leaf, inner.args))))
        case Comparison(left=left, right=right):
            return replace(conjunct, left=_written(left, leaf), right=_written(right, leaf))
        case Binding(expression=expression):
            return replace(conjunct, expression=_written(expression, leaf))
        case Aggregate():
            return conjunct


def _written(expression: Expression, leaf: Leaf) -> Expression:
    match expression:
        case Unary(operand=operand):
            return Unary(_written(operand, leaf))
        case Binary(left=left, right=right):
            return replace(expression, left=_written(left, leaf), right=_written(right, leaf))
        case Call(args=args):
            return replace(expression, args=tuple(_written(arg, leaf) for arg in args))
        case Now():
            return expression
        case _:
            return leaf(expression)
