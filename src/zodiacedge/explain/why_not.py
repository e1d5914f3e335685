"""The search for what a rule lacks: the largest part of its body that holds, and what fails first.

Of the positive atoms a largest set is kept that facts match together, with the values that the head gives;
earlier atoms are preferred. Bindings that fail one other condition only are looked up for each condition in
turn. Otherwise the other conditions are tried on some bindings of the atoms, and those come first that fail
in the fewest. Nothing is followed further: each atom that fails can be asked in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.explain.instances import Join, LookupRule
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
from zodiacedge.explain.naming import substituted, written
from zodiacedge.explain.premises import aggregate_premise, partly_filled, plain_premise
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
from zodiacedge.terms import IRI, BlankNode, Literal, order_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from zodiacedge.engine.registry import Registry
    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.instances import InstanceLookups
    from zodiacedge.explain.missing import Failing
    from zodiacedge.explain.proof import Premise, Statement
    from zodiacedge.explain.search import LookupRules
    from zodiacedge.language.ast import Conjunct
    from zodiacedge.terms import Term

    Values = dict[Variable, Term]

# The bindings that are shown of a rule, those that are tried, and the sets of atoms that are tried.
_SHOWN = 3
_TRIED = 200
_MOST_SETS = 128
_TERMS = (IRI, BlankNode, Literal)


class HeadMatch(NamedTuple):
    """What a rule's variables must be for its head to be an instance of the atom that is asked."""

    values: Mapping[Variable, Term]
    equal: tuple[Comparison, ...]
    """Variables of the head that the atom asks to be equal, as it repeats a variable."""


def match_head(shape: LookupRule, asked: Atom) -> HeadMatch | HeadDiffers:
    """Match the head of a rule with an atom, whose variables are others than the rule's of the same name."""
    above: dict[object, object] = {}

    def top(item: object) -> object:
        while item in above:
            item = above[item]
        return item

    head = shape.rule.head.args
    for position, (arg, wanted) in enumerate(zip(head, asked.args, strict=True)):
        left, right = top(arg), top(("asked", wanted) if isinstance(wanted, Variable) else wanted)
        if left == right:
            continue
        if isinstance(left, _TERMS) and isinstance(right, _TERMS):
            return HeadDiffers(shape.key, shape.rule, position, left, right)
        # A constant stays on top.
        lower, upper = (right, left) if isinstance(left, _TERMS) else (left, right)
        above[lower] = upper
    tops = {v: top(v) for v in shape.head_variables}
    first: dict[object, Variable] = {}
    for variable, item in tops.items():
        first.setdefault(item, variable)
    values = {v: item for v, item in tops.items() if isinstance(item, _TERMS)}
    equal = [
        Comparison(first[item], "=", v)
        for v, item in tops.items()
        if not isinstance(item, _TERMS) and first[item] != v
    ]
    return HeadMatch(values, tuple(equal))


@dataclass(frozen=True)
class BodySearch:
    """A search for the bindings of a rule's body that come closest to an atom."""

    rules: LookupRules
    instances: InstanceLookups
    registry: Registry
    budget: Budget
    asked: Atom
    statements: Callable[[Collection[Fact]], Mapping[Fact, Statement]]

    def fails(self, shape: LookupRule, head: HeadMatch) -> BodyFails:
        """Return the attempts of a rule whose head matches."""
        key, rule, wanted = shape.key, shape.rule, head.values
        if head.equal:
            # What the atom asks for is one more condition of the body.
            added = replace(rule, body=(*rule.body, *head.equal))
            shape = LookupRule(f"{key} with {head.equal}", added)
        targets = {c.variable for c in shape.body if isinstance(c, Binding)}
        if shape.aggregate:
            targets.update(fold.target for fold in shape.aggregate.folds)
        given = {v: term for v, term in wanted.items() if v not in targets}
        attempts: dict[tuple[object, ...], Attempt] = {}
        found = (
            (kept, values)
            for kept, row in self._bindings(shape, given)
            for values in self._in_groups(shape, row)
        )
        for kept, values in found:
            attempt = self._attempt(shape, kept, values, wanted)
            if attempt.failing:
                attempts.setdefault(tuple(sorted((v.name, t) for v, t in attempt.values.items())), attempt)
            if self.budget.look():
                break
        best = sorted(attempts.values(), key=_distance)
        return BodyFails(key, rule, tuple(best[:_SHOWN]))

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
            body = _computable(shape, [c for c in shape.rest if c is not left_out], given)
            name = ("without", shape.rest.index(left_out))
            for values in self._rows(name, shape, body, given, _SHOWN):
                yield shape.atoms, values

    def _in_groups(self, shape: LookupRule, values: Values) -> Iterator[Values]:
        """Yield values with those of the groups of the aggregate, where the atoms and the head say none."""
        aggregate = shape.aggregate
        if aggregate is None or not _open_groups(shape, aggregate, values):
            yield values
            return
        known = {v: term for v, term in values.items() if v in aggregate.groups}
        parameters = tuple(known)
        columns = tuple(dict.fromkeys((*parameters, *aggregate.groups)))
        join = Join(("why not groups", shape.key, parameters), aggregate.body, parameters, columns)
        rows, complete = self.instances.rows(join, [tuple(known.values())], _TRIED)
        self.budget.spend(len(rows))
        self.budget.cut = self.budget.cut or not complete
        for row in rows:
            yield {**values, **dict(zip(columns, row, strict=True))}
        if not rows:
            yield values

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
        self,
        shape: LookupRule,
        kept: Sequence[Atom],
        values: Mapping[Variable, Term],
        wanted: Mapping[Variable, Term],
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
        for number, conjunct in list(waiting.items()):
            if isinstance(conjunct, Aggregate) and _open_groups(shape, conjunct, known):
                # No group was found.
                results[number] = NoBindings(_as_stated(shape, conjunct), _part(known, conjunct.groups))
                del waiting[number]
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
        self,
        shape: LookupRule,
        conjunct: Conjunct,
        kept: Sequence[Atom],
        known: Values,
        wanted: Mapping[Variable, Term],
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
                return self._present(atom, facts[0])
            case Comparison():
                return self._compared(conjunct, known)
            case Binding():
                return self._bound(conjunct, known, wanted)
            case Aggregate():
                return self._folded(shape, conjunct, known, wanted)

    def _present(self, atom: Atom, fact: Fact) -> PresentFact:
        if atom.shown:
            # A hidden fact stands for those within a length of time.
            found = (
                instance
                for shape in self.rules.deriving(fact)
                for instance in self.instances.heads(shape, [fact], self.budget, 1)[0]
            )
            atom, fact = atom.shown[0], next((i.premises[0] for i in found), fact)
        explicit = bool(self.instances.explicit_among([fact]))
        stated = self.statements([fact]) if explicit else {}
        return PresentFact(atom, fact, stated.get(fact), explicit)

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

    def _bound(self, binding: Binding, known: Values, wanted: Mapping[Variable, Term]) -> Premise | Failing:
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
        self, shape: LookupRule, aggregate: Aggregate, known: Values, wanted: Mapping[Variable, Term]
    ) -> Premise | Failing:
        group, shown = tuple(known[v] for v in aggregate.groups), _as_stated(shape, aggregate)
        folded, complete = self.instances.fold_groups(shape.key, aggregate, [group])
        if not complete:
            self.budget.cut = True
            return NoResult(shown, shown, "it has too many bindings to fold them here")
        if group not in folded:
            return NoBindings(shown, _part(known, aggregate.groups))
        for fold, value in zip(aggregate.folds, folded[group][0], strict=True):
            needed = known.setdefault(fold.target, value)
            if needed != value:
                # An atom beside the aggregate has the value.
                return OtherValue(shown, fold.target, value, needed, asked=False)
        for fold in aggregate.folds:
            expected = wanted.get(fold.target)
            if expected is not None and expected != known[fold.target]:
                return OtherValue(shown, fold.target, known[fold.target], expected)
        return aggregate_premise(shape, aggregate, known, self.instances, self.registry)


def _open_groups(shape: LookupRule, aggregate: Aggregate, known: Collection[Variable]) -> bool:
    """Return whether groups of an aggregate have no value, and bindings give them none."""
    missing = {v for v in aggregate.groups if v not in known}
    return bool(missing) and missing.isdisjoint(c.variable for c in shape.body if isinstance(c, Binding))


def _as_stated(shape: LookupRule, aggregate: Aggregate) -> Aggregate:
    """Return an aggregate with its windows as their author wrote them."""
    source = shape.rule.source
    stated = (c for c in source.body if isinstance(c, Aggregate)) if source else iter(())
    return next(stated, written(aggregate))


def _part(values: Values, names: Collection[Variable]) -> Values:
    return {v: values[v] for v in names if v in values}


def _computable(shape: LookupRule, body: Sequence[Conjunct], given: Values) -> tuple[Conjunct, ...]:
    """Return the conjuncts that need no result of an aggregate, which a lookup leaves out."""
    bound = {*given, *(v for c in body if isinstance(c, Atom) for v in variables(c))}
    kept: set[Conjunct] = set()
    grows = True
    while grows:
        ready = [c for c in body if c not in kept and bound.issuperset(_needed(shape, c))]
        bound.update(c.variable for c in ready if isinstance(c, Binding))
        kept.update(ready)
        grows = bool(ready)
    return tuple(c for c in body if c in kept)


def _needed(shape: LookupRule, conjunct: Conjunct) -> Iterator[Variable]:
    """Yield the variables without which a conjunct says nothing."""
    match conjunct:
        case Comparison():
            yield from variables(conjunct)
        case Binding(expression=expression):
            yield from variables(expression)
        case Negation(atom=atom):
            yield from (v for v in variables(atom) if v in shape.variables)


_FAILING = (NoSuchFact, PresentFact, FailedComparison, NoResult, OtherValue, NoBindings)


def _distance(attempt: Attempt) -> tuple[object, ...]:
    """Return the key that puts the attempts that come closest first, and those alike in a fixed order."""
    return len(attempt.failing) + len(attempt.open), tuple(map(order_key, attempt.values.values()))


def _covered(pattern: Atom, asked: Atom) -> bool:
    """Return whether an atom asks for nothing but what is under question already."""
    if (pattern.relation, len(pattern.args)) != (asked.relation, len(asked.args)):
        return False
    return all(a == b or isinstance(b, Variable) for a, b in zip(pattern.args, asked.args, strict=True))
