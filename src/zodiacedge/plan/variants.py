"""The plans of one rule: the initial plan, and one for each position at which a delta may enter.

Also the positions that read facts, and the recursive ones, which the node derives itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.language.ast import (
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Negation,
    Rule,
    Unary,
    Variable,
)
from zodiacedge.language.safety import analyse
from zodiacedge.language.unify import unifiable
from zodiacedge.plan.algebra import Plan
from zodiacedge.plan.order import Statistics, arrange

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from zodiacedge.plan.algebra import Step


def plans(rule: Rule, recursive: Collection[int], statistics: Statistics) -> tuple[Plan, ...]:
    """Return the initial plan and one per recursive position."""
    inner = _inner(rule, statistics)
    return tuple(
        Plan(
            rule,
            delta,
            arrange(rule.body, recursive, delta, statistics, needed(rule.body, rule.head.args)),
            rule.head.args,
            inner,
        )
        for delta in (None, *sorted(recursive))
    )


def _inner(rule: Rule, statistics: Statistics) -> tuple[Step, ...]:
    if rule.aggregate is None:
        return ()
    body = rule.aggregate.body
    # Every binding counts: two of them may have the same value to add up.
    return arrange(body, (), None, statistics, analyse(body).bound)


def recursive_atoms(rule: Rule, heads: Collection[Atom]) -> dict[int, Atom]:
    """Return the positive atoms that a node with these heads derives itself, by position."""
    return {
        position: conjunct
        for position, conjunct in enumerate(rule.body)
        if isinstance(conjunct, Atom) and any(unifiable(head, conjunct) for head in heads)
    }


class BodyRead(NamedTuple):
    """A position in a rule's body, or of the body of its aggregate, that reads facts."""

    body: tuple[Conjunct, ...]
    position: int
    atom: Atom
    negated: bool
    inner: bool


def readings(rule: Rule) -> Iterator[BodyRead]:
    """Yield the positions of a rule that read facts."""
    bodies = [(rule.body, False)]
    if rule.aggregate:
        bodies.append((rule.aggregate.body, True))
    for body, inner in bodies:
        for position, conjunct in enumerate(body):
            if isinstance(conjunct, Atom):
                yield BodyRead(body, position, conjunct, negated=False, inner=inner)
            elif isinstance(conjunct, Negation):
                yield BodyRead(body, position, conjunct.atom, negated=True, inner=inner)


def needed(body: tuple[Conjunct, ...], head: Collection[object]) -> frozenset[Variable]:
    """Return the variables whose every value matters: those of the head, or all if the body can fail.

    Evaluation errors are counted per binding.
    """
    if can_fail(body):
        return analyse(body).bound
    return frozenset(a for a in head if isinstance(a, Variable))


def can_fail(body: tuple[Conjunct, ...]) -> bool:
    """Whether a body can have evaluation errors."""
    return any(_can_fail(c) for c in body)


def _can_fail(conjunct: Conjunct) -> bool:
    match conjunct:
        case Comparison(left=left, operator=operator, right=right):
            return operator not in {"=", "!="} or not (_is_plain(left) and _is_plain(right))
        case Binding(expression=expression):
            return not _is_plain(expression)
        case _:
            return False


def _is_plain(expression: Expression) -> bool:
    return not isinstance(expression, Binary | Call | Unary)
