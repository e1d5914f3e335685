"""What a node's rules are like, whatever the facts: found out once, used in every change.

A spot is a place of a body that reads facts. Each has questions of its own: what follows where the facts at
this very spot are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.embedded.evaluate.modules import recognise
from zodiacedge.engine.embedded.maintain.delta_query import DELTA, DeltaQuery
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, in_pairs, is_any_class
from zodiacedge.language.ast import Aggregate, Atom, Negation, Rule, Variable, body_atoms
from zodiacedge.language.printer import format_rule
from zodiacedge.language.safety import analyse
from zodiacedge.plan.variants import readings, recursive_atoms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.versions.changed_rows import ChangedRows
    from zodiacedge.language.ast import Argument, Conjunct


class Occurrence(NamedTuple):
    """A place of a rule's body, or of the body of its aggregate, that reads facts."""

    key: str
    place: int
    inner: bool
    negated: bool


class NodeRules:
    """The rules of a node, and the questions that changes ask of them."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        """Look at the rules."""
        heads = [rule.head for rule in rules.values()]
        self.rules = rules
        self.keys = frozenset(rules)
        self.labels = tuple(rule.label or format_rule(rule) for rule in rules.values())
        self.atoms = [atom for rule in rules.values() for atom in body_atoms(rule.body)]
        # A node that derives `rdf:type` with a variable class keeps all of it in one table.
        self.typed = in_pairs(heads)
        self.own_places = {key: recursive_atoms(rule, heads) for key, rule in rules.items()}
        self.recursive = any(self.own_places.values())
        # A row that holds an instance: its head, and what it needs of the node itself.
        self.widest_instance = max(len(self.instance_args(key)) for key in rules)
        self.aggregates = {key: rule.aggregate for key, rule in rules.items() if rule.aggregate}
        self.widest_binding = max((len(bindings_of(a)) for a in self.aggregates.values()), default=0)
        self.module = recognise(tuple(rules.values()))
        self.one_instance_each = _is_alone(rules)
        """Whether no fact has two instances: it goes with the one that it has."""
        self.heads = {key: Relation(rule.head.relation, len(rule.head.args)) for key, rule in rules.items()}
        self._questions: dict[tuple[object, ...], DeltaQuery] = {}
        self._columns: dict[tuple[object, ...], tuple[int, ...] | None] = {}
        self._spots: dict[Relation, tuple[Occurrence, ...]] = {}
        self._relations: dict[Atom, tuple[Relation, ...] | None] = {}
        self._any_class = any(map(is_any_class, self.atoms))
        self._read: tuple[Relation, ...] | None = None

    def own_atoms(self, key: str) -> list[Atom]:
        """Return the atoms of a rule that the node itself derives."""
        return list(self.own_places[key].values())

    def instance_args(self, key: str) -> tuple[Argument, ...]:
        """Return the arguments of a rule's head, and of what an instance needs of the node itself."""
        needs = (arg for atom in self.own_atoms(key) for arg in atom.args)
        return (*self.rules[key].head.args, *needs)

    def relations(self, store: Database, atom: Atom) -> tuple[Relation, ...] | None:
        """Return the relations whose rows may match an atom; None if they are all classes there may be."""
        if atom not in self._relations:
            self._relations[atom] = None if is_any_class(atom) else tuple(store.relations(atom))
        return self._relations[atom]

    def read_of(self, store: Database, touched: ChangedRows) -> list[Relation]:
        """Return the relations that the node reads, of those of which something was noted."""
        if self._any_class:
            return [one for one in touched.relations() if self.spots(store, one)]
        if self._read is None:
            self._read = tuple(dict.fromkeys(one for atom in self.atoms for one in store.relations(atom)))
        return [one for one in self._read if one in touched]

    def spots(self, store: Database, relation: Relation) -> tuple[Occurrence, ...]:
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

    def _all_spots(self) -> Iterator[tuple[Occurrence, Atom]]:
        for key, rule in self.rules.items():
            for one in readings(rule):
                yield Occurrence(key, one.position, one.inner, one.negated), one.atom

    # Questions.

    @property
    def is_planned(self) -> bool:
        """Whether something was asked already."""
        return bool(self._questions)

    def question(self, name: tuple[object, ...], make: Callable[[], DeltaQuery]) -> DeltaQuery:
        """Return a question by its name; make it if nobody asked it yet."""
        found = self._questions.get(name)
        if found is None:
            found = self._questions[name] = make()
        return found

    def heads_at(self, key: str, place: int) -> DeltaQuery:
        """Ask for the heads of instances that have given rows at a place: facts, projections or groups."""
        rule = self.rules[key]
        return self.question(
            ("heads", key, place), lambda: self._of_rule(key, rule.head.args, _with(rule.body, place), place)
        )

    def head_columns(self, key: str) -> tuple[int, ...] | None:
        """Return the columns of an aggregate's rows that are the heads, if no search is needed for them."""
        if key not in self.aggregates or len(self.rules[key].body) > 1 or self.heads[key] == TYPED:
            return None
        name = (key,)
        if name not in self._columns:
            head, columns = self.rules[key].head.args, columns_of(self.aggregates[key])
            self._columns[name] = _places(head, columns) if len(head) == len(columns) else None
        return self._columns[name]

    def keys_of(self, spot: Occurrence) -> tuple[int, ...] | None:
        """Return the columns of a negated atom's facts that hold its outer variables, if all match it."""
        if spot not in self._columns:
            atom, keys = self._negated(spot)
            self._columns[spot] = _places(keys, atom.args)
        return self._columns[spot]

    def groups_at(self, key: str, place: int) -> DeltaQuery:
        """Ask for the groups of an aggregate's bindings that have given rows at a place."""
        one = self.aggregates[key]
        return self.question(
            ("groups", key, place), lambda: DeltaQuery(one.groups, _with(one.body, place), place)
        )

    def rows_of_groups(self, key: str) -> DeltaQuery:
        """Ask for the rows of an aggregate that given groups have."""
        one = self.aggregates[key]
        return self.question(
            ("rows", key),
            lambda: DeltaQuery(columns_of(one), (Atom(DELTA, one.groups), one), 0, (key, one)),
        )

    def bindings_of_groups(self, key: str) -> DeltaQuery:
        """Ask for the bindings that an aggregate folds for given groups."""
        one = self.aggregates[key]
        return self.question(
            ("bindings", key), lambda: DeltaQuery(bindings_of(one), (Atom(DELTA, one.groups), *one.body), 0)
        )

    def all_bindings(self, key: str) -> DeltaQuery:
        """Ask for all bindings that an aggregate folds."""
        one = self.aggregates[key]
        return self.question(("all bindings", key), lambda: DeltaQuery(bindings_of(one), one.body, None))

    def supported(self, key: str) -> DeltaQuery:
        """Ask which of some given heads a rule derives."""
        head, body = self.rules[key].head.args, self.rules[key].body
        return self.question(
            ("supported", key), lambda: self._of_rule(key, head, (Atom(DELTA, head), *body), 0)
        )

    def instances(self, key: str) -> DeltaQuery:
        """Ask for the instances of some given heads."""
        head, body = self.rules[key].head.args, self.rules[key].body
        return self.question(
            ("instances", key),
            lambda: self._of_rule(key, self.instance_args(key), (Atom(DELTA, head), *body), 0),
        )

    def all_heads(self, key: str) -> DeltaQuery:
        """Ask for all that a rule derives."""
        rule = self.rules[key]
        return self.question(("all", key), lambda: self._of_rule(key, rule.head.args, rule.body, None))

    def projected(self, spot: Occurrence) -> DeltaQuery:
        """Ask for the values that a negated atom's outer variables have in given facts."""

        def make() -> DeltaQuery:
            atom, keys = self._negated(spot)
            return DeltaQuery(keys, (Atom(DELTA, atom.args),), 0)

        return self.question(("projected", *spot), make)

    def matched(self, spot: Occurrence) -> DeltaQuery:
        """Ask which given values of a negated atom's outer variables have a match."""

        def make() -> DeltaQuery:
            atom, keys = self._negated(spot)
            return DeltaQuery(keys, (Atom(DELTA, keys), atom), 0)

        return self.question(("matched", *spot), make)

    def _negated(self, spot: Occurrence) -> tuple[Atom, tuple[Variable, ...]]:
        body = self.aggregates[spot.key].body if spot.inner else self.rules[spot.key].body
        conjunct = body[spot.place]
        if not isinstance(conjunct, Negation):
            raise TypeError(conjunct)
        return conjunct.atom, _outer(conjunct.atom, body)

    def _of_rule(
        self, key: str, head: tuple[Argument, ...], body: tuple[Conjunct, ...], place: int | None
    ) -> DeltaQuery:
        aggregate = self.aggregates.get(key)
        return DeltaQuery(
            head, body, place, (key, aggregate) if aggregate is not None and aggregate in body else None
        )


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


def _with(body: tuple[Conjunct, ...], place: int) -> tuple[Conjunct, ...]:
    """Return a body whose place gets its rows from outside."""
    match body[place]:
        case Atom(args=args):
            given: tuple[Argument, ...] = args
        case Negation(atom=atom):
            given = _outer(atom, body)
        case Aggregate() as aggregate:
            given = columns_of(aggregate)
        case conjunct:
            raise TypeError(conjunct)
    return (*body[:place], Atom(DELTA, given), *body[place + 1 :])


def _places(wanted: Sequence[Argument], given: Sequence[Argument]) -> tuple[int, ...] | None:
    """Return where some arguments stand among others, if these are different variables and hold them all."""
    if len(set(given)) < len(given) or not all(isinstance(arg, Variable) for arg in given):
        return None
    return tuple(map(given.index, wanted)) if set(wanted) <= set(given) else None


def _is_alone(rules: Mapping[str, Rule]) -> bool:
    """Whether there is one rule, and its head tells all that its body binds."""
    if len(rules) > 1:
        return False
    (rule,) = rules.values()
    return analyse(rule.body).bound <= set(rule.head.args)


def _is_of(relation: Relation, atom: Atom) -> bool:
    return relation.is_class and is_any_class(atom)
