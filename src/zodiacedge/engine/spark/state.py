"""One version of a knowledge base on Spark (the paper's DataStore): reading, querying and changing it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING

from zodiacedge.engine import state_compare
from zodiacedge.engine.api import Settings
from zodiacedge.engine.query_lookups import QueryLookups
from zodiacedge.engine.spark.compare.checksums import mismatches
from zodiacedge.engine.spark.compare.diff import diff
from zodiacedge.engine.spark.compare.digest import digest
from zodiacedge.engine.spark.evaluate.inputs import inputs_of
from zodiacedge.engine.spark.ingest.batch import SparkBatch, SparkFactDelta, class_predicate, predicate_counts
from zodiacedge.engine.spark.lookup.count_distinct import count
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.lookup.table import Selection, frame_of
from zodiacedge.engine.spark.maintain.propagate import propagate
from zodiacedge.engine.spark.maintain.window_delta import EPOCH
from zodiacedge.engine.spark.query import one_task
from zodiacedge.engine.spark.query.by_terms import Timed, earliest, facts_about, next_due
from zodiacedge.engine.spark.query.distributed import DistributedQuery
from zodiacedge.engine.spark.query.key_lookups import KeyLookups
from zodiacedge.engine.spark.query.limited import LimitedQuery
from zodiacedge.engine.spark.storage.embedded_tables import mentioned
from zodiacedge.engine.spark.storage.files import Relation, Segment, held
from zodiacedge.engine.spark.storage.version import SparkVersion
from zodiacedge.engine.spark.storage.windows import Windows
from zodiacedge.language.ast import Comparison, Predicate, Query, Variable, atom, body_atoms
from zodiacedge.language.parser import ground
from zodiacedge.terms import date_time, microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.api import (
        Answer,
        Batch,
        Dropped,
        FactDelta,
        MemoryUse,
        Mismatch,
        NodeRun,
        RanJob,
        State,
    )
    from zodiacedge.engine.spark.maintain.net_change import SparkNetChange
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.io.formats.column_mapping import ColumnMapping
    from zodiacedge.language.ast import Conjunct, Fact, Rule
    from zodiacedge.terms import Term

# So many facts of `rdf:type` are grouped by class at a time.
_TOGETHER = 65_536


@dataclass(frozen=True)
class SparkUncommitted:
    """An evaluated change that is not committed yet."""

    after: SparkState
    net: SparkNetChange

    @property
    def runs(self) -> tuple[NodeRun, ...]:
        """The evaluated nodes, in order."""
        return self.after.runs

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped, by rule key."""
        return self.after.dropped

    def lookups(self, settings: Settings) -> KeyLookups:
        """Return lookups in the next version."""
        return self.after.lookups(settings)

    def prepare(self) -> None:
        """Do nothing: files have no indexes."""

    def commit(self) -> SparkState:
        """Return the state after the change."""
        return self.after


class SparkState(SparkVersion):
    """One version of a knowledge base on Spark."""

    keeps_windows = True

    def lookups(self, settings: Settings) -> KeyLookups:
        """Return lookups in this version."""
        return KeyLookups(self, QueryLookups(self, settings), settings)

    # Facts.

    def visible(self) -> frozenset[Fact]:
        """Return all facts: the explicit ones and those of every segment."""
        return frozenset(fact for _, facts in self.each() for fact in facts)

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """Return the facts that the hyper-node of these rules derives."""
        return frozenset(fact for _, facts in self.each(rules) for fact in facts)

    def derived(self) -> frozenset[Fact]:
        """Return the derived facts (IDB), the union of all segments; they may be explicit too."""
        return frozenset(f for _, facts in self._each(self.segments.values()) for f in facts)

    def explicit(self) -> frozenset[Fact]:
        """Return the explicit facts (EDB)."""
        return frozenset(fact for _, facts in self._each((self.explicit_files,)) for fact in facts)

    def segment_size(self, rules: frozenset[str]) -> int:
        """Return the number of facts that the hyper-node of these rules derives."""
        return self.segments[rules].rows

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the visible facts, or those of the hyper-node of these rules, each once, by predicate."""
        return self._each(self.owners.values() if rules is None else (self.segments[rules],))

    def _each(self, owners: Iterable[Segment]) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        lookup = self.lookup
        for relation, contents in held(owners).items():
            facts = lookup.facts(relation, contents)
            if relation.typed:
                yield from _by_predicate(facts)
            else:
                yield Predicate(*relation), facts

    @property
    def lookup(self) -> Decoder:
        """The lookup that decodes rows of this version."""
        return Decoder(self.workspace, self.terms)

    # Counts.

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate, without listing them."""
        return self._counts(self.segments.values(), self.counted)

    def explicit_predicates(self, names: Collection[str]) -> frozenset[Predicate]:
        """Return the predicates of explicit facts that have one of these names."""
        return frozenset(predicate for predicate in self.explicit_counts() if predicate.name in names)

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""
        return self._counts((self.explicit_files,))

    def predicate_names(self) -> set[str]:
        """Return the names of the predicates of all visible facts."""
        return {predicate.name for predicate in self.predicates()}

    def predicates(self) -> frozenset[Predicate]:
        """Return the predicates of all visible facts."""
        predicates: set[Predicate] = set()
        for relation, contents in held(self.owners.values()).items():
            if relation.typed:
                keys = {key for content in contents for key in content.classes}
                names = self.named(keys)
                predicates.update(class_predicate(names[key]) for key in keys)
            else:
                predicates.add(Predicate(*relation))
        return frozenset(predicates)

    def _counts(
        self, owners: Iterable[Segment], known: Mapping[Relation, Mapping[int, int]] | None = None
    ) -> dict[Predicate, int]:
        totals: dict[Predicate, int] = {}
        for relation, contents in held(owners).items():
            counts = (known or {}).get(relation) or count(self.workspace, relation, contents)
            for predicate, facts in predicate_counts(relation, counts, self.named).items():
                totals[predicate] = totals.get(predicate, 0) + facts
        return totals

    # DataFrames.

    @property
    def session(self) -> SparkSession:
        """The session of the user."""
        return self.workspace.jobs.cluster.session()

    def frame(self, predicate: Predicate, mapping: ColumnMapping) -> DataFrame:
        """Return the visible facts of a predicate with the columns of a mapping."""
        selection = Selection.of(self, predicate)
        contents = [owner.content(selection.relation) for owner in self.owners.values()]
        return frame_of(self, selection, contents, mapping, self.session)

    # Queries.

    def holds(self, term: Term) -> bool:
        """Whether an explicit fact has this term as an argument."""
        return self.lookup.holds(term, self.explicit_files)

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""
        return self.prepare(query, (), settings)({})

    def prepare(
        self, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> Callable[[Mapping[Variable, Term]], Answer]:
        """Return a function that answers a resolved query, given values for its parameters."""
        atoms = list(body_atoms(query.body))
        owners = self.owners.values()
        terms = [*mentioned(query.body), *mentioned(query.columns)]
        keys = self.workspace.keys(terms)
        inputs = inputs_of(atoms, keys, owners, owners)
        rows = sum(content.rows for read in inputs for content in read.before)
        options = self.workspace.options
        if not options.gathers(rows):
            if query.limit is not None and query.limit <= options.driver_rows and not parameters:
                return lambda _: LimitedQuery(self, query, settings).answered()
            return DistributedQuery(self, query, parameters, settings).answered

        def answered(values: Mapping[Variable, Term]) -> Answer:
            bound = {v: values[v] for v in parameters}
            task = one_task.QueryTask(
                query,
                bound,
                keys | self.workspace.hashing.keys_of(bound.values()),
                inputs,
                self.terms,
                self.workspace.hashing,
                settings.registry,
                settings.limits,
            )
            return self.workspace.jobs.one(one_task.run, task, "answering a query")

        return answered

    # Changes.

    @contextmanager
    def watched_jobs(self, purpose: str) -> Iterator[Sequence[RanJob]]:
        """Name the jobs of a `with` block by what they are for; return those that ran."""
        with self.workspace.jobs.together(purpose) as group:
            yield group.ran

    def older(self, predicate: Predicate, position: int, moment: datetime | None) -> Iterable[Fact]:
        """The explicit facts of a predicate whose argument, from 1, is an earlier moment; all if None."""
        columns = tuple(Variable(f"V{n}") for n in range(predicate.arity))
        pattern = atom(predicate.name, columns)
        body: tuple[Conjunct, ...] = (pattern,)
        if moment is not None:
            body = (pattern, Comparison(columns[position - 1], "<", date_time(moment)))
        rows = self.answer(Query(columns, body), Settings()).rows
        found = [ground(replace(pattern, args=(*row, *pattern.args[len(columns) :]))) for row in rows]
        lookups = self.lookups(Settings())
        # In pieces: the driver holds the rows of one, which other facts may share a key with.
        most = max(1, self.workspace.options.driver_rows // 4)
        pieces = (found[start : start + most] for start in range(0, len(found), most))
        return list(chain.from_iterable(lookups.explicit_among(piece) for piece in pieces))

    def about(self, subjects: Collection[Term]) -> Iterator[Fact]:
        """Yield the explicit facts whose first argument is one of some terms."""
        return facts_about(self, subjects)

    def batch_of_older(self, predicate: Predicate, position: int, moment: datetime) -> SparkBatch:
        """Return the explicit facts of a predicate whose argument, from 1, is an earlier moment."""
        batch = self.batch()
        batch.add(self.older(predicate, position, moment))
        return batch

    def batch(self) -> SparkBatch:
        """Return an empty batch of facts."""
        return SparkBatch(self.workspace)

    def effective_delta(self, add: Batch, remove: Batch) -> SparkFactDelta:
        """Return the delta of the explicit facts by batches of facts to insert and to delete."""
        if not isinstance(add, SparkBatch) or not isinstance(remove, SparkBatch):
            raise TypeError(add, remove)
        return SparkFactDelta(self.workspace, self.explicit_files, self.terms, add.rows(), remove.rows())

    def maintain(
        self, rules: Mapping[str, Rule], graph: HyperGraph, fact_delta: FactDelta, settings: Settings
    ) -> SparkUncommitted:
        """Evaluate a change of facts and rules."""
        if not isinstance(fact_delta, SparkFactDelta):
            raise TypeError(fact_delta)
        return SparkUncommitted(*propagate(self, rules, graph, fact_delta, settings))

    # Verification.

    def recompute(self, rules: Mapping[str, Rule], graph: HyperGraph, settings: Settings) -> SparkState:
        """Evaluate rules from scratch over the explicit facts; both versions share their files."""
        bare = SparkState(
            self.workspace,
            self.explicit_files,
            terms=self.terms,
            names=self.names,
            introduced=self.introduced,
            windows=Windows(self.windows.clock),
        )
        unchanged = bare.effective_delta(bare.batch(), bare.batch())
        return bare.maintain(rules, graph, unchanged, settings).commit()

    # Time.

    def next_due(self) -> datetime | None:
        """Return the first time of the clock at which a window changes; None if none will."""
        micros = next_due(self, self.rules.values())
        return None if micros is None else EPOCH + timedelta(microseconds=micros)

    def earliest(self, predicate: Predicate, position: int, since: datetime) -> datetime | None:
        """Return the first moment from a time on that explicit facts of a predicate have as an argument."""
        timed = Timed.of_predicate(predicate, position, lambda term: self.workspace.keys([term])[term])
        micros = earliest(self, timed, [self.explicit_files], microseconds(since - EPOCH))
        return None if micros is None else EPOCH + timedelta(microseconds=micros)

    def held(self) -> tuple[MemoryUse, ...]:
        """Return nothing: Python and Spark do not tell."""
        return ()

    def reclaim(self, rules: Mapping[str, Rule]) -> None:
        """Do nothing: files are compacted when they are written."""

    def digest(self, yield_point: YieldPoint) -> tuple[int, int]:
        """Count the visible facts, and add up the hashes of their texts."""
        return digest(self.workspace, held(self.owners.values()), self.terms, yield_point)

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible in this version only, and those in the other only."""
        if isinstance(before, SparkState) and before.workspace is self.workspace:
            return diff(before, self)
        return state_compare.diff(before, self)

    def mismatches(
        self, other: State, nodes: Sequence[frozenset[str]], yield_point: YieldPoint
    ) -> Iterator[Mismatch]:
        """Yield the mismatches of this state with another of the same rules."""
        if isinstance(other, SparkState) and other.workspace is self.workspace:
            return mismatches(self, other, nodes, yield_point)
        return state_compare.mismatches(self, other, nodes, yield_point)


def _by_predicate(facts: Iterator[Fact]) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
    groups: dict[Predicate, list[Fact]] = {}
    for number, fact in enumerate(facts, 1):
        groups.setdefault(fact.predicate, []).append(fact)
        if number % _TOGETHER == 0:
            yield from ((predicate, iter(group)) for predicate, group in groups.items())
            groups = {}
    yield from ((predicate, iter(group)) for predicate, group in groups.items())
