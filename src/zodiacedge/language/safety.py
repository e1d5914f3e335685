"""Which conjuncts bind the variables of a body, and which equalities are bindings.

The order of the body does not matter. A variable is bound by a positive atom, by the aggregate's groups and
results, or by a binding whose inputs are bound. An equality can bind a variable that is one of its sides if
the other side is bound without it: in `q(Z), X = Z, Y = X` the first equality binds X, the second Y. A
variable that two equalities can bind is ambiguous. A variable that occurs in one negated atom only is
existential. `analyse` determines this for one body; `checks` turns the result into
findings, and `resolve` returns the rule with its binding equalities made explicit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binding,
    Comparison,
    Conjunct,
    Negation,
    Query,
    Rule,
    Variable,
    variables,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Analysis:
    """A body with its binding equalities made explicit, and the state of its variables.

    `waiting` are variables of bindings that depend on unbound variables, `ambiguous` those that several
    equalities can bind, with the equalities.
    """

    body: tuple[Conjunct, ...]
    bound: frozenset[Variable]
    waiting: frozenset[Variable]
    unbound: tuple[tuple[Variable, Conjunct], ...]
    rebound: tuple[Binding, ...]
    ambiguous: Mapping[Variable, tuple[Conjunct, ...]]
    shared_existentials: tuple[Variable, ...]


def analyse(body: tuple[Conjunct, ...], parameters: Iterable[Variable] = ()) -> Analysis:
    """Analyse one body; an aggregate in it counts by its groups and results.

    Args:
        body: The conjuncts.
        parameters: Variables bound outside the body, by a prepared query.
    """
    fixed = _directly_bound(body).union(parameters)
    if all(isinstance(c, Atom) for c in body):
        # Most bodies: atoms bind all their variables.
        return Analysis(body, fixed, frozenset(), (), (), {}, ())
    explicit = [c for c in body if isinstance(c, Binding)]
    targets = Counter(c.variable for c in explicit)
    rebound = tuple(c for c in explicit if c.variable in fixed or targets[c.variable] > 1)
    equalities = _equalities(body, fixed.union(targets))
    binders = _binders(fixed, explicit, equalities)
    resolved = _resolved_equalities(body, equalities, binders)
    bindings = [c for c in resolved if isinstance(c, Binding)]
    bound = _saturate(fixed, bindings)
    waiting = _waiting(bindings, bound)
    return Analysis(
        resolved,
        bound,
        waiting,
        tuple(_unbound(resolved, bound | waiting)),
        rebound,
        {v: tuple(body[n] for n in positions) for v, positions in binders.items() if len(positions) > 1},
        _repeated(_existentials(resolved, bound)),
    )


def bound_in(body: tuple[Conjunct, ...]) -> frozenset[Variable]:
    """Return the variables that a resolved body binds."""
    return _saturate(_directly_bound(body), [c for c in body if isinstance(c, Binding)])


def resolve(rule: Rule) -> Rule:
    """Return a checked rule with its binding equalities made bindings, inside an aggregate too."""
    return replace(rule, body=_resolved(rule.body))


def resolve_query(query: Query, parameters: Iterable[Variable] = ()) -> Query:
    """Return a checked query with its binding equalities made bindings."""
    return replace(query, body=_resolved(query.body, parameters))


def _resolved(body: tuple[Conjunct, ...], parameters: Iterable[Variable] = ()) -> tuple[Conjunct, ...]:
    return tuple(
        replace(c, body=_resolved(c.body)) if isinstance(c, Aggregate) else c
        for c in analyse(body, parameters).body
    )


def _directly_bound(body: Iterable[Conjunct]) -> frozenset[Variable]:
    bound: set[Variable] = set()
    for conjunct in body:
        if isinstance(conjunct, Atom):
            bound.update(variables(conjunct))
        elif isinstance(conjunct, Aggregate):
            bound.update(conjunct.columns)
    return frozenset(bound)


def _equalities(body: Iterable[Conjunct], bound: frozenset[Variable]) -> list[tuple[int, Binding]]:
    """Return each equality as the bindings it may be, of its sides that are variables, with its position."""
    return [
        (position, Binding(side, other, c.span))
        for position, c in enumerate(body)
        if isinstance(c, Comparison) and c.operator == "="
        for side, other in ((c.left, c.right), (c.right, c.left))
        if isinstance(side, Variable) and side not in bound and side not in variables(other)
    ]


def _binders(
    fixed: frozenset[Variable], explicit: list[Binding], equalities: list[tuple[int, Binding]]
) -> dict[Variable, list[int]]:
    """Return the positions of the equalities that can bind each variable.

    An equality can bind a variable if the variables of its other side can be bound without that variable.
    """
    positions: dict[Variable, list[int]] = {}
    without: dict[Variable, frozenset[Variable]] = {}
    for position, binding in equalities:
        v = binding.variable
        if v not in without:
            others = [b for _, b in equalities if b.variable != v]
            without[v] = _saturate(fixed, [b for b in explicit if b.variable != v] + others)
        if without[v].issuperset(variables(binding.expression)):
            positions.setdefault(v, []).append(position)
    return positions


def _resolved_equalities(
    body: tuple[Conjunct, ...],
    equalities: list[tuple[int, Binding]],
    binders: Mapping[Variable, list[int]],
) -> tuple[Conjunct, ...]:
    """Return the body with each equality that binds a variable as a binding.

    One side of an equality may be a variable that nothing can bind, because its other side has such variables
    too. It is a binding as well, so that only those are reported.
    """
    resolved = list(body)
    taken: set[int] = set()
    for position, binding in equalities:
        if binders.get(binding.variable, [-1])[0] == position:
            taken.add(position)
            resolved[position] = binding
    lost = Counter(n for n, b in equalities if n not in taken and b.variable not in binders)
    for position, binding in equalities:
        if lost[position] == 1 and binding.variable not in binders:
            resolved[position] = binding
    return tuple(resolved)


def _waiting(bindings: list[Binding], bound: frozenset[Variable]) -> frozenset[Variable]:
    targets = {b.variable for b in bindings}
    inputs = {v for b in bindings for v in variables(b.expression)} - targets - bound
    return (_saturate(bound | inputs, bindings) & targets) - bound


def _existentials(body: Iterable[Conjunct], bound: frozenset[Variable]) -> Counter[Variable]:
    """Count the negated atoms with each unbound variable."""
    return Counter(
        v for c in body if isinstance(c, Negation) for v in dict.fromkeys(variables(c)) if v not in bound
    )


def _repeated(counts: Counter[Variable]) -> tuple[Variable, ...]:
    return tuple(v for v, count in counts.items() if count > 1)


def _saturate(fixed: frozenset[Variable], bindings: list[Binding]) -> frozenset[Variable]:
    """Return the variables that are bound, directly or by bindings whose inputs are bound."""
    bound = set(fixed)
    missing: list[int] = []
    readers: dict[Variable, list[int]] = {}
    ready: list[Variable] = []
    for number, binding in enumerate(bindings):
        inputs = {v for v in variables(binding.expression) if v not in fixed}
        missing.append(len(inputs))
        for v in inputs:
            readers.setdefault(v, []).append(number)
        if not inputs:
            ready.append(binding.variable)
    while ready:
        v = ready.pop()
        if v in bound:
            continue
        bound.add(v)
        for number in readers.get(v, ()):
            missing[number] -= 1
            if not missing[number]:
                ready.append(bindings[number].variable)
    return frozenset(bound)


def _unbound(body: Iterable[Conjunct], bound: frozenset[Variable]) -> Iterable[tuple[Variable, Conjunct]]:
    # Each variable once, at its first use.
    reported: set[Variable] = set()
    for conjunct in body:
        if isinstance(conjunct, Comparison | Binding):
            read = variables(conjunct.expression if isinstance(conjunct, Binding) else conjunct)
            for v in read:
                if v not in bound and v not in reported:
                    reported.add(v)
                    yield v, conjunct
