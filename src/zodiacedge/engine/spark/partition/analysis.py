"""How nodes fall into parts that never need each other: by the term that their rules hand down.

Choose a position for each relation, or each class, that nodes derive, such that every rule finds the term at
its head's position in the atoms that it reads. What has that term at one position is dealt out by it, and all
facts that a part needs of it come to that part; what has it at none is read whole by every part. Nothing is
both, and what the nodes derive themselves is never read whole. Then an instance of a rule belongs to one
part, and so does the fact that it gives, whether rules are recursive, negate, compute or none of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.spark.storage.files import Relation
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.language.checks import body_atoms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# There are few ways to choose in any node that somebody wrote; more are not looked at.
_MOST_WAYS = 256
# Stands for a position where a source is read whole.
_WHOLE = None


class PartitionedRead(NamedTuple):
    """A relation, or one class of `rdf:type`."""

    relation: Relation
    member_of: Term | None = None

    def meets(self, other: PartitionedRead) -> bool:
        """Whether a fact can be of both."""
        return self.relation == other.relation and (
            self.member_of is None or other.member_of is None or self.member_of == other.member_of
        )

    def __str__(self) -> str:
        """Return its name as people know it."""
        return self.relation.name if self.member_of is None else str(getattr(self.member_of, "value", ""))


def source_of(atom: Atom) -> PartitionedRead:
    """Return what an atom is about."""
    relation = Relation.of(atom)
    if relation.typed and not isinstance(atom.args[1], Variable):
        return PartitionedRead(relation, atom.args[1])
    return PartitionedRead(relation)


def reads(rules: Iterable[Rule]) -> Iterator[PartitionedRead]:
    """Yield what the bodies of rules read."""
    return (source_of(atom) for rule in rules for atom in body_atoms(rule.body))


@dataclass(frozen=True)
class Partitioning:
    """Which position each source is dealt out by; None where it is read whole."""

    positions: Mapping[PartitionedRead, int | None] = field(default_factory=dict)

    def with_node(
        self, rules: Sequence[Rule], fits: Callable[[Partitioning], bool] = lambda _: True
    ) -> Partitioning | None:
        """Return a dealing that serves the rules of one more node as well, the leftmost positions first.

        `fits` says whether one is good for anything besides.
        """
        heads = list(dict.fromkeys(source_of(rule.head) for rule in rules))
        fresh = [head for head in heads if head not in self.positions]
        if any(rule.aggregate for rule in rules) or not all(head.relation.arity for head in heads):
            return None
        # Of a class the members are dealt out: its name is the same for all of them.
        ways = [range(head.relation.arity if head.member_of is None else 1) for head in fresh]
        if prod(map(len, ways)) > _MOST_WAYS:
            return None
        for chosen in product(*ways):
            draft = _Draft(dict(self.positions))
            settled = all(draft.settle(head, at) for head, at in zip(fresh, chosen, strict=True))
            if settled and all(map(draft.serves, rules)):
                found = Partitioning(draft.positions)
                if fits(found):
                    return found
        return None

    @property
    def whole(self) -> Iterator[PartitionedRead]:
        """What every part reads whole."""
        return (source for source, at in self.positions.items() if at is _WHOLE)

    def shown(self, rules: Iterable[Rule]) -> str:
        """Return by which arguments what rules derive is dealt out, as people read it."""
        heads = dict.fromkeys(source_of(rule.head) for rule in rules)
        return ", ".join(f"{head} by argument {(self.positions[head] or 0) + 1}" for head in heads)


def partitioning(rules: Sequence[Rule]) -> Partitioning | None:
    """Return how one node can be dealt out, if it can."""
    return Partitioning().with_node(rules)


class Neighbours:
    """Nodes that fall into the same parts, found one after the other, in topological order."""

    def __init__(self, size: Callable[[PartitionedRead], int], most: float) -> None:
        """Take what tells how many facts there are of a source, and how many every part may read whole."""
        self.dealing = Partitioning()
        self._size = size
        self._most = most
        self._later: set[PartitionedRead] = set()

    def take(self, rules: Sequence[Rule], *, ready: bool) -> bool:
        """Take a node, unless it is not ready, does not fit, or reads what one that was left out derives."""
        waits = any(one.meets(other) for one in reads(rules) for other in self._later)
        wider = self.dealing.with_node(rules, self._fits) if ready and not waits else None
        if wider is None:
            self._later.update(source_of(rule.head) for rule in rules)
            return False
        self.dealing = wider
        return True

    def _fits(self, partitioning: Partitioning) -> bool:
        return sum(map(self._size, partitioning.whole)) <= self._most


class _Draft:
    """Positions that may still turn out to be wrong."""

    def __init__(self, positions: dict[PartitionedRead, int | None]) -> None:
        self.positions = positions

    def settle(self, source: PartitionedRead, position: int | None) -> bool:
        """Take a position for a source, unless it has another."""
        if any(other.meets(source) and at != position for other, at in self.positions.items()):
            return False
        self.positions[source] = position
        return True

    def serves(self, rule: Rule) -> bool:
        """Whether every part finds all that it needs for a rule, and nothing that is another part's."""
        kept = rule.head.args[self.positions[source_of(rule.head)] or 0]
        if not isinstance(kept, Variable):
            return False
        dealt = False
        positive = [conjunct for conjunct in rule.body if isinstance(conjunct, Atom)]
        for atom in body_atoms(rule.body):
            source = source_of(atom)
            places = [n for n, arg in enumerate(atom.args) if arg == kept]
            if any(self.settle(source, n) for n in places):
                dealt = dealt or any(atom is one for one in positive)
            elif not self.settle(source, _WHOLE):
                return False
        return dealt
