"""Instances of rules whose head is a given fact, looked up in the facts of one version.

A lookup joins the body of a rule with rows of values for the variables of its head: the same plan serves all
facts of the rule, many at a time. Variables that the body computes cannot be given; their values are
compared.
A rule with an aggregate is taken apart: the groups that the head and the other atoms allow, the bindings of
the aggregate's body in these groups, which are folded here, and then the rest of the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import LooksAhead
from zodiacedge.engine.semantics.aggregates import accepts, fold_group
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.explain.naming import named, named_atom
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binding,
    Comparison,
    Fact,
    Query,
    Variable,
    variables,
)
from zodiacedge.language.safety import analyse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge.engine.api import Lookup, Lookups
    from zodiacedge.engine.registry import Registry
    from zodiacedge.explain.budget import Budget
    from zodiacedge.language.ast import Argument, Conjunct, Rule
    from zodiacedge.terms import Term

    Row = tuple[Term, ...]

# The most bindings that one fold takes together.
_MOST_FOLDED = 1_000_000


class Instance(NamedTuple):
    """An instance of a rule: its head, the values of its variables, and the facts of its positive atoms."""

    fact: Fact
    shape: LookupRule
    row: Row
    """The values of `shape.variables`."""
    premises: tuple[Fact, ...]

    @property
    def values(self) -> dict[Variable, Term]:
        """The values of the rule's variables, without those inside an aggregate."""
        return dict(zip(self.shape.variables, self.row, strict=True))


@dataclass(frozen=True, eq=False)
class LookupRule:
    """A resolved rule, as lookups read it."""

    key: str
    rule: Rule

    @cached_property
    def body(self) -> tuple[Conjunct, ...]:
        """The body, with a name for each `_` of a positive atom: whole facts are looked up."""
        return named(self.rule.body)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that the body binds, in the order of their first appearance."""
        bound = analyse(self.body).bound
        seen = (
            v
            for conjunct in self.body
            for v in (conjunct.columns if isinstance(conjunct, Aggregate) else variables(conjunct))
        )
        return tuple(dict.fromkeys(v for v in seen if v in bound))

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The positive atoms outside an aggregate."""
        return tuple(conjunct for conjunct in self.body if isinstance(conjunct, Atom))

    @cached_property
    def aggregate(self) -> Aggregate | None:
        """The aggregate, with names for `_` in its body."""
        return next((c for c in self.body if isinstance(c, Aggregate)), None)

    @cached_property
    def rest(self) -> tuple[Conjunct, ...]:
        """The body without the aggregate."""
        return tuple(conjunct for conjunct in self.body if not isinstance(conjunct, Aggregate))

    @cached_property
    def computed(self) -> tuple[Variable, ...]:
        """The variables of the head that the body computes, so that no lookup can start from them."""
        targets = {c.variable for c in self.body if isinstance(c, Binding)}
        return tuple(v for v in self.head_variables if v in targets)

    @cached_property
    def head_variables(self) -> tuple[Variable, ...]:
        """The variables of the head, each once."""
        return tuple(dict.fromkeys(v for v in self.rule.head.args if isinstance(v, Variable)))

    def head_of(self, fact: Fact) -> dict[Variable, Term] | None:
        """Return the values of the head's variables for a fact, or None if it is no instance of the head."""
        return match(self.rule.head, fact)

    def instance(self, row: Row) -> Instance:
        """Return the instance with these values of the rule's variables."""
        values = dict(zip(self.variables, row, strict=True))
        premises = dict.fromkeys(filled(atom, values) for atom in self.atoms)
        return Instance(filled(self.rule.head, values), self, row, tuple(premises))


def match(atom: Atom, fact: Fact) -> dict[Variable, Term] | None:
    """Return the values of an atom's variables under which it is a fact, or None."""
    if atom.relation != fact.relation or len(atom.args) != len(fact.args):
        return None
    values: dict[Variable, Term] = {}
    for arg, term in zip(atom.args, fact.args, strict=True):
        if isinstance(arg, Variable):
            if values.setdefault(arg, term) != term:
                return None
        elif arg != term:
            return None
    return values


def filled(atom: Atom, values: Mapping[Variable, Term]) -> Fact:
    """Return the fact that an atom is under values of all its variables."""
    return Fact(atom.relation, tuple([values[a] if isinstance(a, Variable) else a for a in atom.args]))


class Join(NamedTuple):
    """A body, the variables that get values, and the columns to return; the name stands for all of it."""

    name: tuple[object, ...]
    body: tuple[Conjunct, ...]
    parameters: tuple[Variable, ...]
    columns: tuple[Argument, ...]


class InstanceLookups:
    """The instances of rules in one version. Lookups are planned once and kept."""

    def __init__(self, lookups: Lookups, registry: Registry) -> None:
        """Read one version."""
        self._lookups = lookups
        self.joins_explicit = lookups.joins_explicit
        self._ahead = lookups if isinstance(lookups, LooksAhead) else None
        self.looks_ahead = self._ahead is not None
        self._registry = registry
        self._planned: dict[tuple[object, ...], Lookup] = {}

    def rows(self, join: Join, given: Sequence[Row], most: int) -> tuple[Sequence[Row], bool]:
        """Return rows of a join for given values of its parameters, and whether these are all."""
        return self._lookup(join)(given, most)

    def _lookup(self, join: Join) -> Lookup:
        lookup = self._planned.get(join.name)
        if lookup is None:
            query = Query(join.columns, join.body)
            lookup = self._planned[join.name] = self._lookups.prepare(query, join.parameters)
        return lookup

    def look_ahead(
        self, wanted: Iterable[tuple[LookupRule, Sequence[Fact]]], patterns: Iterable[Atom]
    ) -> None:
        """Fetch what the instances of rules with some heads take, and the facts of patterns, together."""
        if self._ahead is None:
            return
        joins = [
            self._plain_join(shape, [v for fact in facts if (v := shape.head_of(fact)) is not None])
            for shape, facts in wanted
            if shape.aggregate is None
        ]
        self._ahead.look_ahead([(self._lookup(join), given) for join, given in joins], patterns)

    def heads(
        self, shape: LookupRule, facts: Sequence[Fact], budget: Budget, most: int
    ) -> tuple[list[Instance], bool]:
        """Return the instances of a rule whose heads are among some facts, and whether these are all."""
        wanted: dict[Fact, dict[Variable, Term]] = {}
        for fact in facts:
            values = shape.head_of(fact)
            if values is not None:
                wanted[fact] = values
        if not wanted:
            return [], True
        if shape.aggregate is None:
            rows, complete = self._plain(shape, list(wanted.values()), most)
        else:
            rows, complete = self._aggregated(shape, shape.aggregate, list(wanted.values()), most)
        budget.spend(len(rows))
        instances = [shape.instance(row) for row in rows]
        return [instance for instance in instances if instance.fact in wanted], complete

    def _plain(
        self, shape: LookupRule, wanted: Sequence[Mapping[Variable, Term]], most: int
    ) -> tuple[Sequence[Row], bool]:
        return self.rows(*self._plain_join(shape, wanted), most)

    def _plain_join(
        self, shape: LookupRule, wanted: Sequence[Mapping[Variable, Term]]
    ) -> tuple[Join, list[Row]]:
        """Return the join of a rule without an aggregate, and the values of its parameters."""
        computed = shape.computed
        given = tuple(v for v in shape.head_variables if v not in computed)
        # Equal values may be different terms: the caller compares heads.
        names = tuple(Variable(f".wanted {v.name}") for v in computed)
        tests = tuple(Comparison(v, "=", name) for v, name in zip(computed, names, strict=True))
        join = Join(("instances", shape.key), (*shape.body, *tests), (*given, *names), shape.variables)
        rows = dict.fromkeys(tuple(values[v] for v in (*given, *computed)) for values in wanted)
        return join, list(rows)

    def _aggregated(
        self,
        shape: LookupRule,
        aggregate: Aggregate,
        wanted: Sequence[Mapping[Variable, Term]],
        most: int,
    ) -> tuple[Sequence[Row], bool]:
        groups, complete = self._groups(shape, aggregate, wanted, most)
        folded, all_folded = self.fold_groups(shape.key, aggregate, groups)
        complete = complete and all_folded
        columns = aggregate.columns
        results = {group: result for group, (result, _) in folded.items()}
        heads = [v for v in shape.head_variables if v not in columns and v not in shape.computed]
        parameters = tuple(dict.fromkeys((*columns, *heads)))
        given: dict[Row, None] = {}
        for values in wanted:
            for group, result in results.items():
                row = dict(zip(columns, (*group, *result), strict=True))
                if all(row.get(v, term) == term for v, term in values.items()):
                    row |= {v: values[v] for v in heads}
                    given[tuple(row[v] for v in parameters)] = None
        if not given:
            return [], complete
        if not shape.rest:
            order = [parameters.index(v) for v in shape.variables]
            return [tuple(row[n] for n in order) for row in given], complete
        join = Join(("rest", shape.key), shape.rest, parameters, shape.variables)
        rows, all_rows = self.rows(join, list(given), most)
        return rows, complete and all_rows

    def _groups(
        self,
        shape: LookupRule,
        aggregate: Aggregate,
        wanted: Sequence[Mapping[Variable, Term]],
        most: int,
    ) -> tuple[Sequence[Row], bool]:
        """Return the groups that a head can be about."""
        known = tuple(v for v in aggregate.groups if v in shape.head_variables)
        given = list(dict.fromkeys(tuple(values[v] for v in known) for values in wanted))
        if len(known) == len(aggregate.groups):
            order = [known.index(v) for v in aggregate.groups]
            return [tuple(row[n] for n in order) for row in given], True
        beside = {v for atom in shape.atoms for v in variables(atom)}
        if beside.issuperset(set(aggregate.groups).difference(known)):
            start = tuple(v for v in shape.head_variables if v in beside or v in known)
            rows = list(dict.fromkeys(tuple(values[v] for v in start) for values in wanted))
            return self.rows(Join(("beside", shape.key), shape.atoms, start, aggregate.groups), rows, most)
        join = Join(("groups", shape.key), aggregate.body, known, aggregate.groups)
        return self.rows(join, given, most)

    def fold_groups(
        self, key: str, aggregate: Aggregate, groups: Sequence[Row]
    ) -> tuple[dict[Row, tuple[Row, list[dict[Variable, Term]]]], bool]:
        """Return the results of groups and the bindings that they are folded from, and whether all are there.

        A group without bindings, or whose fold has no value, is left out.
        """
        bound = analyse(aggregate.body).bound
        seen = dict.fromkeys(v for c in aggregate.body for v in variables(c) if v in bound)
        columns = tuple(dict.fromkeys((*aggregate.groups, *seen)))
        join = Join(("folded", key), aggregate.body, aggregate.groups, columns)
        rows, complete = self.rows(join, list(groups), _MOST_FOLDED)
        if not complete:
            return {}, False
        width = len(aggregate.groups)
        members: dict[Row, list[dict[Variable, Term]]] = {}
        for row in rows:
            binding = dict(zip(columns, row, strict=True))
            try:
                for result in aggregate.folds:
                    accepts(result.op, [binding[v] for v in result.arguments])
            except NoValue:
                continue
            members.setdefault(row[:width], []).append(binding)
        folded: dict[Row, tuple[Row, list[dict[Variable, Term]]]] = {}
        for group, bindings in members.items():
            try:
                folded[group] = fold_bindings(aggregate, bindings, self._registry), bindings
            except NoValue:
                continue
        return folded, True

    def visible(self, pattern: Atom, most: int) -> tuple[list[Fact], bool]:
        """Return the visible facts that are instances of an atom, and whether these are all."""
        whole = named_atom(pattern)
        names = tuple(dict.fromkeys(v for v in whole.args if isinstance(v, Variable)))
        constants = tuple(a for a in whole.args if not isinstance(a, Variable))
        is_class = pattern.predicate.arity == 1
        # The constants are parameters, so that one plan serves all atoms alike; a class is part of the plan.
        kept = constants[-1:] if is_class else ()
        given = constants[:-1] if is_class else constants
        parameters: list[Variable] = []
        args: list[Argument] = []
        for number, arg in enumerate(whole.args):
            if isinstance(arg, Variable) or (is_class and number == 1):
                args.append(arg)
            else:
                parameters.append(Variable(f".given {number}"))
                args.append(parameters[-1])
        key = ("visible", pattern.relation, tuple(a.name if isinstance(a, Variable) else a for a in args))
        atom = Atom(pattern.relation, tuple(args))
        columns = tuple(dict.fromkeys((*parameters, *names)))
        join = Join(key + kept, (atom,), tuple(parameters), columns)
        rows, complete = self.rows(join, [given], most)
        return [filled(atom, dict(zip(columns, row, strict=True))) for row in rows], complete

    def explicit_among(self, facts: Iterable[Fact]) -> frozenset[Fact]:
        """Return the explicit facts among some facts."""
        return self._lookups.explicit_among(tuple(facts))


def fold_bindings(
    aggregate: Aggregate, bindings: Sequence[Mapping[Variable, Term]], registry: Registry
) -> Row:
    """Return the results of an aggregate over the bindings of a group, or raise `NoValue`."""
    return tuple(fold_group(result, bindings, registry) for result in aggregate.folds)
