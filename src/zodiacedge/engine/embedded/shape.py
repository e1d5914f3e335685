"""What a node's rules are like, whatever the facts: found out once, used in every change.

A spot is a place of a body that reads facts. Each has questions of its own: what follows where the facts at
this very spot are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.embedded.programs import GIVEN, Question
from zodiacedge.engine.embedded.store import NO_CLASS, Relation, is_any_class
from zodiacedge.language.ast import Aggregate, Atom, Negation, Rule, Variable
from zodiacedge.language.checks import body_atoms
from zodiacedge.language.printer import format_rule
from zodiacedge.language.safety import analyse
from zodiacedge.plan.variants import recursive_places
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.engine.embedded.store import Store
    from zodiacedge.language.ast import Argument, Conjunct


class Spot(NamedTuple):
    """A place of a rule's body, or of the body of its aggregate, that reads facts."""

    key: str
    place: int
    inner: bool
    negated: bool


class NodeShape:
    """The rules of a node, and the questions that changes ask of them."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        """Look at the rules."""
        heads = [rule.head for rule in rules.values()]
        self.rules = rules
        self.keys = frozenset(rules)
        self.labels = tuple(rule.label or format_rule(rule) for rule in rules.values())
        self.atoms = [atom for rule in rules.values() for atom in body_atoms(rule.body)]
        # A node that derives `rdf:type` with a variable class keeps all of it in one table.
        self.typed = any(h.relation == RDF_TYPE and isinstance(h.args[-1], Variable) for h in heads)
        self.own_places = {key: recursive_places(rule, heads) for key, rule in rules.items()}
        self.recursive = any(self.own_places.values())
        # A row that holds an instance: its head, and what it needs of the node itself.
        self.widest_instance = max(len(self.instance_args(key)) for key in rules)
        self.aggregates = {key: rule.aggregate for key, rule in rules.items() if rule.aggregate}
        self.widest_binding = max((len(bindings_of(a)) for a in self.aggregates.values()), default=0)
        self._questions: dict[tuple[object, ...], Question] = {}
        self._spots: dict[Relation, tuple[Spot, ...]] = {}

    def own_atoms(self, key: str) -> list[Atom]:
        """Return the atoms of a rule that the node itself derives."""
        body = self.rules[key].body
        return [atom for atom in (body[place] for place in self.own_places[key]) if isinstance(atom, Atom)]

    def instance_args(self, key: str) -> tuple[Argument, ...]:
        """Return the arguments of a rule's head, and of what an instance needs of the node itself."""
        needs = (arg for atom in self.own_atoms(key) for arg in atom.args)
        return (*self.rules[key].head.args, *needs)

    def spots(self, store: Store, relation: Relation) -> tuple[Spot, ...]:
        """Return the spots that read a relation."""
        found = self._spots.get(relation)
        if found is None:
            found = tuple(
                spot
                for spot, atom in self._all_spots()
                if relation in store.relations(atom) or _is_of(relation, atom)
            )
            self._spots[relation] = found
        return found

    def _all_spots(self) -> Iterator[tuple[Spot, Atom]]:
        for key, rule in self.rules.items():
            bodies = [(rule.body, False)]
            if rule.aggregate:
                bodies.append((rule.aggregate.body, True))
            for body, inner in bodies:
                for place, conjunct in enumerate(body):
                    if isinstance(conjunct, Atom):
                        yield Spot(key, place, inner, negated=False), conjunct
                    elif isinstance(conjunct, Negation):
                        yield Spot(key, place, inner, negated=True), conjunct.atom

    # Questions.

    def heads_at(self, key: str, place: int) -> Question:
        """Ask for the heads of instances that have given rows at a place: facts, projections or groups."""
        name = ("heads", key, place)
        if name not in self._questions:
            rule = self.rules[key]
            args = self._args_at(rule.body, place)
            self._questions[name] = self._of_rule(key, rule.head.args, _with(rule.body, place, args), place)
        return self._questions[name]

    def groups_at(self, key: str, place: int) -> Question:
        """Ask for the groups of an aggregate's bindings that have given rows at a place."""
        name = ("groups", key, place)
        if name not in self._questions:
            aggregate = self.aggregates[key]
            args = self._args_at(aggregate.body, place)
            body = _with(aggregate.body, place, args)
            self._questions[name] = Question(aggregate.groups, body, place)
        return self._questions[name]

    def rows_of_groups(self, key: str) -> Question:
        """Ask for the rows of an aggregate that given groups have."""
        name = ("rows", key)
        if name not in self._questions:
            aggregate = self.aggregates[key]
            body = (Atom(GIVEN, aggregate.groups), aggregate)
            self._questions[name] = Question(columns_of(aggregate), body, 0, (key, aggregate))
        return self._questions[name]

    def bindings_of_groups(self, key: str, *, given: bool) -> Question:
        """Ask for the bindings that an aggregate folds, of given groups or of all."""
        name = ("bindings", key, given)
        if name not in self._questions:
            aggregate = self.aggregates[key]
            first = (Atom(GIVEN, aggregate.groups),) if given else ()
            body = (*first, *aggregate.body)
            self._questions[name] = Question(bindings_of(aggregate), body, 0 if given else None)
        return self._questions[name]

    def supported(self, key: str) -> Question:
        """Ask which of some given heads a rule derives."""
        name = ("supported", key)
        if name not in self._questions:
            head = self.rules[key].head.args
            self._questions[name] = self._of_rule(key, head, (Atom(GIVEN, head), *self.rules[key].body), 0)
        return self._questions[name]

    def instances(self, key: str) -> Question:
        """Ask for the instances of some given heads."""
        name = ("instances", key)
        if name not in self._questions:
            body = (Atom(GIVEN, self.rules[key].head.args), *self.rules[key].body)
            self._questions[name] = self._of_rule(key, self.instance_args(key), body, 0)
        return self._questions[name]

    def all_heads(self, key: str) -> Question:
        """Ask for all that a rule derives."""
        name = ("all", key)
        if name not in self._questions:
            rule = self.rules[key]
            self._questions[name] = self._of_rule(key, rule.head.args, rule.body, None)
        return self._questions[name]

    def projection(self, spot: Spot) -> tuple[Question, Question]:
        """Ask for values of a negated atom's outer variables: of given facts, and those with a match."""
        name = ("projection", *spot)
        if name not in self._questions:
            atom, keys = self._negated(spot)
            self._questions[name] = Question(keys, (Atom(GIVEN, atom.args),), 0)
            self._questions["match", *spot] = Question(keys, (Atom(GIVEN, keys), atom), 0)
        return self._questions[name], self._questions["match", *spot]

    def _negated(self, spot: Spot) -> tuple[Atom, tuple[Variable, ...]]:
        body = self.aggregates[spot.key].body if spot.inner else self.rules[spot.key].body
        conjunct = body[spot.place]
        if not isinstance(conjunct, Negation):
            raise TypeError(conjunct)
        return conjunct.atom, _outer(conjunct.atom, body)

    def _of_rule(
        self, key: str, head: tuple[Argument, ...], body: tuple[Conjunct, ...], place: int | None
    ) -> Question:
        aggregate = self.aggregates.get(key)
        return Question(
            head, body, place, (key, aggregate) if aggregate is not None and aggregate in body else None
        )

    def _args_at(self, body: tuple[Conjunct, ...], place: int) -> tuple[Argument, ...]:
        match body[place]:
            case Atom(args=args):
                return args
            case Negation(atom=atom):
                return _outer(atom, body)
            case Aggregate() as aggregate:
                return columns_of(aggregate)
            case conjunct:
                raise TypeError(conjunct)


def columns_of(aggregate: Aggregate) -> tuple[Variable, ...]:
    """Return what a row of an aggregate holds: its groups and its results."""
    return (*aggregate.groups, *(fold.target for fold in aggregate.folds))


def bindings_of(aggregate: Aggregate) -> tuple[Argument, ...]:
    """Return what a binding holds: groups, what is folded, and whatever else tells it from others."""
    first = (*aggregate.groups, *(fold.argument for fold in aggregate.folds))
    return (*first, *sorted(analyse(aggregate.body).bound.difference(first), key=lambda v: v.name))


def _outer(atom: Atom, body: tuple[Conjunct, ...]) -> tuple[Variable, ...]:
    """Return the variables of a negated atom that the body binds; the others are existential."""
    bound = analyse(body).bound
    return tuple(dict.fromkeys(a for a in atom.args if isinstance(a, Variable) and a in bound))


def _with(body: tuple[Conjunct, ...], place: int, args: tuple[Argument, ...]) -> tuple[Conjunct, ...]:
    return (*body[:place], Atom(GIVEN, args), *body[place + 1 :])


def _is_of(relation: Relation, atom: Atom) -> bool:
    return relation.member_of != NO_CLASS and is_any_class(atom)
