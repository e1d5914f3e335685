"""States of the embedded engine, and changes of them that are not committed yet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine import state_compare
from zodiacedge.engine.embedded.evaluate.measure import measure
from zodiacedge.engine.embedded.evaluate.query import EmbeddedQuery
from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch, EmbeddedFactDelta, rows_with
from zodiacedge.engine.embedded.lookup import EmbeddedLookups
from zodiacedge.engine.embedded.maintain.propagate import Propagation
from zodiacedge.engine.embedded.maintain.strategy import ElasticChoice, Policy
from zodiacedge.engine.embedded.maintain.transition import OldVersion, RuleChange
from zodiacedge.engine.embedded.maintain.windows import Windows, move_windows, next_windows
from zodiacedge.engine.embedded.memory_use import memory_use
from zodiacedge.engine.embedded.moment_queues import MomentQueues
from zodiacedge.engine.embedded.prepare import prepare
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation, by_class
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.net_change import EmbeddedNetChange
from zodiacedge.engine.registry import Registry
from zodiacedge.extras import has
from zodiacedge.terms import RDF_TYPE, Term

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.api import (
        Answer,
        Batch,
        Dropped,
        FactDelta,
        MemoryUse,
        Mismatch,
        NodeRun,
        Settings,
        State,
    )
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.io.formats.arrow_rows import ChunkedRows
    from zodiacedge.language.ast import Fact, Predicate, Query, Rule, Variable
    from zodiacedge.plan.algebra import Plan
    from zodiacedge.plan.measurement import Measurement

    Ids = NDArray[np.int32]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
    node_rules: dict[frozenset[str], NodeRules] = field(default_factory=dict)
    """Profiles of the nodes' rules, with the delta queries that changes assembled."""
    rows: int = 0
    """How many facts all segments have together."""
    seconds: float = 0.0
    """The time of the last evaluation of all nodes from scratch, in seconds."""
    readers: dict[Relation, tuple[int, ...]] = field(default_factory=dict)
    """The nodes of the graph that read a relation; filled on demand."""
    windows: Windows = field(default_factory=Windows)
    queues: MomentQueues = field(default_factory=MomentQueues)
    """Where the explicit rows begin that are to be forgotten by their moment."""
    keeps_windows = True

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
        for relation, parts in self._pieces(rules).items():
            yield self.store.predicate(relation), self._listed(relation, parts)

    def _pieces(self, rules: frozenset[str] | None) -> dict[Relation, list[Ids]]:
        """Return the rows of each relation: those of all owners, or of the hyper-node of these rules."""
        store = self.store
        owners = [store.explicit, *store.segments.values()] if rules is None else [store.segments[rules]]
        pieces: dict[Relation, list[Ids]] = {}
        for segment in owners:
            for relation, table in segment.tables.items():
                for one, rows in by_class(relation, table.rows):
                    if len(rows):
                        pieces.setdefault(one, []).append(rows)
        return pieces

    def tables(self, wanted: Callable[[Predicate], bool]) -> Mapping[Predicate, ChunkedRows] | None:
        """Return the visible facts of the wanted predicates, in order; None if one has no columns."""
        if not has("tables"):
            return None
        from zodiacedge.engine.embedded.evaluate.answer_table import chunked_rows  # noqa: PLC0415 - loads pyarrow

        found: dict[Predicate, ChunkedRows] = {}
        for relation, parts in self._pieces(None).items():
            predicate = self.store.predicate(relation)
            if not wanted(predicate):
                continue
            rows = parts[0] if len(parts) == 1 else Table.union(relation.arity, parts).rows
            if predicate.arity != rows.shape[1] or not predicate.arity:
                # A class that is no IRI, or a relation without columns.
                return None
            found[predicate] = chunked_rows(self.store.dictionary, rows)
        return found

    def _listed(self, relation: Relation, parts: list[Ids]) -> Iterator[Fact]:
        rows = parts[0] if len(parts) == 1 else Table.union(relation.arity, parts).rows
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
        return self.store.predicates()

    def predicate_names(self) -> set[str]:
        """The names of the predicates of all visible facts; those that rules name may be left out."""
        return self.store.predicate_names()

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        return self.prepare(query, (), settings)({})

    def prepare(self, query: Query, parameters: tuple[Variable, ...], settings: Settings) -> EmbeddedQuery:
        """Return a resolved query that is answered once its parameters have values."""
        return EmbeddedQuery(self.store, query, parameters, settings)

    def measure(self, plan: Plan, settings: Settings) -> Measurement:
        """Run a plan without a delta once, on all visible facts."""
        return measure(self.store, plan, settings)

    def lookups(self, settings: Settings) -> EmbeddedLookups:
        """Return lookups in this version."""
        return EmbeddedLookups.of(self.store, settings)

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

    def older(self, predicate: Predicate, position: int, moment: datetime | None) -> Iterator[Fact]:
        """Yield the explicit facts of a predicate whose argument is an earlier moment; all if None."""
        for relation, rows in self._older_rows(predicate, position, moment):
            yield from self.store.facts_of(relation, rows)

    def batch_of_older(self, predicate: Predicate, position: int, moment: datetime) -> EmbeddedBatch:
        """Return the explicit facts of a predicate whose argument, from 1, is an earlier moment."""
        batch = self.batch()
        for relation, rows in self._older_rows(predicate, position, moment):
            batch.add_rows(relation, rows)
        return batch

    def _older_rows(
        self, predicate: Predicate, position: int, moment: datetime | None
    ) -> Iterator[tuple[Relation, Ids]]:
        for relation, table in self.store.explicit.tables.items():
            if len(table) and self.store.predicate(relation) == predicate:
                rows = table.rows
                if moment is not None:
                    rows = self.queues.older(self.store, self.registry, relation, position - 1, moment)
                if len(rows):
                    yield relation, rows

    def mentioning(self, terms: Collection[Term]) -> Iterator[Fact]:
        """Yield the explicit facts that have one of some terms as an argument; an IRI's class is none."""
        store = self.store
        wanted = self._among(terms)
        for relation, table in store.explicit.tables.items():
            for one, rows in by_class(relation, table.rows):
                whole = wanted[one.member_of] and store.predicate(one) == (RDF_TYPE, 2)
                yield from store.facts_of(one, rows if whole else rows[wanted[rows].any(axis=1)])

    def about(self, subjects: Collection[Term]) -> Iterator[Fact]:
        """Yield the explicit facts whose first argument is one of some terms."""
        wanted = self._among(subjects)
        for relation, table in self.store.explicit.tables.items():
            for one, rows in by_class(relation, table.rows) if relation.arity else ():
                yield from self.store.facts_of(one, rows[wanted[rows[:, 0]]])

    def _among(self, terms: Collection[Term]) -> NDArray[np.bool_]:
        """Return for each id of the dictionary whether it is that of one of some terms."""
        dictionary = self.store.dictionary
        found = [number for number in map(dictionary.find, terms) if number >= 0]
        # One more, for the number that no term has.
        wanted = np.zeros(len(dictionary) + 1, np.bool_)
        wanted[found] = True
        return wanted

    def batch(self) -> EmbeddedBatch:
        """Return an empty batch for facts of the next change."""
        return EmbeddedBatch(self.store)

    def effective_delta(self, add: Batch, remove: Batch) -> EmbeddedFactDelta:
        """Find out which facts really come and go."""
        if not isinstance(add, EmbeddedBatch) or not isinstance(remove, EmbeddedBatch):
            raise TypeError(add, remove)
        return EmbeddedFactDelta(self.store, add.distinct(), remove.distinct())

    def maintain(
        self, rules: Mapping[str, Rule], graph: HyperGraph, fact_delta: FactDelta, settings: Settings
    ) -> EmbeddedUncommitted:
        """Work out what a change leads to."""
        if not isinstance(fact_delta, EmbeddedFactDelta):
            raise TypeError(fact_delta)
        old = OldVersion(self.store, self.graph, self.dropped, self.node_rules, self.rows)
        change = RuleChange(rules, graph, settings.registry is self.registry)
        strategy = ElasticChoice(self.policy, self.seconds)
        while True:
            readers = self.readers if graph is self.graph else {}
            new_graph = None if graph is self.graph else graph
            windows = next_windows(self.windows, self.store, rules, new_graph, fact_delta)
            move = move_windows(self.windows, windows, self.store)
            work = Propagation(old, change, fact_delta, settings, strategy, readers, move)
            draft = work.draft()
            if not windows.hold(self.store, windows.seen):
                return EmbeddedUncommitted(self, work, draft, windows)
            # Rules have computed moments that are in windows: again, with them.
            draft.discard()
            strategy = ElasticChoice(self.policy, self.seconds)

    def next_due(self) -> datetime | None:
        """Return the first time of the clock at which a window changes; None if none will."""
        micros = self.windows.next_due(self.store)
        return None if micros is None else _EPOCH + timedelta(microseconds=micros)

    def earliest(self, predicate: Predicate, position: int, since: datetime) -> datetime | None:
        """Return the first moment from a time on that explicit facts of a predicate have as an argument."""
        found = (
            self.store.terms.earliest(table.rows[:, position - 1], since)
            for relation, table in self.store.explicit.tables.items()
            if position <= table.rows.shape[1] and self.store.predicate(relation) == predicate
        )
        return min((moment for moment in found if moment is not None), default=None)

    def held(self) -> tuple[MemoryUse, ...]:
        """Return what the tables, the dictionary and the programs for changes hold."""
        return tuple(memory_use(self.store, self.node_rules.values()))

    def reclaim(self, rules: Mapping[str, Rule]) -> None:
        """Free a part of the terms and of the memory that nothing uses any more."""
        reclamation = self.store.reclamation
        try:
            reclamation.step(rules, self._forget_classes, partial(self.windows.leave, self.store))
        except MemoryError:
            reclamation.abandon()

    def _forget_classes(self) -> None:
        for profile in self.node_rules.values():
            profile.forget_classes()
        self.readers.clear()

    def digest(self, yield_point: YieldPoint) -> tuple[int, int]:
        """Count the visible facts, and add up the hashes of their texts."""
        return state_compare.digest(self, yield_point)

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible here only, and those that are in another version only."""
        return state_compare.diff(before, self)

    def mismatches(
        self, other: State, nodes: Sequence[frozenset[str]], yield_point: YieldPoint
    ) -> Iterator[Mismatch]:
        """Yield where this state differs from another of the same program."""
        return state_compare.mismatches(self, other, nodes, yield_point)


@dataclass(frozen=True)
class EmbeddedUncommitted:
    """A change that was worked out and is not in force yet."""

    before: EmbeddedState
    work: Propagation
    draft: Draft
    windows: Windows

    @cached_property
    def net(self) -> EmbeddedNetChange:
        """What becomes visible, and what is visible no more."""
        return EmbeddedNetChange(self.before.store, *self.draft.net())

    @property
    def runs(self) -> tuple[NodeRun, ...]:
        """The nodes that were visited, in order."""
        return tuple(self.work.next.runs)

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped, by rule key."""
        return self.work.next.dropped

    @property
    def segments(self) -> Mapping[frozenset[str], Segment]:
        """The segments of new nodes, and of nodes that were recomputed and not patched."""
        return self.work.next.segments

    @property
    def facts(self) -> int:
        """The number of facts of all segments."""
        return self.work.next.facts

    def lookups(self, settings: Settings) -> EmbeddedLookups:
        """Return lookups in the next version, until the version in force changes."""
        return EmbeddedLookups(self.draft, settings, self.work.next.explicit)

    def overlays(self, segment: Segment) -> tuple[Mapping[Relation, Overlay], Mapping[str, Overlay]]:
        """Return the overlays of the tables of a segment, and of the rows of its aggregates."""
        return self.draft.gains(segment)

    def prepare(self) -> None:
        """Build the hash sets and large indexes that later changes read, if the change was a load.

        A load doubles the explicit facts at least, or it adds the first rules.
        """
        store, new, inserted = self.before.store, self.work.next, self.work.inserted
        # The explicit facts are counted relation by relation.
        if store.segments and (not inserted or inserted < len(store.explicit)):
            return
        known = {**self.before.node_rules, **new.node_rules}
        nodes = [(known[keys], segment) for keys, segment in new.segments.items()]
        explicit = {**store.explicit.tables, **new.explicit}.values()
        prepare(self.draft, nodes, explicit, self.work.settings.yield_point)

    def commit(self) -> EmbeddedState:
        """Put the change in force."""
        new, change = self.work.next, self.work.change
        if self.before.store.tracked:
            segments = self.before.store.segments
            for keys in new.segments.keys() & segments.keys():
                new.segments[keys].keep_revisions(segments[keys])
        # The difference is still to be seen after the tables that this very change alters.
        self.before.store.remove_reader(self.net)
        self.net.commit()
        self.before.queues.inserted(self.before.store, self.work.inserted_rows)
        self.draft.commit()
        self.windows.commit(self.before.store)
        self.net.keep()
        self._commit_segments(self.before.store)
        # A count on demand lives with the report only, and so do the tables that it compares.
        runs = tuple(replace(run, moved=None) if callable(run.moved) else run for run in new.runs)
        return EmbeddedState(
            self.before.store,
            runs,
            new.dropped,
            self.work.settings.registry,
            self.before.policy,
            change.graph,
            self._node_rules(),
            new.facts,
            self.work.strategy.estimate,
            new.readers,
            self.windows,
            self.before.queues,
        )

    def _commit_segments(self, store: Database) -> None:
        new = self.work.next
        if new.explicit:
            store.explicit.tables.update(new.explicit)
            store.explicit.revisions.bump(*new.explicit)
            store.show(store.explicit)
        for keys, (seconds, tries) in new.patched.items():
            store.segments[keys].seconds, store.segments[keys].tries = seconds, tries
        for keys in (*new.removed, *new.segments):
            if keys in store.segments:
                store.remove_segment(keys)
        for keys, segment in new.segments.items():
            store.add_segment(keys, segment)

    def _node_rules(self) -> dict[frozenset[str], NodeRules]:
        known = self.before.node_rules
        if not self.work.change.same_functions:
            known.clear()
        for keys in self.work.next.removed:
            known.pop(keys, None)
        known.update(self.work.next.node_rules)
        return known
