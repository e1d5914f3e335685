"""Which part of an edit made a proof, or broke it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.explain.history import Edit
from zodiacedge.explain.instances import match
from zodiacedge.explain.premises import partly_filled
from zodiacedge.explain.proof import AbsentPremise, AggregatePremise, Explicit
from zodiacedge.language.ast import Atom
from zodiacedge.language.canonical import relabelled, rule_key
from zodiacedge.language.safety import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from zodiacedge.explain.proof import Premise, Proof
    from zodiacedge.language.ast import Fact, Rule

# The facts of an edit that are named where none touches the proof.
_SOME = 5


class Touched(NamedTuple):
    """The rules and explicit facts that a change added and removed."""

    rules_added: Sequence[Rule]
    rules_removed: Sequence[Rule]
    facts: Iterable[tuple[bool, Fact]]
    """Explicit facts, each with whether it was added; they are read once."""


def touching(touched: Touched, proof: Proof, *, inserted: bool) -> Edit:
    """Return the part of a change that made a proof, or that broke it.

    Args:
        touched: The change.
        proof: The proof after the change if the fact was inserted, before the change if it was deleted.
        inserted: Whether the fact was inserted.
    """
    keys = {step.key for step in proof.steps()}
    # Another label makes and breaks no proof.
    same = {rule for pair in relabelled(touched.rules_removed, touched.rules_added) for rule in pair}
    touched = touched._replace(
        rules_added=[rule for rule in touched.rules_added if rule not in same],
        rules_removed=[rule for rule in touched.rules_removed if rule not in same],
    )
    leaves = {fact for fact, support in proof.supports.items() if isinstance(support, Explicit)}
    patterns = [pattern for step in proof.steps() for pattern in _absent(step.premises)]
    folded = [pattern for step in proof.steps() for pattern in _folded(step.premises)]
    added: list[Fact] = []
    removed: list[Fact] = []
    some: tuple[list[Fact], list[Fact]] = [], []
    for is_added, fact in touched.facts:
        if len(some[is_added]) < _SOME:
            some[is_added].append(fact)
        touches = (
            fact in leaves if is_added == inserted else any(match(p, fact) is not None for p in patterns)
        )
        if touches or any(match(p, fact) is not None for p in folded):
            (added if is_added else removed).append(fact)
    rules_added = [rule for rule in touched.rules_added if inserted and rule_key(resolve(rule)) in keys]
    rules_removed = [
        rule for rule in touched.rules_removed if not inserted and rule_key(resolve(rule)) in keys
    ]
    if added or removed or rules_added or rules_removed:
        return Edit(0, tuple(rules_added), tuple(rules_removed), tuple(added), tuple(removed))
    return Edit(
        0,
        tuple(touched.rules_added),
        tuple(touched.rules_removed),
        tuple(some[1]),
        tuple(some[0]),
        direct=False,
    )


def _folded(premises: Iterable[Premise]) -> Iterator[Atom]:
    """Yield what a fact matches that comes into the group of an aggregate, or leaves it."""
    for premise in premises:
        if isinstance(premise, AggregatePremise):
            atoms = (c for c in premise.aggregate.body if isinstance(c, Atom))
            yield from (partly_filled(atom, premise.group) for atom in atoms)


def _absent(premises: Iterable[Premise]) -> Iterator[Atom]:
    for premise in premises:
        if isinstance(premise, AbsentPremise):
            yield premise.pattern
        elif isinstance(premise, AggregatePremise):
            yield from _absent(chain.from_iterable(row.premises for row in premise.shown))
