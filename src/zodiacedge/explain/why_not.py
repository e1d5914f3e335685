"""The search for what a rule lacks: the largest part of its body that holds, and what fails first.

Of the positive atoms a largest set is kept that facts match together, with the values that the head gives;
earlier atoms are preferred. Bindings that fail one other condition only are looked up for each condition in
turn. Otherwise the other conditions are tried on some bindings of the atoms, and those come first that fail
in the fewest. Nothing is followed further: each atom that fails can be asked in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.explain.instances import Join, written
from zodiacedge.explain.missing import (
    Attempt,
    BodyFails,
    FailedComparison,
    HeadDiffers,
    NoBindings,
    NoResult,
    NoSuchFact,
    OtherValue,
    PresentFact,
)
from zodiacedge.explain.premises import aggregate_premise, partly_filled, plain_premise, substituted
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binding,
    Comparison,
    Fact,
    Negation,
    Variable,
    variables,
)
from zodiacedge.language.safety import analyse
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from zodiacedge.engine.registry import Registry
    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.instances import InstanceLookups, LookupRule
    from zodiacedge.explain.missing import Failing
    from zodiacedge.explain.proof import Premise, Statement
    from zodiacedge.language.ast import Conjunct
    from zodiacedge.terms import Term

    Values = dict[Variable, Term]

# The bindings that are shown of a rule, those that are tried, and the sets of atoms that are tried.
_SHOWN = 3
_TRIED = 200
_MOST_SETS = 128


def head_difference(shape: LookupRule, asked: Atom) -> HeadDiffers | None:
    """Return why the head of a rule cannot match, or None if it can."""
    values: dict[Variable, Term] = {}
    for position, (arg, wanted) in enumerate(zip(shape.rule.head.args, asked.args, strict=True)):
        if isinstance(wanted, Variable):
            continue
        expected = values.setdefault(arg, wanted) if isinstance(arg, Variable) else arg
        if expected != wanted:
            return HeadDiffers(shape.key, shape.rule, position, expected, wanted)
    return None


@dataclass(frozen=True)
class BodySearch:
    """A search for the bindings of a rule's body that come closest to an atom."""

    instances: InstanceLookups
    registry: Registry
    budget: Budget
    asked: Atom
    statements: Callable[[Collection[Fact]], Mapping[Fact, Statement]]

    def fails(self, shape: LookupRule) -> BodyFails:
        """Return the attempts of a rule whose head matches."""
        wanted = self._wanted(shape)
        targets = {c.variable for c in shape.body if isinstance(c, Binding)}
        if shape.aggregate:
            targets.update(fold.target for fold in shape.aggregate.folds)
        given = {v: term for v, term in wanted.items() if v not in targets}
        attempts: dict[tuple[object, ...], Attempt] = {}
        for kept, values in self._bindings(shape, given):
            attempt = self._attempt(shape, kept, values, wanted)
            if attempt.failing:
                attempts.setdefault(tuple(sorted((v.name, t) for v, t in attempt.values.items())), attempt)
            if self.budget.look():
                break
        best = sorted(attempts.values(), key=_distance)
        return BodyFails(shape.key, shape.rule, tuple(best[:_SHOWN]))

    def _wanted(self, shape: LookupRule) -> Values:
        pairs = zip(shape.rule.head.args, self.asked.args, strict=True)
        return {
            arg: term for arg, term in pairs if isinstance(arg, Variable) and not isinstance(term, Variable)
        }

    def _bindings(self, shape: LookupRule, given: Values) -> Iterator[tuple[tuple[Atom, ...], Values]]:
        """Yield bindings of a largest set of atoms that facts match together, likely ones first."""
        atoms = shape.atoms
        if atoms:
            yield from self._near_misses(shape, given)
        tried = 0
        for size in range(len(atoms), 0, -1):
            found = False
            for kept in combinations(range(len(atoms)), size):
                tried += 1
                if tried > _MOST_SETS or self.budget.ended:
                    break
                chosen = tuple(atoms[n] for n in kept)
                for values in self._rows(
                    ("kept", kept), shape, chosen, given, _TRIED if not found else _SHOWN
                ):
                    found = True
                    yield chosen, values
            if found:
                return
        yield (), given

    def _near_misses(self, shape: LookupRule, given: Values) -> Iterator[tuple[tuple[Atom, ...], Values]]:
        """Yield bindings of all atoms that fail in one other condition at most."""
        tests = [c for c in shape.rest if isinstance(c, Comparison | Negation)]
        if len(tests) < 2:
            return
        for left_out in tests:
            body = tuple(c for c in shape.rest if c is not left_out)
            bound = analyse(body, given).bound.union(given)
            if any(v not in bound for c in body if isinstance(c, Comparison) for v in variables(c)):
                # A condition on the result of an aggregate.
                continue
            name = ("without", shape.rest.index(left_out))
            for values in self._rows(name, shape, body, given, _SHOWN):
                yield shape.atoms, values

    def _rows(
        self,
        name: tuple[object, ...],
        shape: LookupRule,
        body: tuple[Conjunct, ...],
        given: Values,
        most: int,
    ) -> Iterator[Values]:
        parameters = tuple(given)
        seen = (v for c in body if isinstance(c, Atom) for v in variables(c))
        columns = tuple(dict.fromkeys((*parameters, *seen)))
        join = Join(("why not", shape.key, *name, parameters), body, parameters, columns)
        rows, complete = self.instances.rows(join, [tuple(given.values())], most)
        self.budget.spend(len(rows))
        if not complete and most == _TRIED:
            self.budget.cut = True
        for row in rows:
            yield dict(zip(columns, row, strict=True))

    def _attempt(
        self, shape: LookupRule, kept: Sequence[Atom], values: Mapping[Variable, Term], wanted: Values
    ) -> Attempt:
        """Return what holds under the values of the kept atoms, and what fails."""
        known = dict(values)
        results: dict[int, Premise | Failing] = {}
        waiting = dict(enumerate(shape.body))
        progress = True
        while progress:
            progress = False
            for number, conjunct in list(waiting.items()):
                if not self._is_ready(conjunct, known, shape):
                    continue
                results[number] = self._tried(shape, conjunct, kept, known, wanted)
                del waiting[number]
                progress = True
        failing = [r for _, r in sorted(results.items()) if isinstance(r, _FAILING)]
        holds = [r for _, r in sorted(results.items()) if not isinstance(r, _FAILING)]
        return Attempt(known, tuple(holds), tuple(failing), tuple(map(written, waiting.values())))

    @staticmethod
    def _is_ready(conjunct: Conjunct, known: Mapping[Variable, Term], shape: LookupRule) -> bool:
        match conjunct:
            case Atom():
                return True
            case Negation(atom=atom):
                # A variable that only this atom has may have any value.
                return all(v in known for v in variables(atom) if v in shape.variables)
            case Aggregate(groups=groups):
                return all(v in known for v in groups)
            case Binding(expression=expression):
                return all(v in known for v in variables(expression))
            case _:
                return all(v in known for v in variables(conjunct))

    def _tried(
        self, shape: LookupRule, conjunct: Conjunct, kept: Sequence[Atom], known: Values, wanted: Values
    ) -> Premise | Failing:
        match conjunct:
            case Atom():
                if conjunct in kept:
                    return plain_premise(conjunct, known, self.registry)
                pattern = partly_filled(conjunct, known)
                return NoSuchFact(
                    written(conjunct), written(pattern), under_question=_covered(pattern, self.asked)
                )
            case Negation(atom=atom):
                facts, _ = self.instances.visible(partly_filled(atom, known), 1)
                if not facts:
                    return plain_premise(conjunct, known, self.registry)
                explicit = bool(self.instances.explicit_among(facts))
                stated = self.statements(facts) if explicit else {}
                return PresentFact(atom, facts[0], stated.get(facts[0]), explicit)
            case Comparison():
                return self._compared(conjunct, known)
            case Binding():
                return self._bound(conjunct, known, wanted)
            case Aggregate():
                return self._folded(shape, conjunct, known, wanted)

    def _compared(self, comparison: Comparison, known: Values) -> Premise | Failing:
        try:
            premise = plain_premise(comparison, known, self.registry)
            left, right = (evaluate(s, known, self.registry) for s in (comparison.left, comparison.right))
            holds = compare(left, comparison.operator, right)
        except NoValue as problem:
            filled = Comparison(
                substituted(comparison.left, known), comparison.operator, substituted(comparison.right, known)
            )
            return NoResult(comparison, filled, str(problem))
        return premise if holds else FailedComparison(premise)  # type: ignore[arg-type] # of a comparison

    def _bound(self, binding: Binding, known: Values, wanted: Values) -> Premise | Failing:
        try:
            value = evaluate(binding.expression, known, self.registry)
        except NoValue as problem:
            filled = Binding(binding.variable, substituted(binding.expression, known))
            return NoResult(binding, filled, str(problem))
        known[binding.variable] = value
        expected = wanted.get(binding.variable, value)
        if expected != value:
            return OtherValue(binding, binding.variable, value, expected)
        return plain_premise(binding, known, self.registry)

    def _folded(
        self, shape: LookupRule, aggregate: Aggregate, known: Values, wanted: Values
    ) -> Premise | Failing:
        group, shown = tuple(known[v] for v in aggregate.groups), written(aggregate)
        folded, complete = self.instances.fold_groups(shape.key, aggregate, [group])
        if not complete:
            return NoResult(shown, shown, "it has too many bindings")
        if group not in folded:
            return NoBindings(shown, dict(zip(aggregate.groups, group, strict=True)))
        for fold, value in zip(aggregate.folds, folded[group][0], strict=True):
            known[fold.target] = value
        for fold in aggregate.folds:
            expected = wanted.get(fold.target)
            if expected is not None and expected != known[fold.target]:
                return OtherValue(shown, fold.target, known[fold.target], expected)
        return aggregate_premise(shape, aggregate, known, self.instances, self.registry)


_FAILING = (NoSuchFact, PresentFact, FailedComparison, NoResult, OtherValue, NoBindings)


def _distance(attempt: Attempt) -> tuple[object, ...]:
    """Return the key that puts the attempts that come closest first, and those alike in a fixed order."""
    return len(attempt.failing) + len(attempt.open), tuple(map(order_key, attempt.values.values()))


def _covered(pattern: Atom, asked: Atom) -> bool:
    """Return whether an atom asks for nothing but what is under question already."""
    if (pattern.relation, len(pattern.args)) != (asked.relation, len(asked.args)):
        return False
    return all(a == b or isinstance(b, Variable) for a, b in zip(pattern.args, asked.args, strict=True))
