"""The premises of a step: each conjunct of a rule's body with the values of an instance filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.semantics.expressions import evaluate
from zodiacedge.explain.instances import filled
from zodiacedge.explain.naming import substituted, written
from zodiacedge.explain.proof import (
    AbsentPremise,
    AggregatePremise,
    AggregateRow,
    BindingPremise,
    ComparisonPremise,
    FactPremise,
)
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binding,
    Comparison,
    Negation,
    Variable,
)
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge.engine.registry import Registry
    from zodiacedge.explain.instances import InstanceLookups, LookupRule
    from zodiacedge.explain.proof import Premise
    from zodiacedge.language.ast import Conjunct
    from zodiacedge.terms import Term

    Values = Mapping[Variable, Term]

# The most bindings of an aggregate that are shown where none is decisive.
_SOME = 3
_FEW = 5


def premises_of(
    shape: LookupRule, values: Values, instances: InstanceLookups, registry: Registry
) -> tuple[Premise, ...]:
    """Return one premise per conjunct of a rule's body, for the values of an instance."""
    premises: list[Premise] = []
    for conjunct in shape.body:
        if isinstance(conjunct, Aggregate):
            premises.append(aggregate_premise(shape, conjunct, values, instances, registry))
        else:
            premises.append(plain_premise(conjunct, values, registry))
    return tuple(premises)


def plain_premise(conjunct: Conjunct, values: Values, registry: Registry) -> Premise:
    """Return the premise of a conjunct that is no aggregate."""
    match conjunct:
        case Atom():
            return FactPremise(written(conjunct), filled(conjunct, values))
        case Negation(atom=atom):
            return AbsentPremise(atom, partly_filled(atom, values))
        case Comparison(left=left, right=right):
            shown = replace(conjunct, left=substituted(left, values), right=substituted(right, values))
            return ComparisonPremise(
                written(conjunct), shown, evaluate(left, values, registry), evaluate(right, values, registry)
            )
        case Binding(variable=variable, expression=expression):
            shown_binding = replace(conjunct, expression=substituted(expression, values))
            return BindingPremise(written(conjunct), shown_binding, values[variable])
        case _:
            raise TypeError(conjunct)


def partly_filled(atom: Atom, values: Values) -> Atom:
    """Return an atom with the values that are known in place of variables."""
    return replace(atom, args=tuple(values.get(a, a) if isinstance(a, Variable) else a for a in atom.args))


def aggregate_premise(
    shape: LookupRule, aggregate: Aggregate, values: Values, instances: InstanceLookups, registry: Registry
) -> AggregatePremise:
    """Return the premise of an aggregate, whose group has a result."""
    group = tuple(values[v] for v in aggregate.groups)
    folded, _ = instances.fold_groups(shape.key, aggregate, [group])
    results, bindings = folded[group]
    shown = tuple(
        AggregateRow(binding, tuple(plain_premise(c, binding, registry) for c in aggregate.body))
        for binding in decisive(aggregate, bindings)
    )
    return AggregatePremise(
        written(aggregate),
        dict(zip(aggregate.groups, group, strict=True)),
        tuple(zip(aggregate.folds, results, strict=True)),
        len(bindings),
        shown,
    )


def decisive(aggregate: Aggregate, bindings: Sequence[Values]) -> list[Values]:
    """Return the bindings that decide the results of an aggregate, or some of them, in a fixed order."""
    ordered = sorted(bindings, key=lambda binding: _order(binding.values()))
    if len(ordered) <= _FEW:
        return ordered
    chosen: dict[int, None] = {}
    for fold in aggregate.folds:
        last = fold.arguments[::-1]
        by_value = sorted(range(len(ordered)), key=lambda n, vs=last: [order_key(ordered[n][v]) for v in vs])  # type: ignore[misc]
        middle = len(by_value) // 2
        match fold.op:
            case "MIN" | "ARGMIN":
                chosen[by_value[0]] = None
            case "MAX" | "ARGMAX":
                chosen[by_value[-1]] = None
            case "MED" if not fold.distinct:
                chosen |= dict.fromkeys(by_value[middle - (len(by_value) % 2 == 0) : middle + 1])
            case _:
                chosen |= dict.fromkeys(by_value[: -_SOME - 1 : -1])
    return [ordered[n] for n in sorted(chosen)]


def _order(terms: Iterable[Term]) -> tuple[object, ...]:
    return tuple(map(order_key, terms))
