"""The properties of a node's rules that no fact changes, computed once and used in every change.

An occurrence is a position of a body that reads facts. It has delta queries of its own, with the delta rows
at this position.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.embedded.evaluate.modules import recognise
from zodiacedge.engine.embedded.maintain.delta_query import DELTA, DeltaQuery
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, class_of, in_pairs, is_any_class
from zodiacedge.language.ast import Aggregate, Atom, Negation, Rule, Variable, body_atoms
from zodiacedge.language.printer import format_rule
from zodiacedge.language.safety import analyse
from zodiacedge.language.unify import pattern_of, unifiable
from zodiacedge.plan.variants import readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.evaluate.modules import Module
    from zodiacedge.engine.embedded.maintain.delta_query import AssembledQuery
    from zodiacedge.engine.embedded.maintain.shapes.windowed import WindowedShape
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.versions.changed_rows import ChangedRows
    from zodiacedge.language.ast import Argument, Conjunct
    from zodiacedge.language.unify import Pattern
    from zodiacedge.terms import Term

    # The kind of a query, the key of the rule that it is about, if it is one, and positions.
    QueryName = tuple[str, object, *tuple[object, ...]]

# The kind of the queries that depend on the other rules of the node too: they return its own atoms.
_INSTANCES = "instances"


class Occurrence(NamedTuple):
    """A position of a rule's body, or of the body of its aggregate, that reads facts."""

    key: str
    position: int
    inner: bool
    negated: bool


class Readers(NamedTuple):
    """The rules of a node that read a relation: their keys, and whether one of them joins its rows."""

    keys: frozenset[str]
    join: bool


class NodeRules:
    """The rules of a node, and the delta queries that changes evaluate on them."""

    def __init__(self, rules: Mapping[str, Rule], parents: Iterable[NodeRules] = ()) -> None:
        """Take the rules; most of their properties are worked out when a change first asks for them.

        Args:
            rules: The rules by key.
            parents: Nodes that have some of these rules, and delta queries for them.
        """
        self.rules = rules
        self.keys = frozenset(rules)
        self.labels = tuple(rule.label or format_rule(rule) for rule in rules.values())
        self._delta_queries: dict[QueryName, DeltaQuery] = {}
        self._planned: set[object] = set()
        self._readers: dict[Relation, Readers] = {}
        self._columns: dict[tuple[object, ...], tuple[int, ...] | None] = {}
        self._occurrences: dict[Relation, tuple[Occurrence, ...]] = {}
        self._relations: dict[Atom, tuple[Relation, ...] | None] = {}
        self._read: tuple[Relation, ...] | None = None
        self._own_positions: dict[str, Mapping[int, Atom]] = {}
        for parent in parents:
            self._share(parent)

    def _share(self, parent: NodeRules) -> None:
        """Take what a parent knows of shared rules: own atoms, if it has the same heads, and queries."""
        shared = {key for key, rule in parent.rules.items() if self.rules.get(key) is rule}
        if self._head_patterns == parent._head_patterns:
            self._own_positions |= {key: parent.own_positions[key] for key in shared}
        for name, query in parent._delta_queries.items():
            kind, key, *_ = name
            # A query depends on its rule alone, unless it returns the own atoms too.
            if key in shared and (kind != _INSTANCES or self.own_positions[key] == parent.own_positions[key]):
                self._delta_queries[name] = query
                self._planned.add(key)

    @cached_property
    def atoms(self) -> list[Atom]:
        """The atoms of all bodies."""
        return [atom for rule in self.rules.values() for atom in body_atoms(rule.body)]

    @cached_property
    def _head_patterns(self) -> frozenset[Pattern]:
        return frozenset(pattern_of(rule.head) for rule in self.rules.values())

    @cached_property
    def module(self) -> Module | None:
        """The module of the rules, if they have one."""
        return recognise(tuple(self.rules.values()))

    @cached_property
    def windowed(self) -> WindowedShape | None:
        """The shape of a rule that reads windows, if its bindings can be counted."""
        # That module builds on this one.
        from zodiacedge.engine.embedded.maintain.shapes.windowed import windowed_shape  # noqa: PLC0415 - as said

        return None if self.recursive else windowed_shape(self.rules)

    def count_no_windows(self) -> None:
        """Maintain the node without counting from now on: its values have no order of one kind."""
        self.windowed = None

    @cached_property
    def typed(self) -> bool:
        """Whether a rule derives `rdf:type` with a variable class, so that one table has all classes."""
        return in_pairs(rule.head for rule in self.rules.values())

    @cached_property
    def own_positions(self) -> Mapping[str, Mapping[int, Atom]]:
        """The atoms of each rule's body that the node itself derives, by position."""
        heads: dict[tuple[str, Term | None], list[Atom]] = {}
        for rule in self.rules.values():
            heads.setdefault((rule.head.relation, class_of(rule.head)), []).append(rule.head)

        def is_own(atom: Atom) -> bool:
            # A node may derive many classes: an atom is compared with the heads of its own class only.
            own = (atom.relation, class_of(atom)), (atom.relation, None)
            places = heads if is_any_class(atom) else own
            return any(unifiable(head, atom) for place in places for head in heads.get(place, ()))

        known = self._own_positions
        return {
            key: known[key]
            if key in known
            else {n: c for n, c in enumerate(rule.body) if isinstance(c, Atom) and is_own(c)}
            for key, rule in self.rules.items()
        }

    @cached_property
    def recursive(self) -> bool:
        """Whether the rules read facts that they derive."""
        return any(self.own_positions.values())

    @cached_property
    def widest_instance(self) -> int:
        """The most columns of a row of an instance: the arguments of its head and of the own atoms."""
        return max(len(self.instance_args(key)) for key in self.rules)

    @cached_property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The aggregates of the rules that have one."""
        return {key: rule.aggregate for key, rule in self.rules.items() if rule.aggregate}

    @cached_property
    def widest_binding(self) -> int:
        """The most columns of a binding of an aggregate."""
        return max((len(bindings_of(a)) for a in self.aggregates.values()), default=0)

    @cached_property
    def one_instance_each(self) -> bool:
        """Whether no fact has two instances: it is deleted with its only instance."""
        return _have_one_instance_each(self.rules)

    @cached_property
    def heads(self) -> Mapping[str, Relation]:
        """The relation of each rule's head."""
        return {key: Relation(rule.head.relation, len(rule.head.args)) for key, rule in self.rules.items()}

    @cached_property
    def _any_class(self) -> bool:
        return any(map(is_any_class, self.atoms))

    def own_atoms(self, key: str) -> list[Atom]:
        """Return the atoms of a rule's body that the node itself derives."""
        return list(self.own_positions[key].values())

    def instance_args(self, key: str) -> tuple[Argument, ...]:
        """Return the arguments of a rule's head and of the atoms of its body that the node itself derives."""
        needs = (arg for atom in self.own_atoms(key) for arg in atom.args)
        return (*self.rules[key].head.args, *needs)

    def relations(self, store: Database, atom: Atom) -> tuple[Relation, ...] | None:
        """Return the relations whose rows may match an atom; None if these are all classes."""
        if atom not in self._relations:
            self._relations[atom] = None if is_any_class(atom) else tuple(store.relations(atom))
        return self._relations[atom]

    def read_of(self, store: Database, changed: ChangedRows) -> list[Relation]:
        """Return the relations with changed rows that the node reads."""
        if self._any_class:
            return [relation for relation in changed.relations() if self.occurrences(store, relation)]
        if self._read is None:
            self._read = tuple(dict.fromkeys(r for atom in self.atoms for r in store.relations(atom)))
        return [relation for relation in self._read if relation in changed]

    def occurrences(self, store: Database, relation: Relation) -> tuple[Occurrence, ...]:
        """Return the occurrences that read a relation."""
        occurrences = self._occurrences.get(relation)
        if occurrences is None:
            occurrences = tuple(
                occurrence
                for occurrence, atom in self._all_occurrences()
                if relation in store.relations(atom) or _is_of(relation, atom)
            )
            self._occurrences[relation] = occurrences
        return occurrences

    def readers_of(self, store: Database, relation: Relation) -> Readers:
        """Return the rules that read a relation."""
        readers = self._readers.get(relation)
        if readers is None:
            keys = frozenset(occurrence.key for occurrence in self.occurrences(store, relation))
            joins = any(len(self.rules[key].body) > 1 for key in keys)
            readers = self._readers[relation] = Readers(keys, joins)
        return readers

    def programs(self) -> Iterator[AssembledQuery]:
        """Yield the programs that are kept for later changes."""
        for query in self._delta_queries.values():
            yield from query.programs

    def forget_classes(self) -> None:
        """Drop what is known of classes by their ids, which may become ids of other classes."""
        self._occurrences.clear()
        self._readers.clear()

    def _all_occurrences(self) -> Iterator[tuple[Occurrence, Atom]]:
        for key, rule in self.rules.items():
            for reading in readings(rule):
                yield Occurrence(key, reading.position, reading.inner, reading.negated), reading.atom

    # Delta queries.

    @property
    def is_planned(self) -> bool:
        """Whether a delta query was made."""
        return bool(self._delta_queries)

    def unplanned(self, keys: Iterable[str]) -> int:
        """Count the keys of rules for which no delta query was made."""
        return len(set(keys) - self._planned)

    def delta_query(self, name: QueryName, make: Callable[[], DeltaQuery]) -> DeltaQuery:
        """Return a delta query by its name; make it if it is missing."""
        query = self._delta_queries.get(name)
        if query is None:
            query = self._delta_queries[name] = make()
            self._planned.add(name[1])
        return query

    def heads_at(self, key: str, position: int) -> DeltaQuery:
        """Return the query for the heads of instances with the delta rows at a position of the body.

        The delta rows are facts, values of a negated atom's outer variables, or rows of an aggregate.
        """
        rule = self.rules[key]
        return self.delta_query(
            ("heads", key, position),
            lambda: self._of_rule(key, rule.head.args, with_delta(rule.body, position), position),
        )

    def head_columns(self, key: str) -> tuple[int, ...] | None:
        """Return the columns of an aggregate's rows that are the heads, if the heads need no join."""
        if key not in self.aggregates or len(self.rules[key].body) > 1 or self.heads[key] == TYPED:
            return None
        name = (key,)
        if name not in self._columns:
            head, columns = self.rules[key].head.args, columns_of(self.aggregates[key])
            self._columns[name] = _positions_of(head, columns) if len(head) == len(columns) else None
        return self._columns[name]

    def keys_of(self, occurrence: Occurrence) -> tuple[int, ...] | None:
        """Return the columns of a negated atom's outer variables, if every row of its relation matches it."""
        if occurrence not in self._columns:
            atom, keys = self._negated(occurrence)
            self._columns[occurrence] = _positions_of(keys, atom.args)
        return self._columns[occurrence]

    def groups_at(self, key: str, position: int) -> DeltaQuery:
        """Return the query for the groups of an aggregate's bindings with the delta rows at a position."""
        aggregate = self.aggregates[key]
        return self.delta_query(
            ("groups", key, position),
            lambda: DeltaQuery(aggregate.groups, with_delta(aggregate.body, position), position),
        )

    def rows_of_groups(self, key: str) -> DeltaQuery:
        """Return the query for the rows of an aggregate whose groups are the delta rows."""
        aggregate = self.aggregates[key]
        return self.delta_query(
            ("rows", key),
            lambda: DeltaQuery(
                columns_of(aggregate), (Atom(DELTA, aggregate.groups), aggregate), 0, (key, aggregate)
            ),
        )

    def bindings_of_groups(self, key: str) -> DeltaQuery:
        """Return the query for the bindings that an aggregate folds in the groups of the delta rows."""
        aggregate = self.aggregates[key]
        return self.delta_query(
            ("bindings", key),
            lambda: DeltaQuery(bindings_of(aggregate), (Atom(DELTA, aggregate.groups), *aggregate.body), 0),
        )

    def all_bindings(self, key: str) -> DeltaQuery:
        """Return the query for all bindings that an aggregate folds."""
        aggregate = self.aggregates[key]
        return self.delta_query(
            ("all bindings", key), lambda: DeltaQuery(bindings_of(aggregate), aggregate.body, None)
        )

    def supported(self, key: str) -> DeltaQuery:
        """Return the query for the heads among the delta rows that a rule derives."""
        head, body = self.rules[key].head.args, self.rules[key].body
        return self.delta_query(
            ("supported", key), lambda: self._of_rule(key, head, (Atom(DELTA, head), *body), 0)
        )

    def instances(self, key: str) -> DeltaQuery:
        """Return the query for the instances of a rule whose heads are the delta rows."""
        head, body = self.rules[key].head.args, self.rules[key].body
        return self.delta_query(
            (_INSTANCES, key),
            lambda: self._of_rule(key, self.instance_args(key), (Atom(DELTA, head), *body), 0),
        )

    def all_heads(self, key: str) -> DeltaQuery:
        """Return the query for all heads that a rule derives."""
        rule = self.rules[key]
        return self.delta_query(("all", key), lambda: self._of_rule(key, rule.head.args, rule.body, None))

    def projected(self, occurrence: Occurrence) -> DeltaQuery:
        """Return the query for the values of a negated atom's outer variables in the delta rows."""

        def make() -> DeltaQuery:
            atom, keys = self._negated(occurrence)
            return DeltaQuery(keys, (Atom(DELTA, atom.args),), 0)

        return self.delta_query(("projected", *occurrence), make)

    def matched(self, occurrence: Occurrence) -> DeltaQuery:
        """Return the query for the delta rows, values of a negated atom's outer variables, with a match."""

        def make() -> DeltaQuery:
            atom, keys = self._negated(occurrence)
            return DeltaQuery(keys, (Atom(DELTA, keys), atom), 0)

        return self.delta_query(("matched", *occurrence), make)

    def _negated(self, occurrence: Occurrence) -> tuple[Atom, tuple[Variable, ...]]:
        body = self.aggregates[occurrence.key].body if occurrence.inner else self.rules[occurrence.key].body
        conjunct = body[occurrence.position]
        if not isinstance(conjunct, Negation):
            raise TypeError(conjunct)
        return conjunct.atom, _outer(conjunct.atom, body)

    def _of_rule(
        self, key: str, head: tuple[Argument, ...], body: tuple[Conjunct, ...], position: int | None
    ) -> DeltaQuery:
        aggregate = self.aggregates.get(key)
        return DeltaQuery(
            head, body, position, (key, aggregate) if aggregate is not None and aggregate in body else None
        )


def columns_of(aggregate: Aggregate) -> tuple[Variable, ...]:
    """Return the columns of an aggregate's rows: groups and results."""
    return (*aggregate.groups, *(fold.target for fold in aggregate.folds))


def bindings_of(aggregate: Aggregate) -> tuple[Argument, ...]:
    """Return the columns of an aggregate's bindings: groups, folded arguments, and all other variables."""
    first = (*aggregate.groups, *aggregate.arguments)
    return (*first, *sorted(analyse(aggregate.body).bound.difference(first), key=lambda v: v.name))


def _outer(atom: Atom, body: tuple[Conjunct, ...]) -> tuple[Variable, ...]:
    """Return the variables of a negated atom that the body binds; the others are existential."""
    bound = analyse(body).bound
    return tuple(dict.fromkeys(a for a in atom.args if isinstance(a, Variable) and a in bound))


def with_delta(body: tuple[Conjunct, ...], position: int) -> tuple[Conjunct, ...]:
    """Return a body with the delta rows at a position."""
    match body[position]:
        case Atom(args=args):
            columns: tuple[Argument, ...] = args
        case Negation(atom=atom):
            columns = _outer(atom, body)
        case Aggregate() as aggregate:
            columns = columns_of(aggregate)
        case conjunct:
            raise TypeError(conjunct)
    return (*body[:position], Atom(DELTA, columns), *body[position + 1 :])


def _positions_of(wanted: Sequence[Argument], columns: Sequence[Argument]) -> tuple[int, ...] | None:
    """Return the positions of arguments among columns; None unless these are distinct variables with all."""
    if len(set(columns)) < len(columns) or not all(isinstance(arg, Variable) for arg in columns):
        return None
    return tuple(map(columns.index, wanted)) if set(wanted) <= set(columns) else None


def _have_one_instance_each(rules: Mapping[str, Rule]) -> bool:
    """Whether there is one rule, and its head has all variables that its body binds."""
    if len(rules) > 1:
        return False
    (rule,) = rules.values()
    return analyse(rule.body).bound <= set(rule.head.args)


def _is_of(relation: Relation, atom: Atom) -> bool:
    return relation.is_class and is_any_class(atom)
