"""Whether a node's fixpoint falls apart: facts that differ in one argument never meet in a rule.

Choose a position for each predicate that the node derives, such that every rule hands the term at the
head's position down from all of the node's own facts that it uses. Then facts with different terms there
have nothing to do with each other, and any division of the terms divides the work: between two threads, or
among the partitions of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from zodiacedge.language.ast import Atom, Rule, Variable
from zodiacedge.language.unify import unifiable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

# There are few ways to choose in any node that somebody wrote; more are not looked at.
_MOST_WAYS = 256


@dataclass(frozen=True, slots=True)
class Division:
    """A way to divide a node's facts: by the term at one position of each predicate that it derives."""

    positions: Mapping[tuple[str, int], int]

    def position(self, atom: Atom) -> int | None:
        """Return the position that facts of an atom are divided by, if the node derives such facts."""
        return self.positions.get((atom.relation, len(atom.args)))


def division(rules: Collection[Rule]) -> Division | None:
    """Return a way to divide a node's fixpoint, the leftmost positions first, or None."""
    heads = [rule.head for rule in rules]
    predicates = sorted({(head.relation, len(head.args)) for head in heads})
    if prod(arity for _, arity in predicates) > _MOST_WAYS:
        return None
    for chosen in product(*(range(arity) for _, arity in predicates)):
        found = Division(dict(zip(predicates, chosen, strict=True)))
        if all(_hands_down(rule, heads, found) for rule in rules):
            return found
    return None


def own_atoms(rule: Rule, heads: Collection[Atom]) -> Iterator[Atom]:
    """Yield the positive atoms of a rule that some head unifies with."""
    for conjunct in rule.body:
        if isinstance(conjunct, Atom) and any(unifiable(head, conjunct) for head in heads):
            yield conjunct


def _hands_down(rule: Rule, heads: Collection[Atom], way: Division) -> bool:
    kept = rule.head.args[way.positions[rule.head.relation, len(rule.head.args)]]
    if not isinstance(kept, Variable):
        return False
    return all(
        (position := way.position(atom)) is not None and atom.args[position] == kept
        for atom in own_atoms(rule, heads)
    )
