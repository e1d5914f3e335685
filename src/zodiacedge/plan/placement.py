"""Placement of facts for semi-naive rounds on hash partitions: where each atom of a node's rules is read.

Each partition evaluates the rules on its own facts and on relations that are broadcast, and sends what it
derives to the partitions that read it. So all placed atoms of a rule (those that are not broadcast) must have
one variable in common, the join key: a fact is placed by the hash of its term there. A relation that is
joined by several arguments is placed several times. A rule with one placed atom may read any placement. A
rule whose placed atoms have no variable in common is split into joins that have one: the rows of a join are
a relation of their own, placed by the key of the next.

Unlike `plan.partition`, derived facts may belong to other partitions: every recursion without aggregates and
evaluation errors can be placed, unless it needs a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.language.ast import Atom, Negation, Variable, variables
from zodiacedge.language.safety import analyse
from zodiacedge.plan.variants import can_fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from zodiacedge.language.ast import Conjunct, Rule

RelationName = tuple[str, int]
"""The name and the arity of a relation."""
Argument = int | None
"""The argument that a relation is placed by; None for the whole row."""


class PlacedRule(NamedTuple):
    """A rule, or a join of one, that a partition evaluates."""

    key: str
    head: Atom
    body: tuple[Conjunct, ...]
    placed: Mapping[int, Argument]
    """The placement that the atom at a position of the body reads; the others are broadcast."""


@dataclass(frozen=True)
class Placement:
    """The rules of a node as partitions evaluate them."""

    rules: tuple[PlacedRule, ...]
    arguments: Mapping[RelationName, tuple[Argument, ...]]
    """The placements of each relation; the first is its home."""
    heads: frozenset[RelationName]
    """The relations that the node derives; others are joins, or of other owners."""

    @classmethod
    def of(cls, rules: Mapping[str, Rule], is_small: Callable[[Atom], bool]) -> Placement | None:
        """Place the rules of a node; None if that is not possible.

        `is_small` says whether the relation of an atom that the node does not derive is broadcast.
        """
        if any(rule.aggregate or can_fail(rule.body) for rule in rules.values()):
            return None
        heads = frozenset(_name(rule.head) for rule in rules.values())
        search = _Search(set(heads), is_small)
        joins: list[_Join] = []
        for key, rule in rules.items():
            split = search.split(key, rule)
            if split is None:
                return None
            joins += split
        placed, arguments = search.place(joins)
        return cls(placed, arguments, heads)


class _Join(NamedTuple):
    key: str
    head: Atom
    body: tuple[Conjunct, ...]
    common: tuple[Variable, ...]
    """The variables that all placed atoms have."""


class _Search:
    def __init__(self, own: set[RelationName], is_small: Callable[[Atom], bool]) -> None:
        self._own = own
        self._is_small = is_small
        self._arguments: dict[RelationName, list[Argument]] = {}

    def split(self, key: str, rule: Rule) -> list[_Join] | None:
        """Split a rule into joins, each with a common variable; None if it needs a product."""
        joins: list[_Join] = []
        body = rule.body
        while True:
            placed = list(self._placed(body))
            if not any(isinstance(conjunct, Atom) for conjunct in placed):
                return None
            common = _common(placed)
            if common or len(placed) == 1:
                return [*joins, _Join(key, rule.head, body, common)]
            group = self._group(body, placed)
            if group is None:
                return None
            inside = {id(conjunct) for conjunct in group}
            rest = tuple(conjunct for conjunct in body if id(conjunct) not in inside)
            wanted = {v for conjunct in (rule.head, *rest) for v in variables(conjunct)}
            bound = dict.fromkeys(v for c in group if isinstance(c, Atom) for v in c.args if v in wanted)
            # A name that no predicate of a user can have.
            head = Atom(f"join {len(joins) + 1} of {key}", tuple(bound))
            self._own.add(_name(head))
            joins.append(_Join(key, head, group, _common(list(self._placed(group)))))
            body = (head, *rest)

    def _placed(self, body: Sequence[Conjunct]) -> Iterator[Atom | Negation]:
        for conjunct in body:
            if isinstance(conjunct, Atom | Negation) and self._is_placed(_atom(conjunct)):
                yield conjunct

    def _is_placed(self, atom: Atom) -> bool:
        # A proposition is a fact or none.
        return _name(atom) in self._own or (bool(atom.args) and not self._is_small(atom))

    def _group(
        self, body: tuple[Conjunct, ...], placed: Sequence[Atom | Negation]
    ) -> tuple[Conjunct, ...] | None:
        """Return the conjuncts to join first."""
        bound = analyse(body).bound
        largest: list[Atom | Negation] = []
        for key in dict.fromkeys(v for c in placed if isinstance(c, Atom) for v in variables(c)):
            atoms = [c for c in placed if isinstance(c, Atom) and key in c.args]
            known = {v for atom in atoms for v in variables(atom)}
            members = [
                c for c in placed if key in _atom(c).args and known.issuperset(bound & set(variables(c)))
            ]
            if len(members) > max(len(largest), 1):
                largest = members
        if largest:
            return tuple(largest)
        atoms = [c for c in placed if isinstance(c, Atom)]
        group = self._path(body, atoms) if len(atoms) > 1 else [c for c in body if isinstance(c, Atom)]
        return tuple(group) if group and len(group) > 1 else None

    def _path(self, body: tuple[Conjunct, ...], placed: Sequence[Atom]) -> list[Atom] | None:
        """Return a placed atom and the fewest broadcast atoms that connect it with another placed atom."""
        small = [c for c in body if isinstance(c, Atom) and not self._is_placed(c)]
        paths = [[atom] for atom in placed]
        for path in paths:
            known = {v for atom in path for v in variables(atom)}
            if any(known & set(variables(atom)) for atom in placed if atom is not path[0]):
                return path
            if len(path) <= len(small):
                paths += [[*path, c] for c in small if c not in path and known & set(variables(c))]
        return None

    def place(
        self, joins: Sequence[_Join]
    ) -> tuple[tuple[PlacedRule, ...], dict[RelationName, tuple[Argument, ...]]]:
        """Choose the arguments that relations are placed by, as few as possible."""
        keys: dict[int, Variable] = {}
        for number, join in enumerate(joins):
            placed = list(self._placed(join.body))
            if len(placed) > 1:
                heads = set(join.head.args)
                key = min(join.common, key=lambda v: (self._missing(placed, v), v not in heads))
                keys[number] = key
                for conjunct in placed:
                    known = self._arguments.setdefault(_name(_atom(conjunct)), [])
                    if self._position(_atom(conjunct), key) not in known:
                        known.append(self._position(_atom(conjunct), key))
        placed_rules = [self._rule(join, keys.get(number)) for number, join in enumerate(joins)]
        for join in joins:
            self._arguments.setdefault(_name(join.head), [None])
        return tuple(placed_rules), {name: tuple(known) for name, known in self._arguments.items()}

    def _missing(self, placed: Sequence[Atom | Negation], key: Variable) -> int:
        atoms = map(_atom, placed)
        return sum(self._position(atom, key) not in self._arguments.get(_name(atom), ()) for atom in atoms)

    def _position(self, atom: Atom, key: Variable) -> int:
        """Return an argument of an atom that is the key, if possible one that it is placed by already."""
        positions = [n for n, arg in enumerate(atom.args) if arg == key]
        known = self._arguments.get(_name(atom), ())
        return next((n for n in positions if n in known), positions[0])

    def _rule(self, join: _Join, key: Variable | None) -> PlacedRule:
        placed: dict[int, Argument] = {}
        for position, conjunct in enumerate(join.body):
            if isinstance(conjunct, Atom | Negation) and self._is_placed(_atom(conjunct)):
                atom = _atom(conjunct)
                placed[position] = self._position(atom, key) if key else self._any(atom, join.head)
        return PlacedRule(join.key, join.head, join.body, placed)

    def _any(self, atom: Atom, head: Atom) -> Argument:
        """Return a placement to read where any will do: one that keeps heads local, if possible."""
        kept = [
            n
            for n, arg in enumerate(atom.args)
            if isinstance(arg, Variable) and _name(head) == _name(atom) and head.args[n] == arg
        ]
        known = self._arguments.setdefault(_name(atom), [])
        if not known:
            # The whole row divides the rows most evenly.
            known.append(kept[0] if kept else None)
        return next((n for n in kept if n in known), known[0])


def _name(atom: Atom) -> RelationName:
    return atom.relation, len(atom.args)


def _atom(conjunct: Atom | Negation) -> Atom:
    return conjunct.atom if isinstance(conjunct, Negation) else conjunct


def _common(placed: Sequence[Atom | Negation]) -> tuple[Variable, ...]:
    first, *others = map(_atom, placed)
    return tuple(v for v in dict.fromkeys(variables(first)) if all(v in other.args for other in others))
