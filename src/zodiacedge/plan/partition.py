"""Hash partitioning of nodes: the argument by which the facts of each relation are partitioned.

Each relation, or class, that nodes derive gets a position such that every rule has the term at its head's
position, the partition key, in the atoms that it reads too. Partitions, in two threads or on a cluster, are
then independent: an instance of a rule belongs to one partition, and so does the fact that it derives.

A fixpoint on its own (`fixpoint_partitioning`) needs the key only in the atoms that match its own facts. On a
cluster (`Partitioning.with_node`) every relation is either partitioned by one position or broadcast: each
partition then reads all of it. Facts that the nodes derive are never broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.language.ast import Atom, Variable, body_atoms
from zodiacedge.plan.variants import recursive_atoms
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# Real rules have few choices of positions; more are not searched.
_MOST_CHOICES = 256
# The position of a relation that is broadcast.
_BROADCAST = None


class PartitionedRelation(NamedTuple):
    """A relation, or one class of `rdf:type`."""

    name: str
    arity: int
    member_of: Term | None = None

    @classmethod
    def of(cls, atom: Atom) -> PartitionedRelation:
        """Return the relation or class of an atom."""
        args = atom.args
        if (atom.relation, len(args)) == (RDF_TYPE, 2) and not isinstance(args[1], Variable):
            return cls(RDF_TYPE, 2, args[1])
        return cls(atom.relation, len(args))

    def meets(self, other: PartitionedRelation) -> bool:
        """Whether a fact can belong to both."""
        return self[:2] == other[:2] and (
            self.member_of is None or other.member_of is None or self.member_of == other.member_of
        )

    def __str__(self) -> str:
        """Return its name as users write it."""
        return self.name if self.member_of is None else str(getattr(self.member_of, "value", ""))


def reads(rules: Iterable[Rule]) -> Iterator[PartitionedRelation]:
    """Yield the relations and classes that the bodies of rules read."""
    return (PartitionedRelation.of(atom) for rule in rules for atom in body_atoms(rule.body))


@dataclass(frozen=True)
class Partitioning:
    """The position that each relation or class is partitioned by; None where it is broadcast."""

    positions: Mapping[PartitionedRelation, int | None] = field(default_factory=dict)

    def with_node(
        self, rules: Sequence[Rule], fits: Callable[[Partitioning], bool] = lambda _: True
    ) -> Partitioning | None:
        """Return a partitioning that serves the rules of one more node, the leftmost positions first.

        `fits` is a further condition on the partitioning.
        """
        for draft in _drafts(rules, self.positions):
            if all(map(draft.serves, rules)):
                partitioning = Partitioning(draft.positions)
                if fits(partitioning):
                    return partitioning
        return None

    def key(self, rule: Rule) -> Term | Variable:
        """Return the term of a rule's head that its facts are partitioned by."""
        return _key(rule, self.positions)

    @property
    def broadcast(self) -> Iterator[PartitionedRelation]:
        """The relations and classes that every partition reads completely."""
        return (relation for relation, at in self.positions.items() if at is _BROADCAST)

    def shown(self, rules: Iterable[Rule]) -> str:
        """Return the partitioning of the heads of rules as text."""
        heads = dict.fromkeys(PartitionedRelation.of(rule.head) for rule in rules)
        return ", ".join(f"{head} by argument {(self.positions[head] or 0) + 1}" for head in heads)


def fixpoint_partitioning(rules: Collection[Rule]) -> Partitioning | None:
    """Return a partitioning of a node's own facts, the leftmost positions first, or None.

    The facts of other nodes need no partitioning: a thread can filter each atom by another position.
    """
    heads = [rule.head for rule in rules]
    for draft in _drafts(rules, {}):
        if all(draft.keeps_key(rule, heads) for rule in rules):
            return Partitioning(draft.positions)
    return None


class CoPartitionedNodes:
    """Nodes with a common partitioning, added one after the other in topological order."""

    def __init__(self, size: Callable[[PartitionedRelation], int], limit: float) -> None:
        """Take a function that counts the facts of a relation, and the limit of broadcast facts."""
        self.partitioning = Partitioning()
        self._size = size
        self._limit = limit
        self._left_out: set[PartitionedRelation] = set()

    def take(self, rules: Sequence[Rule], *, ready: bool) -> bool:
        """Add a node, unless it is not ready, does not fit, or reads from a node that was left out."""
        blocked = any(read.meets(left_out) for read in reads(rules) for left_out in self._left_out)
        extended = self.partitioning.with_node(rules, self._fits) if ready and not blocked else None
        if extended is None:
            self._left_out.update(PartitionedRelation.of(rule.head) for rule in rules)
            return False
        self.partitioning = extended
        return True

    def _fits(self, partitioning: Partitioning) -> bool:
        return sum(map(self._size, partitioning.broadcast)) <= self._limit


def _key(rule: Rule, positions: Mapping[PartitionedRelation, int | None]) -> Term | Variable:
    return rule.head.args[positions[PartitionedRelation.of(rule.head)] or 0]


def _drafts(rules: Collection[Rule], known: Mapping[PartitionedRelation, int | None]) -> Iterator[_Draft]:
    """Yield every choice of positions for the heads of rules, the leftmost positions first."""
    heads = list(dict.fromkeys(PartitionedRelation.of(rule.head) for rule in rules))
    if any(rule.aggregate for rule in rules) or not all(head.arity for head in heads):
        return
    unknown = [head for head in heads if head not in known]
    # A class is partitioned by its members: its name is the same for all of them.
    choices = [range(head.arity if head.member_of is None else 1) for head in unknown]
    if prod(map(len, choices)) > _MOST_CHOICES:
        return
    for positions in product(*choices):
        draft = _Draft(dict(known))
        if all(draft.settle(head, at) for head, at in zip(unknown, positions, strict=True)):
            yield draft


class _Draft:
    """Positions of relations during the search."""

    def __init__(self, positions: dict[PartitionedRelation, int | None]) -> None:
        self.positions = positions

    def settle(self, relation: PartitionedRelation, position: int | None) -> bool:
        """Set the position of a relation; return False if it has another."""
        if any(other.meets(relation) and at != position for other, at in self.positions.items()):
            return False
        self.positions[relation] = position
        return True

    def serves(self, rule: Rule) -> bool:
        """Whether each partition can evaluate a rule on its own facts and the broadcast ones."""
        key = _key(rule, self.positions)
        if not isinstance(key, Variable):
            return False
        partitioned = False
        for atom in body_atoms(rule.body):
            if self._settle_by(key, atom):
                partitioned = partitioned or any(atom is conjunct for conjunct in rule.body)
            elif not self.settle(PartitionedRelation.of(atom), _BROADCAST):
                return False
        return partitioned

    def keeps_key(self, rule: Rule, heads: Collection[Atom]) -> bool:
        """Whether the key of a rule occurs in all its recursive atoms."""
        key = _key(rule, self.positions)
        return isinstance(key, Variable) and all(
            self._settle_by(key, atom) for atom in recursive_atoms(rule, heads).values()
        )

    def _settle_by(self, key: Variable, atom: Atom) -> bool:
        relation = PartitionedRelation.of(atom)
        return any(self.settle(relation, n) for n, arg in enumerate(atom.args) if arg == key)
