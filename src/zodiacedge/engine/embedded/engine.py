"""The engine `embedded`: compiled columnar kernels, no JVM, one process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine import state_compare
from zodiacedge.engine.api import materialised
from zodiacedge.engine.embedded.evaluate.query import EmbeddedQuery
from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch, EmbeddedFactDelta, rows_with
from zodiacedge.engine.embedded.maintain.propagate import Propagation
from zodiacedge.engine.embedded.maintain.strategy import Policy, Strategy
from zodiacedge.engine.embedded.storage.database import TYPED, Database, Relation, by_class
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.net_change import EmbeddedNetChange
from zodiacedge.engine.registry import Registry
from zodiacedge.terms import RDF_TYPE, Term

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.api import Answer, Batch, Dropped, FactDelta, Mismatch, NodeRun, Settings, State
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Fact, Predicate, Query, Rule, Variable

    Ids = NDArray[np.int32]

# So many rows become facts at once.
_TOGETHER = 65_536


@dataclass(frozen=True)
class EmbeddedState:
    """One version of a knowledge base in the embedded engine."""

    store: Database = field(default_factory=Database)
    runs: tuple[NodeRun, ...] = ()
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    policy: Policy = field(default_factory=Policy)
    graph: HyperGraph | None = None
    shapes: dict[frozenset[str], NodeRules] = field(default_factory=dict)
    rows: int = 0
    """How many facts all segments have together."""
    seconds: float = 0.0
    """How long evaluating all nodes from nothing took the last time."""
    readers: dict[Relation, tuple[int, ...]] = field(default_factory=dict)
    """The nodes of the graph that read a relation, as far as somebody asked."""

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""
        return self.explicit() | self.derived()

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""
        return frozenset(self.store.facts(self.store.segments[rules]))

    def segment_size(self, rules: frozenset[str]) -> int:
        """How many facts the hyper-node of these rules derives."""
        return len(self.store.segments[rules])

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the visible facts, or those of the hyper-node of these rules, each once, by predicate."""
        store = self.store
        owners = [store.explicit, *store.segments.values()] if rules is None else [store.segments[rules]]
        pieces: dict[Relation, list[Ids]] = {}
        for segment in owners:
            for relation, table in segment.tables.items():
                for one, rows in by_class(relation, table.rows):
                    if len(rows):
                        pieces.setdefault(one, []).append(rows)
        for relation, parts in pieces.items():
            yield store.predicate(relation), self._listed(relation, parts)

    def _listed(self, relation: Relation, parts: list[Ids]) -> Iterator[Fact]:
        rows = parts[0]
        if len(parts) > 1:
            union = Table(relation.arity)
            for part in parts:
                union.insert(part)
            rows = union.rows
        for start in range(0, len(rows), _TOGETHER):
            yield from self.store.facts_of(relation, rows[start : start + _TOGETHER])

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
        store = self.store
        typed = [segment.tables[TYPED].rows[:, 1] for segment in store.owners(TYPED)]
        classes = np.unique(np.concatenate(typed)).tolist() if typed else []
        relations = {*store.filled(), *(Relation(RDF_TYPE, 1, one) for one in classes)} - {TYPED}
        return frozenset(map(store.predicate, relations))

    def predicate_names(self) -> set[str]:
        """The names of the predicates of all visible facts; those that rules name may be left out."""
        if self.store.owners(TYPED):
            return {predicate.name for predicate in self.predicates()}
        return self.store.stated_names()

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        return self.prepare(query, (), settings)({})

    def prepare(self, query: Query, parameters: tuple[Variable, ...], settings: Settings) -> EmbeddedQuery:
        """Return a resolved query that is answered once its parameters have values."""
        return EmbeddedQuery(self.store, query, parameters, settings)

    def explicit(self) -> frozenset[Fact]:
        """All explicit facts."""
        return frozenset(self.store.facts(self.store.explicit))

    def explicit_predicates(self, names: Collection[str]) -> frozenset[Predicate]:
        """The predicates of some names that explicit facts have."""
        return frozenset(self.store.explicit_predicates(names))

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""
        return self.store.counts([self.store.explicit])

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact has this term as an argument."""
        number = self.store.dictionary.find(term)
        tables = self.store.explicit.tables.items()
        return number >= 0 and any(len(rows_with(name, table.rows, number)) for name, table in tables)

    def mentioning(self, terms: Collection[Term]) -> Iterator[Fact]:
        """Yield the explicit facts that have one of some terms as an argument; an IRI's class is none."""
        store = self.store
        found = [number for number in map(store.dictionary.find, terms) if number >= 0]
        # One more, for the number that no term has.
        wanted = np.zeros(len(store.dictionary) + 1, np.bool_)
        wanted[found] = True
        for relation, table in store.explicit.tables.items():
            for one, rows in by_class(relation, table.rows):
                whole = wanted[one.member_of] and store.predicate(one) == (RDF_TYPE, 2)
                yield from store.facts_of(one, rows if whole else rows[wanted[rows].any(axis=1)])

    def batch(self) -> EmbeddedBatch:
        """Return an empty batch for facts of the next change."""
        return EmbeddedBatch(self.store)

    def effective_delta(self, add: Batch, remove: Batch) -> EmbeddedFactDelta:
        """Find out which facts really come and go."""
        if not isinstance(add, EmbeddedBatch) or not isinstance(remove, EmbeddedBatch):
            raise TypeError(add, remove)
        return EmbeddedFactDelta(self.store, add.distinct(), remove.distinct())

    def attempt(
        self, rules: Mapping[str, Rule], graph: HyperGraph, effect: FactDelta, settings: Settings
    ) -> EmbeddedUncommitted:
        """Work out what a change leads to."""
        if not isinstance(effect, EmbeddedFactDelta):
            raise TypeError(effect)
        work = Propagation(
            self.store,
            self.dropped,
            rules,
            self.graph,
            graph,
            effect,
            settings,
            Strategy(self.policy, self.seconds),
            settings.registry is self.registry,
            self.shapes,
            self.readers if graph is self.graph else {},
            self.rows,
        )
        return EmbeddedUncommitted(self, work, work.draft())

    def digest(self, turn: YieldPoint) -> tuple[int, int]:
        """Count the visible facts, and add up the hashes of their texts."""
        return state_compare.digest(self, turn)

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible here only, and those that are in another version only."""
        return state_compare.diff(before, self)

    def mismatches(
        self, other: State, nodes: Sequence[frozenset[str]], turn: YieldPoint
    ) -> Iterator[Mismatch]:
        """Yield where this state differs from another of the same program."""
        return state_compare.mismatches(self, other, nodes, turn)


@dataclass(frozen=True)
class EmbeddedUncommitted:
    """A change that was worked out and is not in force yet."""

    before: EmbeddedState
    work: Propagation
    draft: Draft

    @cached_property
    def net(self) -> EmbeddedNetChange:
        """What becomes visible, and what is visible no more."""
        return EmbeddedNetChange(self.before.store, *self.draft.net())

    @property
    def runs(self) -> tuple[NodeRun, ...]:
        """The nodes that were visited, in order."""
        return tuple(self.work.runs)

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped, by rule key."""
        return self.work.dropped

    def _shapes(self) -> dict[frozenset[str], NodeRules]:
        known = self.before.shapes
        if not self.work.same_functions:
            known.clear()
        for keys in self.work.gone:
            known.pop(keys, None)
        known.update(self.work.shapes)
        return known

    def commit(self) -> EmbeddedState:
        """Put the change in force."""
        store = self.before.store
        # The tables that this very change alters: what came and went is still to be seen afterwards.
        store.release(self.net)
        self.net.commit()
        self.draft.commit()
        self.net.keep()
        if self.work.explicit:
            store.explicit.tables.update(self.work.explicit)
            store.show(store.explicit)
        for keys, (seconds, tries) in self.work.kept.items():
            store.segments[keys].seconds, store.segments[keys].tries = seconds, tries
        for keys in (*self.work.gone, *self.work.segments):
            if keys in store.segments:
                store.remove_segment(keys)
        for keys, segment in self.work.segments.items():
            store.add_segment(keys, segment)
        registry = self.work.settings.registry
        # What counts later what a node gained lives with the report only, and so do the tables it looks at.
        runs = tuple(replace(run, moved=None) if callable(run.moved) else run for run in self.runs)
        return EmbeddedState(
            store,
            runs,
            self.dropped,
            registry,
            self.before.policy,
            self.work.graph,
            self._shapes(),
            self.work.total,
            self.work.choice.estimate,
            self.work.readers,
        )


class EmbeddedEngine:
    """The engine `embedded`."""

    name = "embedded"

    def __init__(self, *, modules: bool = True, strategy: str = "choose", backward: bool = True) -> None:
        """Say how nodes are evaluated.

        Args:
            modules: Whether nodes of a known shape go to the algorithm made for it.
            strategy: How a node whose rules stay is brought up to date: `maintain`, `recompute`, or `choose`.
            backward: Whether doubtful facts of a recursive node are proved (Backward/Forward), or all deleted
                and derived again where possible (DRed).
        """
        self._policy = Policy(modules, strategy, backward)

    def empty(self) -> EmbeddedState:
        """Return a state without rules and facts."""
        return EmbeddedState(policy=self._policy)

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> State:
        """Evaluate checked and resolved rules, given by key, over explicit facts."""
        return materialised(self.empty(), rules, graph, facts, settings)

    def recompute(
        self, rules: Mapping[str, Rule], graph: HyperGraph, state: State, settings: Settings
    ) -> State:
        """Evaluate the same over the explicit facts of a state, of any engine."""
        return self.materialise(rules, graph, state.explicit(), settings)
