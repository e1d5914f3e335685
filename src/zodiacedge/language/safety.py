"""Which conjuncts bind the variables of a body, and which equalities are bindings.

The order of the body does not matter. A variable is bound by a positive atom,
by the aggregate's groups and results, or by a binding whose inputs are bound. An equality is a
binding where one side is a variable that nothing else binds. A variable that occurs in one
negated atom only is existential. `analyse` determines this for one body; `checks` turns the result into
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
    Expression,
    Negation,
    Query,
    Rule,
    Variable,
    variables,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Analysis:
    """A body with its binding equalities made explicit, and the state of its variables.

    `waiting` are variables of bindings that depend on unbound variables.
    """

    body: tuple[Conjunct, ...]
    bound: frozenset[Variable]
    waiting: frozenset[Variable]
    unbound: tuple[tuple[Variable, Conjunct], ...]
    rebound: tuple[Binding, ...]
    ambiguous: tuple[Variable, ...]
    shared_existentials: tuple[Variable, ...]


def analyse(body: tuple[Conjunct, ...], parameters: Iterable[Variable] = ()) -> Analysis:
    """Analyse one body; an aggregate in it counts by its groups and results.

    Args:
        body: The conjuncts.
        parameters: Variables bound outside the body, by a prepared query.
    """
    fixed = _directly_bound(body).union(parameters)
    explicit = Counter(c.variable for c in body if isinstance(c, Binding))
    rebound = tuple(
        c for c in body if isinstance(c, Binding) and (c.variable in fixed or explicit[c.variable] > 1)
    )
    candidates = _equated(body, fixed.union(explicit))
    resolved = tuple(_as_binding(c, candidates) for c in body)
    bindings = [c for c in resolved if isinstance(c, Binding)]
    bound = _saturate(fixed, bindings)
    waiting = _waiting(bindings, bound)
    return Analysis(
        resolved,
        bound,
        waiting,
        tuple(_unbound(resolved, bound | waiting)),
        rebound,
        _repeated(candidates),
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


def _equated(body: Iterable[Conjunct], bound: frozenset[Variable]) -> Counter[Variable]:
    """Count the equalities that could bind each variable."""
    return Counter(
        side
        for c in body
        if isinstance(c, Comparison) and c.operator == "="
        for side in dict.fromkeys(s for s in (c.left, c.right) if isinstance(s, Variable))
        if side not in bound
    )


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


def _as_binding(conjunct: Conjunct, candidates: Counter[Variable]) -> Conjunct:
    if not isinstance(conjunct, Comparison) or conjunct.operator != "=":
        return conjunct
    left, right = conjunct.left, conjunct.right
    sides: list[tuple[Variable, Expression]] = []
    if isinstance(left, Variable) and left in candidates:
        sides.append((left, right))
    if isinstance(right, Variable) and right in candidates:
        sides.append((right, left))
    if len(sides) != 1:
        return conjunct
    return Binding(*sides[0], conjunct.span)


def _saturate(fixed: frozenset[Variable], bindings: list[Binding]) -> frozenset[Variable]:
    bound = set(fixed)
    waiting = bindings
    while waiting:
        ready = [b for b in waiting if bound.issuperset(variables(b.expression))]
        if not ready:
            break
        bound.update(b.variable for b in ready)
        waiting = [b for b in waiting if b not in ready]
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
