"""The reference evaluator: the executable definition of the complete language, on Python sets.

Hyper-nodes are evaluated in topological order, each naively: all of its rules are applied to all visible
facts until no new facts are derived. The code is simple and not optimised: every other engine must return
the same facts.

An evaluation error drops its binding, whatever the order of the body: the other conjuncts are still
evaluated as far as possible, and the error counts only if all of them hold.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from zodiacedge.engine import state_compare
from zodiacedge.engine.api import (
    EXPLICIT_FACTS,
    Answer,
    Dropped,
    NodeRun,
    Progress,
    SegmentChange,
    Settings,
    refuse_errors,
)
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.semantics.aggregates import accepts, fold_group
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.io.tables import facts_of_table
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
from zodiacedge.terms import Literal, Term, order_key, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from zodiacedge.engine.api import Batch, FactDelta, Lookup, MemoryUse, Mismatch, State
    from zodiacedge.engine.registry import Registry
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.io import Load
    from zodiacedge.language.ast import Predicate

_Binding = dict[Variable, Term]
_Row = tuple[Term, ...]


@dataclass(slots=True)
class _Errors:
    # Bindings that evaluation errors dropped in one application of a rule.
    dropped: dict[frozenset[tuple[Variable, Term]], str] = field(default_factory=dict)

    def add(self, binding: _Binding, reason: str) -> None:
        shown = ", ".join(
            f"{format_argument(v)} = {format_term(t)}" for v, t in binding.items() if not v.anonymous
        )
        self.dropped[frozenset(binding.items())] = f"{reason} ({shown})" if shown else reason

    def summary(self) -> Dropped | None:
        return Dropped(len(self.dropped), min(self.dropped.values())) if self.dropped else None


@dataclass(frozen=True, slots=True)
class ReferenceMaterialisation:
    """A state of the reference evaluator: the segment of each node, and all visible facts."""

    runs: tuple[NodeRun, ...] = ()
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    segments: Mapping[frozenset[str], frozenset[Fact]] = field(default_factory=dict)
    facts: FactSet = field(default_factory=FactSet)
    explicit_facts: frozenset[Fact] = frozenset()
    keeps_windows = False

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""
        return frozenset(self.facts)

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""
        return self.segments[rules]

    def segment_size(self, rules: frozenset[str]) -> int:
        """The number of facts that the hyper-node of these rules derives."""
        return len(self.segments[rules])

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the distinct visible facts, or those of the hyper-node of these rules, by predicate."""
        groups: dict[Predicate, list[Fact]] = {}
        for fact in self.facts if rules is None else self.segments[rules]:
            groups.setdefault(fact.predicate, []).append(fact)
        for predicate, facts in groups.items():
            yield predicate, iter(facts)

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, including facts that are explicit too."""
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
        distinct: set[tuple[Term, ...]] = set()
        for binding in solutions(query.body, self.facts, settings.registry, errors, tick):
            distinct.add(tuple(_value(c, binding) for c in query.columns))
            if len(distinct) == query.limit:
                break
        rows = sorted(distinct, key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(rows), errors.summary())

    def prepare(
        self, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> Callable[[Mapping[Variable, Term]], Answer]:
        """Return a function that answers a resolved query for given values of its parameters."""

        def answered(values: Mapping[Variable, Term]) -> Answer:
            # The values are a fact of a relation that no program can name.
            parameter_atom = Atom("values given to a query", parameters)
            facts = FactSet(self.facts)
            facts.add(Fact(parameter_atom.relation, tuple(values[v] for v in parameters)))
            state = ReferenceMaterialisation(facts=facts)
            return state.answer(replace(query, body=(parameter_atom, *query.body)), settings)

        return answered

    def lookups(self, settings: Settings) -> ReferenceLookups:
        """Return lookups in this version."""
        return ReferenceLookups(self, settings)

    def explicit(self) -> frozenset[Fact]:
        """All explicit facts."""
        return self.explicit_facts

    def explicit_predicates(self, names: Collection[str]) -> frozenset[Predicate]:
        """The predicates of explicit facts that have one of these names."""
        return frozenset(predicate for predicate in self.explicit_counts() if predicate.name in names)

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""
        return Counter(fact.predicate for fact in self.explicit_facts)

    def holds(self, term: Term) -> bool:
        """Whether an explicit fact has this term as an argument."""
        return any(term in fact.args for fact in self.explicit_facts)

    def older(self, predicate: Predicate, position: int, moment: datetime | None) -> Iterable[Fact]:
        """The explicit facts of a predicate whose argument, from 1, is an earlier moment; all if None."""
        facts = [fact for fact in self.explicit_facts if fact.predicate == predicate]
        return [fact for fact in facts if moment is None or _is_earlier(fact.args[position - 1], moment)]

    def batch_of_older(self, predicate: Predicate, position: int, moment: datetime) -> ReferenceBatch:
        """Return the explicit facts of a predicate whose argument, from 1, is an earlier moment."""
        return ReferenceBatch(set(self.older(predicate, position, moment)))

    def batch(self) -> ReferenceBatch:
        """Return an empty batch for the next change."""
        return ReferenceBatch()

    def effective_delta(self, add: Batch, remove: Batch) -> ReferenceFactDelta:
        """Return the effective change of the explicit facts."""
        return ReferenceFactDelta(self.explicit_facts, _facts(add), _facts(remove))

    def maintain(
        self, rules: Mapping[str, Rule], graph: HyperGraph, fact_delta: FactDelta, settings: Settings
    ) -> ReferenceUncommitted:
        """Evaluate the changed program from scratch."""
        if not isinstance(fact_delta, ReferenceFactDelta):
            raise TypeError(fact_delta)
        after = ReferenceEngine().materialise(rules, graph, fact_delta.after, settings)
        return ReferenceUncommitted(self, after, rules)

    def held(self) -> tuple[MemoryUse, ...]:
        """Return nothing: Python and Spark do not tell."""
        return ()

    def reclaim(self, rules: Mapping[str, Rule]) -> None:
        """Do nothing: a state holds its facts and nothing else."""

    def digest(self, yield_point: YieldPoint) -> tuple[int, int]:
        """Return the number of visible facts and the sum of their hashes."""
        return state_compare.digest(self, yield_point)

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible in this version only, and in another version only."""
        ours, theirs = self.visible(), before.visible()
        return ours - theirs, theirs - ours

    def mismatches(
        self, other: State, nodes: Sequence[frozenset[str]], yield_point: YieldPoint
    ) -> Iterator[Mismatch]:
        """Yield the mismatches with a state of the same program."""
        return state_compare.mismatches(self, other, nodes, yield_point)


@dataclass(frozen=True, slots=True)
class ReferenceUncommitted:
    """An evaluated change that is not committed."""

    before: ReferenceMaterialisation
    after: ReferenceMaterialisation
    rules: Mapping[str, Rule]

    @property
    def runs(self) -> tuple[NodeRun, ...]:
        """All nodes."""
        nodes = zip(self.after.runs, self.after.segments, strict=True)
        return tuple(replace(run, moved=partial(self._moved, keys)) for run, keys in nodes)

    def _moved(self, keys: frozenset[str]) -> SegmentChange:
        old_facts = {
            fact
            for old, facts in self.before.segments.items()
            for shared in [[self.rules[key].head for key in old & keys]]
            for fact in facts
            if any(unifiable(Atom(fact.relation, fact.args), head) for head in shared)
        }
        new_facts = self.after.segments[keys]
        return SegmentChange(len(new_facts - old_facts), len(old_facts - new_facts))

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped, by rule key."""
        return self.after.dropped

    @property
    def net(self) -> ReferenceNetChange:
        """The net change."""
        before, after = self.before.visible(), self.after.visible()
        return ReferenceNetChange(after - before, before - after)

    def lookups(self, settings: Settings) -> ReferenceLookups:
        """Return lookups in the next version."""
        return ReferenceLookups(self.after, settings)

    def prepare(self) -> None:
        """Do nothing: sets need no preparation."""

    def commit(self) -> ReferenceMaterialisation:
        """Return the new state."""
        return self.after


class ReferenceLookups:
    """Lookups in a state of the reference evaluator: queries on a copy that has the explicit facts apart."""

    joins_explicit = True

    def __init__(self, state: ReferenceMaterialisation, settings: Settings) -> None:
        """Read one state."""
        self._explicit = state.explicit_facts
        self._facts = FactSet(state.facts)
        self._settings = settings
        self._calls = 0
        for fact in state.explicit_facts:
            self._facts.add(Fact(EXPLICIT_FACTS + fact.relation, fact.args))

    def explicit_among(self, facts: Collection[Fact]) -> frozenset[Fact]:
        """Return those of some facts that are explicit."""
        return self._explicit.intersection(facts)

    def prepare(self, query: Query, parameters: tuple[Variable, ...]) -> Lookup:
        """Return a lookup, whose parameters get values later."""
        registry, tick = self._settings.registry, partial(Meter(self._settings.limits).step, "", query.span)

        def rows(given: Sequence[_Row], most: int) -> tuple[Sequence[_Row], bool]:
            # The rows are facts of a relation that no program can name, another one for each call.
            self._calls += 1
            values = Atom(f"values given to lookup {self._calls}", parameters)
            for row in given:
                self._facts.add(Fact(values.relation, row))
            distinct: dict[_Row, None] = {}
            for binding in solutions((values, *query.body), self._facts, registry, _Errors(), tick):
                distinct[tuple(_value(c, binding) for c in query.columns)] = None
                if len(distinct) > most:
                    return list(distinct)[:most], False
            return list(distinct), True

        return rows


@dataclass(slots=True)
class ReferenceBatch:
    """A set of facts to insert or delete."""

    collected: set[Fact] = field(default_factory=set)

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts."""
        self.collected.update(facts)

    def add_table(self, table: pa.Table, relation: str) -> None:
        """Add the rows of an Arrow table as facts of a relation; raise if a row is no fact."""
        self.add(facts_of_table(table, relation))

    def load(self, load: Load) -> None:
        """Add the facts of files."""
        for facts in load:
            self.add(facts)

    def merge(self, other: ReferenceBatch) -> None:
        """Add the facts of another batch."""
        self.collected |= other.collected

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of the facts added so far."""
        return frozenset(fact.predicate for fact in self.collected)

    def size(self) -> int:
        """Return the number of distinct facts."""
        return len(self.collected)

    def facts(self, name: str | None = None) -> Iterator[Fact]:
        """Yield the distinct facts, all or those of a predicate's name."""
        return (fact for fact in self.collected if name is None or fact.predicate.name == name)

    def without_older(
        self, name: str, position: int, moment: datetime
    ) -> tuple[ReferenceBatch, ReferenceBatch]:
        """Return the batch without facts of a predicate whose argument is an earlier moment, and these."""
        return self._without(
            {
                fact
                for fact in self.facts(name)
                if position <= fact.predicate.arity and _is_earlier(fact.args[position - 1], moment)
            }
        )

    def without_subjects(self, subjects: Collection[Term]) -> tuple[ReferenceBatch, ReferenceBatch]:
        """Return the batch without the facts whose first argument is one of some terms, and these."""
        return self._without({fact for fact in self.collected if fact.args and fact.args[0] in subjects})

    def _without(self, facts: set[Fact]) -> tuple[ReferenceBatch, ReferenceBatch]:
        return ReferenceBatch(self.collected - facts), ReferenceBatch(facts)


def _is_earlier(term: Term, moment: datetime) -> bool:
    value = value_of(term) if isinstance(term, Literal) else None
    return isinstance(value, datetime) and value < moment


def _facts(batch: Batch) -> frozenset[Fact]:
    if not isinstance(batch, ReferenceBatch):
        raise TypeError(batch)
    return frozenset(batch.collected)


@dataclass(frozen=True, slots=True)
class ReferenceFactDelta:
    """The effective change of the explicit facts."""

    before: frozenset[Fact]
    to_add: frozenset[Fact]
    to_remove: frozenset[Fact]

    @property
    def after(self) -> frozenset[Fact]:
        """The explicit facts after the change."""
        return (self.before - self.to_remove) | self.to_add

    @property
    def added(self) -> int:
        """The number of new facts."""
        return len(self.to_add - self.before)

    @property
    def removed(self) -> int:
        """The number of deleted facts."""
        return len(self.before - self.after)

    @property
    def idle(self) -> int:
        """The number of facts to add that exist already."""
        return len(self.to_add & self.before)

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """The number of facts to remove that do not exist, and one of them."""
        facts = self.to_remove - self.before
        return len(facts), min(facts, key=format_atom, default=None)

    def matching(self, atom: Atom, most: int | None = None) -> Iterable[Fact]:
        """The explicit facts after the change that are instances of an atom: all, or at most `most`."""
        facts = (fact for fact in self.after if unifiable(Atom(fact.relation, fact.args), atom))
        return islice(facts, most)

    def holds(self, term: Term) -> bool:
        """Whether an explicit fact after the change has this term as an argument."""
        return any(term in fact.args for fact in self.after)


@dataclass(frozen=True, slots=True)
class ReferenceNetChange:
    """The net change: visible facts inserted and deleted."""

    inserted: frozenset[Fact]
    deleted: frozenset[Fact]

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the inserted and the deleted facts."""
        return Counter(f.predicate for f in self.inserted), Counter(f.predicate for f in self.deleted)

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The inserted and the deleted facts, of all predicates or of the wanted ones."""
        if wanted is None:
            return self.inserted, self.deleted
        inserted, deleted = (
            frozenset(f for f in side if wanted(f.predicate)) for side in (self.inserted, self.deleted)
        )
        return inserted, deleted


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
        explicit = frozenset(facts)
        visible = FactSet(explicit)
        meter = Meter(settings.limits, settings.yield_point)
        segments: dict[frozenset[str], frozenset[Fact]] = {}
        dropped: dict[str, Dropped] = {}
        runs: list[NodeRun] = []
        order = graph.order
        total = 0
        for index, node in enumerate(order):
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
                    settings.progress(Progress(index, len(order), labels, rounds, total))
                settings.yield_point.yield_to_waiters()
            if settings.strict:
                refuse_errors(rules, {key: dropped[key] for key in keys if key in dropped})
            segments[frozenset(keys)] = frozenset(segment)
            seconds = time.perf_counter() - start
            runs.append(NodeRun(labels, rounds, len(segment), seconds, derivations=derivations))
        return ReferenceMaterialisation(tuple(runs), dropped, segments, visible, explicit)

    def recompute(
        self, rules: Mapping[str, Rule], graph: HyperGraph, state: State, settings: Settings
    ) -> ReferenceMaterialisation:
        """Evaluate from scratch over the explicit facts of a state of any engine."""
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
    """Yield the bindings under which a resolved body holds; `tick` is called at every step."""
    bound = analyse(body).bound
    plan = _evaluation_order(body)
    rows = {
        id(c): _aggregate_rows(c, facts, registry, errors, tick) for c in plan if isinstance(c, Aggregate)
    }

    def extend(position: int, binding: _Binding, problem: str) -> Iterator[_Binding]:
        tick()
        if position == len(plan):
            if problem:
                errors.add(binding, problem)
            else:
                yield binding
            return
        conjunct = plan[position]
        match conjunct:
            case Atom():
                for extended in facts.match(conjunct, binding):
                    yield from extend(position + 1, extended, problem)
                return
            case Aggregate():
                # It is the first conjunct, so nothing is bound yet.
                for row in rows[id(conjunct)]:
                    yield from extend(position + 1, dict(row), problem)
                return
            case _:
                pass
        if any(v in bound and v not in binding for v in _inputs(conjunct)):
            # An earlier error left an input without a value, so this conjunct cannot be evaluated.
            yield from extend(position + 1, binding, problem)
            return
        try:
            match conjunct:
                case Binding(variable=variable, expression=expression):
                    binding = {**binding, variable: evaluate(expression, binding, registry)}
                case Comparison(left=left, operator=operator, right=right):
                    holds = compare(
                        evaluate(left, binding, registry), operator, evaluate(right, binding, registry)
                    )
                    if not holds:
                        return
                case Negation(atom=atom):
                    if any(True for _ in facts.match(atom, binding)):
                        return
        except NoValue as error:
            problem = problem or str(error)
        yield from extend(position + 1, binding, problem)

    yield from extend(0, {}, "")


def _evaluation_order(body: tuple[Conjunct, ...]) -> list[Conjunct]:
    # The aggregate, then any conjunct with bound inputs, else the atom with the fewest unbound variables.
    order: list[Conjunct] = [c for c in body if isinstance(c, Aggregate)]
    remaining = [c for c in body if not isinstance(c, Aggregate)]
    final = analyse(body).bound
    bound: set[Variable] = set()
    for aggregate in (c for c in order if isinstance(c, Aggregate)):
        bound.update(aggregate.groups, (f.target for f in aggregate.folds))
    while remaining:
        ready = [
            c for c in remaining if not isinstance(c, Atom) and bound.issuperset(set(_inputs(c)) & final)
        ]
        atoms = [c for c in remaining if isinstance(c, Atom)]
        chosen = ready[0] if ready else min(atoms, key=lambda a: len(set(variables(a)) - bound))
        order.append(chosen)
        remaining.remove(chosen)
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
            for result in aggregate.folds:
                accepts(result.op, [binding[v] for v in result.arguments])
        except NoValue as error:
            errors.add(binding, str(error))
            continue
        groups.setdefault(tuple(binding[v] for v in aggregate.groups), []).append(binding)
    rows: list[_Binding] = []
    for group, members in groups.items():
        row = dict(zip(aggregate.groups, group, strict=True))
        try:
            for result in aggregate.folds:
                row[result.target] = fold_group(result, members, registry)
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
    # The last round has all errors of the earlier ones.
    summary = errors.summary()
    if summary:
        dropped[key] = summary
    else:
        dropped.pop(key, None)
