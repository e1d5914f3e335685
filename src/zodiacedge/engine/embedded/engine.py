"""The engine `embedded`: node after node, each on the rule machine or by a module.

A change evaluates the nodes that it can matter to: those with rules that were not together before, and those
with an atom that matches a relation that may have changed. The rest is taken over as it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import Answer, Dropped, NodeRun, Progress, Settings, refuse_errors
from zodiacedge.engine.embedded.batch import EmbeddedBatch, EmbeddedEffect, holds
from zodiacedge.engine.embedded.node import NodeRun as Evaluation
from zodiacedge.engine.embedded.query import EmbeddedQuery
from zodiacedge.engine.embedded.store import TYPED, Relation, Segment, Store
from zodiacedge.engine.embedded.table import Table
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.registry import Registry
from zodiacedge.language.checks import body_atoms
from zodiacedge.language.printer import format_rule
from zodiacedge.terms import RDF_TYPE, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from zodiacedge.engine.api import Batch, Effect
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Fact, Predicate, Query, Rule, Variable

    Ids = NDArray[np.int32]


@dataclass(frozen=True)
class EmbeddedState:
    """One version of a knowledge base in the embedded engine."""

    store: Store = field(default_factory=Store)
    runs: tuple[NodeRun, ...] = ()
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    modules: bool = True

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""
        return self.explicit() | self.derived()

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""
        return frozenset(self.store.facts(self.store.segments[rules]))

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, explicit too or not."""
        return frozenset(f for s in self.store.segments.values() for f in self.store.facts(s))

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate, without listing them."""
        return self._derived_counts

    @cached_property
    def _derived_counts(self) -> Mapping[Predicate, int]:
        return self.store.counts(self.store.segments.values())

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of all visible facts."""
        typed = [table.rows[:, 1] for table in self.store.visible().get(TYPED, ())]
        classes = np.unique(np.concatenate(typed)).tolist() if typed else []
        relations = {*self.store.visible(), *(Relation(RDF_TYPE, 1, one) for one in classes)} - {TYPED}
        return frozenset(map(self.store.predicate, relations))

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        return self.prepare(query, (), settings)({})

    def prepare(self, query: Query, parameters: tuple[Variable, ...], settings: Settings) -> EmbeddedQuery:
        """Return a resolved query that is answered once its parameters have values."""
        return EmbeddedQuery(self.store, query, parameters, settings)

    def explicit(self) -> frozenset[Fact]:
        """All explicit facts."""
        return frozenset(self.store.facts(self.store.explicit))

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""
        return self.store.counts([self.store.explicit])

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact has this term as an argument."""
        number = self.store.dictionary.find(term)
        return number >= 0 and holds(self.store.explicit, number)

    def batch(self) -> EmbeddedBatch:
        """Return an empty batch for facts of the next change."""
        return EmbeddedBatch(self.store)

    def effect(self, add: Batch, remove: Batch) -> EmbeddedEffect:
        """Find out which facts really come and go."""
        if not isinstance(add, EmbeddedBatch) or not isinstance(remove, EmbeddedBatch):
            raise TypeError(add, remove)
        return EmbeddedEffect(self.store, add.distinct(), remove.distinct())

    def apply(
        self, rules: Mapping[str, Rule], graph: HyperGraph, effect: Effect, settings: Settings
    ) -> EmbeddedState:
        """Evaluate the program that a change leads to; nodes that it cannot matter to are taken over."""
        if not isinstance(effect, EmbeddedEffect):
            raise TypeError(effect)
        store = Store(self.store.terms, effect.after())
        touched = {*effect.new, *effect.old}
        nodes = [frozenset(node.rules) for node in graph.order]
        for gone in self.store.segments.keys() - set(nodes):
            touched.update(self.store.segments[gone].tables)
        same_functions = settings.registry is self.registry
        meter = Meter(settings.limits)
        runs: list[NodeRun] = []
        dropped: dict[str, Dropped] = {}
        total = 0
        for place, keys in enumerate(nodes):
            own = {key: rules[key] for key in graph.order[place].rules}
            before = self.store.segments.get(keys)
            if before is not None and same_functions and not _reads(store, own.values(), touched):
                store.add_segment(keys, before)
                dropped |= {key: self.dropped[key] for key in own if key in self.dropped}
                total += len(before)
                continue
            start = time.perf_counter()
            watch = _Watch(settings, meter, place, len(nodes), tuple(own.values()), total)
            result = Evaluation(store, own, settings.registry, watch, modules=self.modules).evaluate()
            watch(result.rounds, len(result.segment))
            if settings.strict:
                refuse_errors(rules, result.dropped)
            store.add_segment(keys, result.segment)
            touched.update(result.segment.tables)
            if before is not None:
                touched.update(before.tables)
            total += len(result.segment)
            dropped |= result.dropped
            seconds = time.perf_counter() - start
            runs.append(NodeRun(watch.labels, result.rounds, len(result.segment), seconds))
        return EmbeddedState(store, tuple(runs), dropped, settings.registry, self.modules)

    def since(self, before: EmbeddedState) -> EmbeddedNet:
        """Compare the visible facts with those of an earlier state."""
        return EmbeddedNet(before.store, self.store)


class EmbeddedEngine:
    """The engine `embedded`."""

    name = "embedded"

    def __init__(self, *, modules: bool = True) -> None:
        """Say whether nodes of a known shape go to the algorithm made for it."""
        self._modules = modules

    def empty(self) -> EmbeddedState:
        """Return a state without rules and facts."""
        return EmbeddedState(modules=self._modules)

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> EmbeddedState:
        """Evaluate checked and resolved rules, given by key, over explicit facts."""
        state = self.empty()
        batch = state.batch()
        batch.add(facts)
        return state.apply(rules, graph, state.effect(batch, state.batch()), settings)


@dataclass(frozen=True)
class EmbeddedNet:
    """What became visible between two stores, and what is visible no more."""

    before: Store
    after: Store

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the facts that came and those that went, without listing them."""
        came, went = (self.after.counts([segment]) for segment in self._segments)
        return came, went

    def facts(self) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The facts that came, and those that went."""
        came, went = (frozenset(self.after.facts(segment)) for segment in self._segments)
        return came, went

    @cached_property
    def _segments(self) -> tuple[Segment, Segment]:
        came, went = Segment(), Segment()
        before, after = self.before.visible(), self.after.visible()
        if TYPED in before or TYPED in after:
            before, after = _by_class(before), _by_class(after)
        for relation in {*before, *after}:
            old, new = before.get(relation, []), after.get(relation, [])
            # Tables that both have in common say the same in both.
            if {id(table) for table in old} == {id(table) for table in new}:
                continue
            came.tables[relation] = _missing(relation, new, old)
            went.tables[relation] = _missing(relation, old, new)
        return came, went


def _by_class(view: Mapping[Relation, list[Table]]) -> dict[Relation, list[Table]]:
    """Return the tables with those of `rdf:type` as a whole dealt out to their classes."""
    found = {relation: list(tables) for relation, tables in view.items() if relation != TYPED}
    for typed in view.get(TYPED, ()):
        for one in np.unique(typed.rows[:, 1]).tolist():
            members = Table(1)
            members.append_distinct(typed.rows[typed.rows[:, 1] == one][:, :1])
            found.setdefault(Relation(RDF_TYPE, 1, one), []).append(members)
    return found


def _missing(relation: Relation, tables: list[Table], elsewhere: list[Table]) -> Table:
    """Return the rows of some tables that stand in none of the others."""
    shared = {id(table) for table in elsewhere}
    found = Table(relation.arity)
    for table in tables:
        if id(table) in shared:
            continue
        rows = table.rows
        for other in elsewhere:
            rows = other.sift(rows, present=False)
        if len(rows) and len(found):
            found.insert(rows)
        elif len(rows):
            found.append_distinct(rows)
    return found


def _reads(store: Store, rules: Iterable[Rule], touched: set[Relation]) -> bool:
    for rule in rules:
        for atom in body_atoms(rule.body):
            if any(relation in touched for relation in store.relations(atom)):
                return True
            if atom.relation == RDF_TYPE and any(r.name == RDF_TYPE for r in touched):
                # A variable class reads every class, and facts of all classes may hold any.
                return True
    return False


@dataclass(frozen=True, slots=True)
class _Watch:
    # Called while a node runs: limits and progress.
    settings: Settings
    meter: Meter
    place: int
    nodes: int
    rules: tuple[Rule, ...]
    before: int

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(rule.label or format_rule(rule) for rule in self.rules)

    def __call__(self, rounds: int, facts: int) -> None:
        first = self.rules[0]
        name = first.label or format_rule(first)
        self.meter.look(name, first.span)
        self.meter.count(self.before + facts, rounds, name, first.span)
        if self.settings.progress:
            self.settings.progress(Progress(self.place, self.nodes, self.labels, rounds, self.before + facts))
