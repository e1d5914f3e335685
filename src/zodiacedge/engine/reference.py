"""The reference evaluator: Python sets, the whole language, the executable definition of right.

Hyper-nodes are evaluated in topological order, each by applying all of its rules to all visible facts
until nothing new appears. It is kept obvious and is never optimised: whatever another engine
computes must equal this.

An evaluation error drops the binding it happens in, whatever the order of the body: the rest of the
body is still evaluated as far as it can be, and the error counts only where everything else holds.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from zodiacedge.engine import state_compare
from zodiacedge.engine.api import Answer, Dropped, NodeRun, Progress, SegmentChange, Settings, refuse_errors
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.scalar.aggregates import accepts, fold
from zodiacedge.engine.scalar.errors import NoValue
from zodiacedge.engine.scalar.expressions import compare, evaluate
from zodiacedge.language.ast import (
    Aggregate,
    Argument,
    Atom,
    Binding,
    Comparison,
    Conjunct,
    Fact,
    Negation,
    Query,
    Rule,
    Variable,
    variables,
)
from zodiacedge.language.printer import format_argument, format_atom, format_rule, format_term
from zodiacedge.language.safety import analyse
from zodiacedge.language.unify import unifiable
from zodiacedge.terms import Term, order_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Batch, FactDelta, Mismatch, State
    from zodiacedge.engine.registry import Registry
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.io import Load
    from zodiacedge.language.ast import Predicate

_Binding = dict[Variable, Term]


@dataclass(slots=True)
class _Errors:
    # What evaluation errors dropped in one application of a rule.
    found: dict[frozenset[tuple[Variable, Term]], str] = field(default_factory=dict)

    def add(self, binding: _Binding, reason: str) -> None:
        shown = ", ".join(
            f"{format_argument(v)} = {format_term(t)}" for v, t in binding.items() if not v.anonymous
        )
        self.found[frozenset(binding.items())] = f"{reason} ({shown})" if shown else reason

    def summary(self) -> Dropped | None:
        return Dropped(len(self.found), min(self.found.values())) if self.found else None


@dataclass(frozen=True, slots=True)
class ReferenceMaterialisation:
    """The state of the reference evaluator: a set of facts per node, and all that is visible."""

    runs: tuple[NodeRun, ...] = ()
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    segments: Mapping[frozenset[str], frozenset[Fact]] = field(default_factory=dict)
    facts: FactSet = field(default_factory=FactSet)
    stated: frozenset[Fact] = frozenset()

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""
        return frozenset(self.facts)

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""
        return self.segments[rules]

    def segment_size(self, rules: frozenset[str]) -> int:
        """How many facts the hyper-node of these rules derives."""
        return len(self.segments[rules])

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the visible facts, or those of the hyper-node of these rules, each once, by predicate."""
        groups: dict[Predicate, list[Fact]] = {}
        for fact in self.facts if rules is None else self.segments[rules]:
            groups.setdefault(fact.predicate, []).append(fact)
        for predicate, facts in groups.items():
            yield predicate, iter(facts)

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, explicit too or not."""
        return frozenset().union(*self.segments.values())

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate."""
        return Counter(fact.predicate for fact in self.derived())

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of all visible facts."""
        return frozenset(fact.predicate for fact in self.facts)

    def predicate_names(self) -> set[str]:
        """The names of the predicates of all visible facts."""
        return {predicate.name for predicate in self.predicates()}

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        errors = _Errors()
        tick = partial(Meter(settings.limits).step, "", query.span)
        found = {
            tuple(_value(c, binding) for c in query.columns)
            for binding in solutions(query.body, self.facts, settings.registry, errors, tick)
        }
        rows = sorted(found, key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(rows), errors.summary())

    def prepare(
        self, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> Callable[[Mapping[Variable, Term]], Answer]:
        """Return a resolved query that is answered once its parameters, variables of it, have values."""

        def answered(values: Mapping[Variable, Term]) -> Answer:
            # A fact that nobody else has holds the values.
            given = Atom("values given to a query", parameters)
            facts = FactSet(self.facts)
            facts.add(Fact(given.relation, tuple(values[v] for v in parameters)))
            own = ReferenceMaterialisation(facts=facts)
            return own.answer(replace(query, body=(given, *query.body)), settings)

        return answered

    def explicit(self) -> frozenset[Fact]:
        """All explicit facts."""
        return self.stated

    def stated_predicates(self, names: Collection[str]) -> frozenset[Predicate]:
        """The predicates of some names that explicit facts have."""
        return frozenset(one for one in self.explicit_counts() if one.name in names)

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""
        return Counter(fact.predicate for fact in self.stated)

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact has this term as an argument."""
        return any(term in fact.args for fact in self.stated)

    def batch(self) -> ReferenceBatch:
        """Return an empty batch for facts of the next change."""
        return ReferenceBatch()

    def effect(self, add: Batch, remove: Batch) -> ReferenceFactDelta:
        """Find out which facts really come and go."""
        return ReferenceFactDelta(self.stated, _facts(add), _facts(remove))

    def attempt(
        self, rules: Mapping[str, Rule], graph: HyperGraph, effect: FactDelta, settings: Settings
    ) -> ReferenceUncommitted:
        """Evaluate the program that a change leads to, from nothing."""
        if not isinstance(effect, ReferenceFactDelta):
            raise TypeError(effect)
        after = ReferenceEngine().materialise(rules, graph, effect.after, settings)
        return ReferenceUncommitted(self, after, rules)

    def digest(self, turn: YieldPoint) -> tuple[int, int]:
        """Count the visible facts, and add up the hashes of their texts."""
        return state_compare.digest(self, turn)

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible here only, and those that are in another version only."""
        ours, theirs = self.visible(), before.visible()
        return ours - theirs, theirs - ours

    def mismatches(
        self, other: State, nodes: Sequence[frozenset[str]], turn: YieldPoint
    ) -> Iterator[Mismatch]:
        """Yield where this state differs from another of the same program."""
        return state_compare.mismatches(self, other, nodes, turn)


@dataclass(frozen=True, slots=True)
class ReferenceUncommitted:
    """A change that was worked out."""

    before: ReferenceMaterialisation
    after: ReferenceMaterialisation
    rules: Mapping[str, Rule]

    @property
    def runs(self) -> tuple[NodeRun, ...]:
        """All nodes."""
        nodes = zip(self.after.runs, self.after.segments, strict=True)
        return tuple(replace(run, moved=partial(self._moved, keys)) for run, keys in nodes)

    def _moved(self, keys: frozenset[str]) -> SegmentChange:
        had = {
            fact
            for old, facts in self.before.segments.items()
            for shared in [[self.rules[key].head for key in old & keys]]
            for fact in facts
            if any(unifiable(Atom(fact.relation, fact.args), head) for head in shared)
        }
        return SegmentChange(len(self.after.segments[keys] - had), len(had - self.after.segments[keys]))

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped, by rule key."""
        return self.after.dropped

    @property
    def net(self) -> ReferenceNetChange:
        """What becomes visible, and what is visible no more."""
        before, after = self.before.visible(), self.after.visible()
        return ReferenceNetChange(after - before, before - after)

    def commit(self) -> ReferenceMaterialisation:
        """Put the change in force."""
        return self.after


@dataclass(slots=True)
class ReferenceBatch:
    """Facts on their way in or out: a set."""

    taken: set[Fact] = field(default_factory=set)

    def add(self, facts: Iterable[Fact]) -> None:
        """Take facts."""
        self.taken.update(facts)

    def load(self, load: Load) -> None:
        """Take the facts of files."""
        for facts in load:
            self.add(facts)

    def merge(self, other: ReferenceBatch) -> None:
        """Take the facts of another batch."""
        self.taken |= other.taken

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of the facts taken so far."""
        return frozenset(fact.predicate for fact in self.taken)


def _facts(batch: Batch) -> frozenset[Fact]:
    if not isinstance(batch, ReferenceBatch):
        raise TypeError(batch)
    return frozenset(batch.taken)


@dataclass(frozen=True, slots=True)
class ReferenceFactDelta:
    """What facts to add and to remove come to."""

    before: frozenset[Fact]
    to_add: frozenset[Fact]
    to_remove: frozenset[Fact]

    @property
    def after(self) -> frozenset[Fact]:
        """The explicit facts as they will be."""
        return (self.before - self.to_remove) | self.to_add

    @property
    def added(self) -> int:
        """How many facts are new."""
        return len(self.to_add - self.before)

    @property
    def removed(self) -> int:
        """How many facts go."""
        return len(self.before - self.after)

    @property
    def idle(self) -> int:
        """How many facts to add are there already."""
        return len(self.to_add & self.before)

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """How many facts to remove are not there, and one of them."""
        found = self.to_remove - self.before
        return len(found), min(found, key=format_atom, default=None)

    def matching(self, atom: Atom, most: int | None = None) -> Iterable[Fact]:
        """The explicit facts that are instances of an atom, as they will be: all of them, or so many."""
        found = (fact for fact in self.after if unifiable(Atom(fact.relation, fact.args), atom))
        return islice(found, most)

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact will have this term as an argument."""
        return any(term in fact.args for fact in self.after)


@dataclass(frozen=True, slots=True)
class ReferenceNetChange:
    """What became visible, and what is visible no more."""

    inserted: frozenset[Fact]
    deleted: frozenset[Fact]

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the facts that came and those that went."""
        return Counter(f.predicate for f in self.inserted), Counter(f.predicate for f in self.deleted)

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The facts that came, and those that went; of the predicates that are wanted, if not of all."""
        if wanted is None:
            return self.inserted, self.deleted
        came, went = (
            frozenset(f for f in side if wanted(f.predicate)) for side in (self.inserted, self.deleted)
        )
        return came, went


class ReferenceEngine:
    """The engine `reference`."""

    name = "reference"

    def empty(self) -> ReferenceMaterialisation:
        """Return a state without rules and facts."""
        return ReferenceMaterialisation()

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> ReferenceMaterialisation:
        """Evaluate checked and resolved rules, given by key, over explicit facts."""
        stated = frozenset(facts)
        visible = FactSet(stated)
        meter = Meter(settings.limits, settings.turn)
        segments: dict[frozenset[str], frozenset[Fact]] = {}
        dropped: dict[str, Dropped] = {}
        runs: list[NodeRun] = []
        order = graph.order
        total = 0
        for place, node in enumerate(order):
            start = time.perf_counter()
            keys = sorted(node.rules)
            labels = tuple(rules[k].label or format_rule(rules[k]) for k in keys)
            segment: set[Fact] = set()
            new = True
            rounds = derivations = 0
            while new:
                rounds += 1
                new = False
                for key in keys:
                    errors = _Errors()
                    for fact in apply(rules[key], visible, settings.registry, errors, meter):
                        derivations += 1
                        if fact not in segment:
                            segment.add(fact)
                            total += 1
                            meter.count(total, rounds, _name(rules[key]), rules[key].span)
                        new = visible.add(fact) or new
                    _record(dropped, key, errors)
                if settings.progress:
                    settings.progress(Progress(place, len(order), labels, rounds, total))
                settings.turn.yield_to_waiters()
            if settings.strict:
                refuse_errors(rules, {key: dropped[key] for key in keys if key in dropped})
            segments[frozenset(keys)] = frozenset(segment)
            seconds = time.perf_counter() - start
            runs.append(NodeRun(labels, rounds, len(segment), seconds, derivations=derivations))
        return ReferenceMaterialisation(tuple(runs), dropped, segments, visible, stated)

    def recompute(
        self, rules: Mapping[str, Rule], graph: HyperGraph, state: State, settings: Settings
    ) -> ReferenceMaterialisation:
        """Evaluate the same over the explicit facts of a state, of any engine."""
        return self.materialise(rules, graph, state.explicit(), settings)


def apply(rule: Rule, facts: FactSet, registry: Registry, errors: _Errors, meter: Meter) -> set[Fact]:
    """Return the heads of all instances of a rule whose bodies hold."""
    tick = partial(meter.step, _name(rule), rule.span)
    return {
        Fact(rule.head.relation, tuple(_value(a, binding) for a in rule.head.args))
        for binding in solutions(rule.body, facts, registry, errors, tick)
    }


def solutions(
    body: tuple[Conjunct, ...],
    facts: FactSet,
    registry: Registry,
    errors: _Errors,
    tick: Callable[[], None],
) -> Iterator[_Binding]:
    """Yield every binding under which a resolved body holds; `tick` is called for every step on the way."""
    bound = analyse(body).bound
    plan = _evaluation_order(body)
    rows = {
        id(c): _aggregate_rows(c, facts, registry, errors, tick) for c in plan if isinstance(c, Aggregate)
    }

    def extend(place: int, binding: _Binding, problem: str) -> Iterator[_Binding]:
        tick()
        if place == len(plan):
            if problem:
                errors.add(binding, problem)
            else:
                yield binding
            return
        conjunct = plan[place]
        match conjunct:
            case Atom():
                for longer in facts.match(conjunct, binding):
                    yield from extend(place + 1, longer, problem)
                return
            case Aggregate():
                # It comes first, so nothing is bound yet.
                for row in rows[id(conjunct)]:
                    yield from extend(place + 1, dict(row), problem)
                return
            case _:
                pass
        if any(v in bound and v not in binding for v in _inputs(conjunct)):
            # An earlier error left an input without a value: this one cannot be judged.
            yield from extend(place + 1, binding, problem)
            return
        try:
            match conjunct:
                case Binding(variable=variable, expression=expression):
                    binding = {**binding, variable: evaluate(expression, binding, registry)}
                case Comparison(left=left, operator=sign, right=right):
                    holds = compare(
                        evaluate(left, binding, registry), sign, evaluate(right, binding, registry)
                    )
                    if not holds:
                        return
                case Negation(atom=atom):
                    if any(True for _ in facts.match(atom, binding)):
                        return
        except NoValue as error:
            problem = problem or str(error)
        yield from extend(place + 1, binding, problem)

    yield from extend(0, {}, "")


def _evaluation_order(body: tuple[Conjunct, ...]) -> list[Conjunct]:
    # The aggregate, then whatever can be judged, else the atom that leaves the fewest variables open.
    order: list[Conjunct] = [c for c in body if isinstance(c, Aggregate)]
    waiting = [c for c in body if not isinstance(c, Aggregate)]
    final = analyse(body).bound
    bound: set[Variable] = set()
    for aggregate in (c for c in order if isinstance(c, Aggregate)):
        bound.update(aggregate.groups, (f.target for f in aggregate.folds))
    while waiting:
        ready = [c for c in waiting if not isinstance(c, Atom) and bound.issuperset(set(_inputs(c)) & final)]
        atoms = [c for c in waiting if isinstance(c, Atom)]
        chosen = ready[0] if ready else min(atoms, key=lambda a: len(set(variables(a)) - bound))
        order.append(chosen)
        waiting.remove(chosen)
        bound.update(v for v in variables(chosen) if v in final)
    return order


def _inputs(conjunct: Conjunct) -> Iterator[Variable]:
    return variables(conjunct.expression if isinstance(conjunct, Binding) else conjunct)


def _aggregate_rows(
    aggregate: Aggregate,
    facts: FactSet,
    registry: Registry,
    errors: _Errors,
    tick: Callable[[], None],
) -> list[_Binding]:
    groups: dict[tuple[Term, ...], list[_Binding]] = {}
    for binding in solutions(aggregate.body, facts, registry, errors, tick):
        try:
            for one in aggregate.folds:
                accepts(one.op, binding[one.argument])
        except NoValue as error:
            errors.add(binding, str(error))
            continue
        groups.setdefault(tuple(binding[v] for v in aggregate.groups), []).append(binding)
    rows: list[_Binding] = []
    for group, members in groups.items():
        row = dict(zip(aggregate.groups, group, strict=True))
        try:
            for one in aggregate.folds:
                terms: Iterable[Term] = [m[one.argument] for m in members]
                row[one.target] = fold(one.op, list(set(terms) if one.distinct else terms), registry)
        except NoValue as error:
            errors.add(dict(zip(aggregate.groups, group, strict=True)), str(error))
            continue
        rows.append(row)
    return rows


def _value(arg: Argument, binding: Mapping[Variable, Term]) -> Term:
    return binding[arg] if isinstance(arg, Variable) else arg


def _name(rule: Rule) -> str:
    return rule.label or format_rule(rule)


def _record(dropped: dict[str, Dropped], key: str, errors: _Errors) -> None:
    # The last round sees everything that the earlier ones saw.
    summary = errors.summary()
    if summary:
        dropped[key] = summary
    else:
        dropped.pop(key, None)
