"""Plans whose heads are a product: two parts of a body that share nothing but one variable of the delta.

In `h(X, Y) :- a(K, X), delta(K, V), b(V, Y)` the part with X and the part with V and Y are independent for a
given K. So the rows of the delta with one K are taken together, each part is evaluated once, and the heads
are all pairs of their results (factorised evaluation: D. Olteanu, J. Zavodny: Size Bounds for Factorised
Representations of Query Results. ACM Transactions on Database Systems 40, 2015).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.language.ast import Variable
from zodiacedge.plan.algebra import Absent, Match, RelationVersion, Step, Test
from zodiacedge.plan.order import used_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.language.ast import Argument


class Product(NamedTuple):
    """The steps of a plan after its delta, in three parts, each in the order of the plan."""

    delta: Match
    key: Variable
    """The first variable of the delta."""
    other: Variable
    """The second variable of the delta."""
    head: tuple[Variable, Variable]
    tests: tuple[Step, ...]
    """Steps that bind no variable of the head, and do not read the delta's second variable."""
    parts: tuple[tuple[Step, ...], tuple[Step, ...]]
    """The steps that bind each variable of the head; none if the delta binds it."""
    with_delta: int
    """The part that begins with the rows of the delta, which bind its second variable."""

    @property
    def first(self) -> int:
        """The part that is evaluated first: the one with fewer expected matches for each row."""
        return int(_matches(self.parts[0]) > _matches(self.parts[1]))


class _Group(NamedTuple):
    """Steps that share variables, by their places in the plan."""

    variables: frozenset[Variable]
    places: tuple[int, ...]


def product_of(steps: Sequence[Step], head: Sequence[Argument]) -> Product | None:
    """Return the parts of a plan that begins with a delta of pairs, or None if its heads are no product."""
    delta, *rest = steps
    if not isinstance(delta, Match) or delta.read is not RelationVersion.DELTA:
        return None
    names, heads = _two_variables(delta.atom.args), _two_variables(head)
    if not names or not heads or not all(isinstance(step, Match | Absent | Test) for step in rest):
        return None
    key, other = names
    parts: list[tuple[Step, ...]] = [(), ()]
    tests: list[Step] = []
    bound, with_delta = {key}, -1
    for group in _groups(rest, key, other):
        own = [rest[place] for place in group.places]
        binds = [number for number, variable in enumerate(heads) if variable in group.variables]
        if len(binds) > 1 or (other in group.variables and not binds):
            return None
        if binds:
            parts[binds[0]] = tuple(own)
            bound.add(heads[binds[0]])
            with_delta = binds[0] if other in group.variables else with_delta
        else:
            tests += own
    if not bound.issuperset(heads):
        return None
    if key in heads and not (len(parts[with_delta]) == 1 and isinstance(parts[with_delta][0], Match)):
        # One term and many: it pays only where the many are joined in one loop.
        return None
    return Product(delta, key, other, heads, tuple(tests), (parts[0], parts[1]), with_delta)


def _groups(steps: Sequence[Step], key: Variable, other: Variable) -> list[_Group]:
    """Return the groups of steps that share variables apart from the key; one of them has the other one."""
    groups = [_Group(frozenset({other}), ())]
    for place, step in enumerate(steps):
        joined = _Group(frozenset(used_variables(step)) - {key}, (place,))
        apart: list[_Group] = []
        for group in groups:
            if group.variables & joined.variables:
                joined = _Group(group.variables | joined.variables, (*group.places, *joined.places))
            else:
                apart.append(group)
        groups = [*apart, joined]
    return [_Group(group.variables, tuple(sorted(group.places))) for group in groups]


def _two_variables(args: Sequence[Argument]) -> tuple[Variable, Variable] | None:
    """Return the arguments if they are two different variables."""
    match args:
        case [Variable() as first, Variable() as second] if first != second:
            return first, second
        case _:
            return None


def _matches(steps: Sequence[Step]) -> float:
    return prod(
        min(step.estimate, 1.0) if step.once else step.estimate
        for step in steps
        if isinstance(step, Match) and step.estimate is not None
    )
