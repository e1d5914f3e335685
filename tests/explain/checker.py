"""A checker of proofs that shares nothing with their search: it asks the reference evaluator.

Every step must be an instance of its rule on the facts: the head is the fact, every conjunct has a premise,
every positive atom matches a fact that the proof supports, no fact matches a negated atom, comparisons hold
and bindings have their values when they are computed again, and aggregates are folded again. Every leaf must
be an explicit fact, and no fact may lean on itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import Settings
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.reference import ReferenceMaterialisation
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.explain.proof import (
    AbsentPremise,
    AggregatePremise,
    BindingPremise,
    ComparisonPremise,
    Explicit,
    FactPremise,
    Step,
    Unexplained,
)
from zodiacedge.language.ast import Aggregate, Atom, Binding, Comparison, Fact, Negation, Query, Variable
from zodiacedge.language.ast import variables as variables_of
from zodiacedge.language.printer import format_atom, format_conjunct
from zodiacedge.language.safety import analyse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from zodiacedge.engine.registry import Registry
    from zodiacedge.explain.proof import AggregateRow, Premise, Proof, Values
    from zodiacedge.language.ast import Conjunct, Rule
    from zodiacedge.terms import Term


class Facts(NamedTuple):
    """The facts that a proof is about."""

    visible: FactSet
    explicit: Collection[Fact]
    registry: Registry

    @classmethod
    def of(cls, visible: Iterable[Fact], explicit: Collection[Fact], registry: Registry) -> Facts:
        """Take all visible facts and the explicit ones."""
        return cls(FactSet(visible), explicit, registry)


def problems(proof: Proof, rules: Mapping[str, Rule], facts: Facts) -> Iterator[str]:
    """Yield what is wrong with a proof; nothing if it is right.

    Args:
        proof: The proof.
        rules: The rules in force, by key, resolved.
        facts: The facts of the version.
    """
    for fact in proof.facts:
        if fact not in proof.supports:
            yield f"{format_atom(fact)} was asked and has no support"
    for fact, support in proof.supports.items():
        if support.fact != fact:
            yield f"{format_atom(fact)} has the support of {format_atom(support.fact)}"
        match support:
            case Explicit():
                if fact not in facts.explicit:
                    yield f"{format_atom(fact)} is not an explicit fact"
            case Unexplained():
                if fact not in facts.visible:
                    yield f"{format_atom(fact)} is not there"
                if proof.least:
                    yield f"{format_atom(fact)} is not explained, and no budget ended"
            case Step():
                for problem in _of_step(support, proof, rules, facts):
                    yield f"{format_atom(fact)}: {problem}"
    yield from _cycles(proof)


def _of_step(step: Step, proof: Proof, rules: Mapping[str, Rule], facts: Facts) -> Iterator[str]:
    rule = rules.get(step.key)
    if rule is None or rule != step.rule:
        yield "its rule is not in force"
        return
    head = Fact(rule.head.relation, tuple(_value(arg, step.values) for arg in rule.head.args))
    if head != step.fact:
        yield f"the head of its instance is {format_atom(head)}"
    if len(step.premises) != len(rule.body):
        yield f"it has {len(step.premises)} premises, and its rule {len(rule.body)} conjuncts"
        return
    values = _with_unnamed(step.values)
    for conjunct, premise in zip(rule.body, step.premises, strict=True):
        for problem in _of_premise(conjunct, premise, values, proof, facts):
            yield f"{format_conjunct(conjunct)}: {problem}"
    below = [proof.supports[fact].height for fact in step.facts if fact in proof.supports]
    if step.height != 1 + max(below, default=0):
        yield f"its height is {step.height}, and those of its premises are {below}"


def _of_premise(
    conjunct: Conjunct, premise: Premise, values: Values, proof: Proof, facts: Facts
) -> Iterator[str]:
    match conjunct, premise:
        case Atom(), FactPremise(fact=fact):
            if fact not in facts.visible:
                yield f"{format_atom(fact)} is not there"
            if fact not in proof.supports:
                yield f"{format_atom(fact)} has no support in the proof"
            if not _is_instance(conjunct, fact, values):
                yield f"{format_atom(fact)} is no instance of it under these values"
        case Negation(atom=atom), AbsentPremise(pattern=pattern):
            if any(True for _ in facts.visible.match(atom, dict(values))):
                yield "a fact matches it"
            if pattern.args != tuple(values.get(a, a) if isinstance(a, Variable) else a for a in atom.args):
                yield f"{format_atom(pattern)} is not the atom under these values"
        case Comparison(), ComparisonPremise(left=left, right=right):
            yield from _of_comparison(conjunct, (left, right), values, facts.registry)
        case Binding(), BindingPremise(value=value):
            yield from _of_binding(conjunct, value, values, facts.registry)
        case Aggregate(), AggregatePremise():
            yield from _of_aggregate(conjunct, premise, values, proof, facts)
        case _:
            yield f"{type(premise).__name__} is no premise of it"


def _of_comparison(
    comparison: Comparison, sides: tuple[Term, Term], values: Values, registry: Registry
) -> Iterator[str]:
    try:
        found = tuple(evaluate(side, values, registry) for side in (comparison.left, comparison.right))
        if found != sides:
            yield "its sides have other values"
        if not compare(found[0], comparison.operator, found[1]):
            yield "it does not hold"
    except (NoValue, KeyError) as problem:
        yield f"it has no value: {problem}"


def _of_binding(binding: Binding, value: Term, values: Values, registry: Registry) -> Iterator[str]:
    try:
        if not evaluate(binding.expression, values, registry) == value == values.get(binding.variable):
            yield "it has another value"
    except (NoValue, KeyError) as problem:
        yield f"it has no value: {problem}"


def _of_aggregate(
    aggregate: Aggregate, premise: AggregatePremise, values: Values, proof: Proof, facts: Facts
) -> Iterator[str]:
    settings = Settings(registry=facts.registry)
    state = ReferenceMaterialisation(facts=facts.visible)
    group = {v: values.get(v) for v in aggregate.groups}
    if group != dict(premise.group):
        yield "its group is another one"
    results = [term for _, term in premise.results]
    if results != [values.get(fold.target) for fold in aggregate.folds]:
        yield "its results are not the values of the step"
    rows = state.answer(Query(aggregate.columns, (aggregate,)), settings).rows
    if (*group.values(), *results) not in rows:
        yield "folded again, it has other results"
    bound = analyse(aggregate.body).bound
    inner = tuple(dict.fromkeys(v for c in aggregate.body for v in variables_of(c) if v in bound))
    answer = state.answer(Query(inner, aggregate.body), settings)
    bindings = [dict(zip(inner, row, strict=True)) for row in answer.rows]
    members = [b for b in bindings if all(b[v] == term for v, term in group.items())]
    if not len(premise.shown) <= premise.bindings <= len(members):
        yield f"it has {len(members)} bindings, not {premise.bindings}"
    for row in premise.shown:
        yield from _of_row(aggregate, row, members, proof, facts)


def _of_row(
    aggregate: Aggregate,
    row: AggregateRow,
    members: Collection[Mapping[Variable, Term]],
    proof: Proof,
    facts: Facts,
) -> Iterator[str]:
    written = {v: term for v, term in row.values.items() if not v.name.startswith(".")}
    if not any(all(member.get(v) == term for v, term in written.items()) for member in members):
        yield "a binding that it shows is none"
    if len(row.premises) != len(aggregate.body):
        yield "a binding that it shows lacks a conjunct"
        return
    for conjunct, premise in zip(aggregate.body, row.premises, strict=True):
        yield from _of_premise(conjunct, premise, _with_unnamed(row.values), proof, facts)


def _with_unnamed(values: Values) -> Values:
    """Return values also of the variables `_` of positive atoms, which a step has under a name."""
    return {**{Variable(v.name[1:]): term for v, term in values.items() if v.name.startswith(".")}, **values}


def _is_instance(atom: Atom, fact: Fact, values: Values) -> bool:
    if (atom.relation, len(atom.args)) != (fact.relation, len(fact.args)):
        return False
    # Any value will do for an anonymous variable.
    return all(
        (isinstance(arg, Variable) and arg.anonymous) or _value(arg, values) == term
        for arg, term in zip(atom.args, fact.args, strict=True)
    )


def _value(arg: Term | Variable, values: Values) -> Term:
    return values[arg] if isinstance(arg, Variable) else arg


def _cycles(proof: Proof) -> Iterator[str]:
    done: set[Fact] = set()
    for start in proof.supports:
        path: dict[Fact, Iterator[Fact]] = {}
        waiting = [start] if start not in done else []
        while waiting:
            fact = waiting[-1]
            below = path.setdefault(fact, iter(proof.below(fact)))
            following = next((f for f in below if f not in done and f in proof.supports), None)
            if following is None:
                done.add(fact)
                path.pop(fact)
                waiting.pop()
            elif following in path:
                yield f"{format_atom(following)} leans on itself"
                return
            else:
                waiting.append(following)
