"""A second evaluator, as dumb as possible: no graph, no plan, no index.

Rules are applied level by level (the levels of the generator, not the graph's) until nothing changes.
A body is evaluated by trying every fact for every atom in the order the author wrote; only then are
bindings, comparisons and negated atoms looked at, in whatever order works. Values, comparisons and folds
are the engine's own functions: these have directed tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.registry import Registry
from zodiacedge.engine.semantics.aggregates import accepts, fold
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binding,
    Comparison,
    Conjunct,
    Fact,
    Negation,
    Rule,
    Variable,
    variables,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from strategies.schema import Schema
    from zodiacedge.terms import Term

_Bound = dict[Variable, "Term"]


def _unified(atom: Atom, fact: Fact, bound: _Bound) -> _Bound | None:
    if atom.relation != fact.relation or len(atom.args) != len(fact.args):
        return None
    longer = dict(bound)
    for arg, term in zip(atom.args, fact.args, strict=True):
        if (longer.setdefault(arg, term) if isinstance(arg, Variable) else arg) != term:
            return None
    return longer


@dataclass(slots=True)
class Brute:
    """Facts, and rules applied to them without any cleverness."""

    facts: set[Fact]
    errors: set[frozenset[tuple[Variable, Term]]] = field(default_factory=set)

    @classmethod
    def model(cls, rules: Iterable[Rule], facts: Iterable[Fact], schema: Schema) -> Brute:
        """Return the perfect model of resolved rules."""
        brute = cls(set(facts))
        by_level: dict[int, list[Rule]] = {}
        for rule in rules:
            by_level.setdefault(schema.level(rule.head), []).append(rule)
        for level in sorted(by_level):
            before = -1
            while before < len(brute.facts):
                before = len(brute.facts)
                for rule in by_level[level]:
                    brute.facts |= brute.heads(rule)
        return brute

    def heads(self, rule: Rule) -> set[Fact]:
        """Return the heads of all instances of a rule whose bodies hold; `errors` has the dropped ones."""
        self.errors.clear()
        return {
            Fact(
                rule.head.relation, tuple(bound[a] if isinstance(a, Variable) else a for a in rule.head.args)
            )
            for bound in self.solutions(rule.body)
        }

    def solutions(self, body: tuple[Conjunct, ...]) -> Iterator[_Bound]:
        """Yield the bindings under which a body holds."""
        choices: list[_Bound] = [{}]
        for conjunct in body:
            if isinstance(conjunct, Atom):
                tried = (_unified(conjunct, f, b) for b in choices for f in self.facts)
                choices = [b for b in tried if b is not None]
            elif isinstance(conjunct, Aggregate):
                rows = self._rows(conjunct)
                choices = [
                    {**b, **r} for b in choices for r in rows if all(b.get(v, r[v]) == r[v] for v in r)
                ]
        for bound in choices:
            verdict = self._judge([c for c in body if not isinstance(c, Atom | Aggregate)], bound)
            if verdict is None:
                self.errors.add(frozenset(bound.items()))
            elif verdict:
                yield bound

    def _judge(self, tests: list[Conjunct], bound: _Bound) -> bool | None:
        # Bindings first, in any order that works; `bound` is extended. None is an error.
        broken: set[Variable] = set()
        bindings = [c for c in tests if isinstance(c, Binding)]
        error = False
        while bindings:
            ready = [c for c in bindings if all(v in bound or v in broken for v in variables(c.expression))]
            for binding in ready:
                bindings.remove(binding)
                try:
                    if broken.intersection(variables(binding.expression)):
                        raise NoValue  # noqa: TRY301 - one place where an error is noted
                    bound[binding.variable] = evaluate(binding.expression, bound, Registry())
                except NoValue:
                    error = True
                    broken.add(binding.variable)
        for test in tests:
            if isinstance(test, Binding) or broken.intersection(variables(test)):
                continue
            try:
                if not self._holds(test, bound):
                    return False
            except NoValue:
                error = True
        return None if error else True

    def _holds(self, test: Conjunct, bound: Mapping[Variable, Term]) -> bool:
        if isinstance(test, Negation):
            return all(_unified(test.atom, f, dict(bound)) is None for f in self.facts)
        assert isinstance(test, Comparison)
        left, right = (evaluate(side, bound, Registry()) for side in (test.left, test.right))
        return compare(left, test.operator, right)

    def _rows(self, aggregate: Aggregate) -> list[_Bound]:
        groups: dict[tuple[Term, ...], list[_Bound]] = {}
        for bound in self.solutions(aggregate.body):
            try:
                for one in aggregate.folds:
                    accepts(one.op, [bound[one.argument]])
            except NoValue:
                self.errors.add(frozenset(bound.items()))
            else:
                groups.setdefault(tuple(bound[v] for v in aggregate.groups), []).append(bound)
        rows: list[_Bound] = []
        for key, members in groups.items():
            row = dict(zip(aggregate.groups, key, strict=True))
            try:
                for one in aggregate.folds:
                    terms = [m[one.argument] for m in members]
                    row[one.target] = fold(
                        one.op, list(dict.fromkeys(terms)) if one.distinct else terms, Registry()
                    )
            except NoValue:
                self.errors.add(frozenset(zip(aggregate.groups, key, strict=True)))
            else:
                rows.append(row)
        return rows
