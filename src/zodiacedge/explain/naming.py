"""Names for the anonymous variables of a body: a lookup returns whole facts, so `_` needs a value too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.language.ast import (
    ANONYMOUS,
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Unary,
    Variable,
    variables,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from zodiacedge.language.ast import Conjunct, Expression

_Conjunct = TypeVar("_Conjunct", bound="Conjunct")
# How the names that stand for `_` begin: no program text can contain them.
_NAMED = f".{ANONYMOUS}"


def named(body: Collection[Conjunct]) -> tuple[Conjunct, ...]:
    """Return a body with names for the anonymous variables of its positive atoms, inside an aggregate too.

    Conditions on such a variable, those of a window, have its name as well; `_` of a negated atom has none.
    """
    names = {
        v: Variable(f".{v.name}") for c in body if isinstance(c, Atom) for v in variables(c) if v.anonymous
    }
    return tuple(
        replace(c, body=named(c.body))
        if isinstance(c, Aggregate)
        else _substituted(c, names)
        if names and isinstance(c, Atom | Comparison | Binding)
        else c
        for c in body
    )


def named_atom(atom: Atom) -> Atom:
    """Return an atom with names for its anonymous variables."""
    (found,) = named((atom,))
    return found if isinstance(found, Atom) else atom


def written(conjunct: _Conjunct) -> _Conjunct:
    """Return a conjunct as its rule has it: the opposite of `named`."""
    if isinstance(conjunct, Aggregate):
        return replace(conjunct, body=tuple(map(written, conjunct.body)))
    names = {v: Variable(v.name[1:]) for v in variables(conjunct) if v.name.startswith(_NAMED)}
    return _substituted(conjunct, names) if names else conjunct


def _substituted(conjunct: _Conjunct, names: Mapping[Variable, Variable]) -> _Conjunct:
    match conjunct:
        case Atom(args=args):
            shown = tuple(names.get(arg, arg) if isinstance(arg, Variable) else arg for arg in args)
            return replace(conjunct, args=shown)
        case Comparison(left=left, right=right):
            return replace(conjunct, left=substituted(left, names), right=substituted(right, names))
        case Binding(expression=expression):
            return replace(conjunct, expression=substituted(expression, names))
        case _:
            return conjunct


def substituted(expression: Expression, values: Mapping[Variable, Expression]) -> Expression:
    """Return an expression with values, or other variables, in place of its variables."""
    match expression:
        case Variable():
            return values.get(expression, expression)
        case Unary(operand=operand):
            return Unary(substituted(operand, values))
        case Binary(left=left, right=right):
            return replace(expression, left=substituted(left, values), right=substituted(right, values))
        case Call(args=args):
            return replace(expression, args=tuple(substituted(arg, values) for arg in args))
        case _:
            return expression
