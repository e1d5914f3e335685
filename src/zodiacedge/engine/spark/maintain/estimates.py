"""How many rows a region of nodes reads, and is expected to derive.

A node that was evaluated before is expected to derive as much again. Another one derives as many facts as the
smallest atom of each rule matches, and where it is recursive some times more; what nodes before it in the
region are expected to derive counts for what it reads.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.strategy import is_recursive
from zodiacedge.engine.spark.storage.files import Relation, Segment
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.language.checks import body_atoms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# How many facts a recursive node is taken to derive from each that it reads, when nothing else is known.
_GROWTH = 10
# A relation, or a class of it.
_Source = tuple[Relation, "int | None"]


class Estimates:
    """Counts what nodes read and derive, node after node."""

    def __init__(
        self,
        stated: Segment,
        segments: Mapping[frozenset[str], Segment],
        keys: Mapping[Term, int],
        before: Iterable[Segment] = (),
    ) -> None:
        """Count what there is; who needs what there was as well reads whichever is more."""
        self._keys = keys
        self._there = _counted((stated, *segments.values())) | _counted(before)
        self._coming: Counter[_Source] = Counter()
        self._of_any_class = 0
        self._read: set[_Source] = set()
        self.total = 0

    def add(self, rules: Sequence[Rule], kept: Segment | None) -> None:
        """Take a node, with what it has if it was evaluated before."""
        for atom in (atom for rule in rules for atom in body_atoms(rule.body)):
            source = self._source(atom)
            if source not in self._read:
                self._read.add(source)
                self.total += self._there[source]
        if kept is not None:
            self.total += kept.rows
            return
        derived = self._expected(rules)
        self.total += derived
        for source in {self._source(rule.head) for rule in rules}:
            self._coming[source] += derived
            if source[1] is not None:
                self._coming[source[0], None] += derived
            elif source[0].typed:
                self._of_any_class += derived

    def there(self, relation: Relation, member_of: int | None) -> int:
        """Return how many facts of a relation, or of a class of it, there are."""
        return self._there[relation, member_of]

    def alone(self, rules: Sequence[Rule]) -> int:
        """Return how many rows a node reads and derives by itself, with what is expected of others."""
        atoms = [atom for rule in rules for atom in body_atoms(rule.body)]
        reads = {self._source(atom): self._size(atom) for atom in atoms}
        return sum(reads.values()) + self._expected(rules)

    def _expected(self, rules: Sequence[Rule]) -> int:
        smallest = (
            min((self._size(atom) for atom in rule.body if isinstance(atom, Atom)), default=1)
            for rule in rules
        )
        return sum(smallest) * (_GROWTH if is_recursive(rules) else 1)

    def _size(self, atom: Atom) -> int:
        source = self._source(atom)
        of_any = self._of_any_class if source[1] is not None else 0
        return self._there[source] + self._coming[source] + of_any

    def _source(self, atom: Atom) -> _Source:
        relation = Relation.of(atom)
        if relation.typed and not isinstance(atom.args[1], Variable):
            return relation, self._keys[atom.args[1]]
        return relation, None


def _counted(owners: Iterable[Segment]) -> Counter[_Source]:
    found: Counter[_Source] = Counter()
    for owner in owners:
        for relation, content in owner.contents.items():
            found[relation, None] += content.rows
            for key, count in content.classes().items():
                found[relation, key] += count
    return found
