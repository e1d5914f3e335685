"""Maintenance of a region of hyper-nodes in one task, by the embedded engine.

The facts outside the region (explicit facts, segments of other nodes) are the explicit facts of the embedded
engine, and their change is its change: a fact that one outside owner lost and another still has is not
deleted. The segments of the region's nodes are its segments. `task_output` writes their changes to files; the
task returns paths and counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.engine.api import Dropped, NodeRun, Settings
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.embedded.maintain.windows import Windows
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import TYPED as ALL_CLASSES
from zodiacedge.engine.embedded.storage.relation import in_pairs
from zodiacedge.engine.embedded.storage.table import Table, count_distinct
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.evaluate.task_output import SegmentWriter
from zodiacedge.engine.spark.lookup.by_key import SliceReader
from zodiacedge.engine.spark.partition.shuffle import PartitionInput, reader_of
from zodiacedge.engine.spark.storage.embedded_tables import (
    SignedFileReader,
    Translation,
    needs_values,
    segment_of,
)
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Folder, Relation, Segment
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, entries_of, unseen, write_terms
from zodiacedge.graph.hyper_graph import HyperGraph
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
    from zodiacedge.engine.embedded.storage.relation import Relation as TableName
    from zodiacedge.engine.embedded.storage.segment import Segment as Tables
    from zodiacedge.engine.spark.evaluate.inputs import Input
    from zodiacedge.engine.spark.storage.embedded_tables import SignedColumns
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

    NodeFiles = Mapping[frozenset[str], Segment]
    # The files of the inserted and of the deleted visible rows.
    NetFiles = tuple[Mapping[Relation, DataFile], Mapping[Relation, DataFile]]

# The strategy that the embedded engine reports for a node that it did not recompute.
MAINTAINED = "maintained"


@dataclass(frozen=True)
class RegionProgram:
    """The rules of a region's nodes, and results of their previous evaluation."""

    rules: Mapping[str, Rule] = field(default_factory=dict)
    keys: Mapping[Term, int] = field(default_factory=dict)
    """The fingerprints of the terms of rules."""
    new_terms: tuple[Term, ...] = ()
    """Terms of rules that may be in no file yet."""
    old_rules: Mapping[str, Rule] = field(default_factory=dict)
    """The old rules of the nodes, if the change deleted nodes that have segments."""
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    seconds: Mapping[frozenset[str], float] = field(default_factory=dict)
    """Seconds of the last evaluation of nodes from scratch."""

    def rule(self, key: str) -> Rule:
        """Return the rule of a key, in the new or the old version."""
        return self.rules[key] if key in self.rules else self.old_rules[key]

    def rows_of(self, key: str) -> Relation:
        """Return the relation of a rule's aggregate rows."""
        return Relation.of_rows(self.rule(key).aggregate)


@dataclass(frozen=True)
class RegionInputs:
    """The files that a region reads: all rows, a slice, or a hash partition."""

    relations: tuple[Input, ...]
    terms: TermFiles
    segments: NodeFiles = field(default_factory=dict)
    slice_rows: Mapping[str, list[NDArray[np.int64]]] | None = None
    """The looked-up rows by file, if they suffice to maintain the nodes."""
    partition: PartitionInput | None = None
    """The rows of one hash partition, if the region is partitioned."""

    def reader(self) -> SignedFileReader:
        """Return the reader of the region's files."""
        return reader_of(self.partition) if self.slice_rows is None else SliceReader(self.slice_rows)


@dataclass(frozen=True)
class TaskSettings:
    """The folder that a task writes to, and the settings of its evaluation."""

    folder: Folder
    hashing: Hashing
    registry: Registry = field(default_factory=Registry)
    same_functions: bool = True
    limits: Limits = field(default_factory=Limits)
    strict: bool = False
    policy: Policy = field(default_factory=Policy)
    total: int = 0
    """The number of facts in all segments, including those outside the region."""
    net_rows: float = 0
    """The maximum number of changed rows for which the net change is returned; 0 for never."""


@dataclass(frozen=True)
class RegionTask:
    """The input of a task that maintains a region of nodes."""

    program: RegionProgram
    inputs: RegionInputs
    settings: TaskSettings


@dataclass(frozen=True)
class RegionResult:
    """The result of a task: the segments of a region's nodes after a change, and a report."""

    changed: NodeFiles
    """The changed segments, with their changed contents only."""
    replaced: frozenset[frozenset[str]]
    """Segments whose contents here are complete."""
    terms: DataFile
    """The terms that were in no file before."""
    counts: Mapping[Relation, Mapping[int, int]]
    """The number of distinct derived rows of a relation, by class or under 0, where the task knows it."""
    runs: tuple[NodeRun, ...]
    dropped: Mapping[str, Dropped]
    seconds: Mapping[frozenset[str], float]
    """Seconds of evaluating from scratch, of the nodes where that was done."""
    net: NetFiles | None
    """The net change, if it is wanted and small."""


def run(task: RegionTask) -> RegionResult | None:
    """Maintain a region; return None if a slice does not suffice because a node must be recomputed."""
    return _Task(task).run()


class _Task:
    def __init__(self, task: RegionTask) -> None:
        self._program = task.program
        self._inputs = task.inputs
        self._settings = task.settings
        self._reader = task.inputs.reader()
        self._translation = Translation(task.program.keys, task.settings.hashing)

    def run(self) -> RegionResult | None:
        program, settings = self._program, self._settings
        sliced = self._inputs.slice_rows is not None
        state, add, remove = self._load()
        graph = HyperGraph.build(program.rules)
        embedded_settings = Settings(settings.registry, settings.limits, settings.strict)
        change = state.maintain(program.rules, graph, state.effective_delta(add, remove), embedded_settings)
        maintained = [run.strategy == MAINTAINED for run in change.runs]
        if sliced and not all(maintained):
            return None
        writer = SegmentWriter(
            change, self._inputs.segments, self._translation, settings.folder, rewrites=not sliced
        )
        nodes = [frozenset(node.rules) for node in graph.nodes.values()]
        segments = {keys: writer.segment(keys, program.rows_of) for keys in nodes}
        replaced = frozenset(keys for keys in nodes if keys in change.segments)
        recomputed = len(replaced) == len(nodes) and not any(maintained)
        with_net = bool(settings.net_rows) and writer.changed_rows <= settings.net_rows
        inserted, deleted = change.net.rows() if with_net else ({}, {})
        return RegionResult(
            changed={keys: segment for keys, segment in segments.items() if segment is not None},
            replaced=replaced,
            terms=self._new_terms(),
            counts=self._counts(change.segments.values()) if recomputed else {},
            runs=tuple(replace(run, moved=run.counted()) for run in change.runs),
            dropped={key: dropped for key, dropped in change.dropped.items() if key in program.rules},
            seconds={keys: segment.seconds for keys, segment in change.segments.items()},
            net=(writer.distinct(inserted), writer.distinct(deleted)) if with_net else None,
        )

    def _counts(self, segments: Iterable[Tables]) -> dict[Relation, dict[int, int]]:
        """Count the distinct rows of all nodes, unless the task has only one partition of them."""
        if self._inputs.partition is not None:
            return {}
        tables: dict[TableName, list[Table]] = {}
        for segment in segments:
            for name, table in segment.tables.items():
                if len(table):
                    tables.setdefault(name, []).append(table)
        if ALL_CLASSES in tables:
            # Members are in tables of one class and in tables of all classes: they are counted on demand.
            tables = {name: same for name, same in tables.items() if name.name != RDF_TYPE}
        counts: dict[Relation, dict[int, int]] = {}
        for name, same in tables.items():
            key = 0
            relation = Relation(name.name, name.arity)
            if name.is_class:
                relation, key = TYPED, self._translation.key(name.member_of)
            counts.setdefault(relation, {})[key] = count_distinct(same)
        return counts

    def _load(self) -> tuple[EmbeddedState, EmbeddedBatch, EmbeddedBatch]:
        """Read the files into a state of the embedded engine, a batch to add and a batch to remove."""
        reader, translation, inputs = self._reader, self._translation, self._inputs
        before = [reader.read(i.relation, i.before, i.classes) for i in inputs.relations]
        after = [reader.read(i.relation, i.after, i.classes) for i in inputs.relations if i.after is not None]
        segments = self._read_segments()
        # Values must be loaded before tables are built, because loading assigns new ids.
        if any(needs_values(rule.body) for rule in self._program.rules.values()):
            translation.load_values(reader.seen(), inputs.terms)
        old = {read.relation: read.table(translation) for read in before}
        database = Database(translation.terms, segment_of(old, translation))
        for keys, (contents, aggregate_rows) in segments.items():
            database.add_segment(keys, self._segment(keys, contents, aggregate_rows))
        state = self._state(database)
        add, remove = state.batch(), state.batch()
        for read in after:
            was, will = old[read.relation], read.table(translation)
            for batch, rows in (
                (add, was.filter(will.rows, present=False)),
                (remove, will.filter(was.rows, present=False)),
            ):
                for name, piece in translation.tables(read.relation, rows):
                    batch.add_rows(name, piece)
        return state, add, remove

    def _read_segments(
        self,
    ) -> dict[frozenset[str], tuple[dict[Relation, SignedColumns], dict[str, SignedColumns]]]:
        read, rows_of = self._reader.read, self._program.rows_of
        return {
            keys: (
                {relation: read(relation, [files]) for relation, files in segment.contents.items()},
                {key: read(rows_of(key), [files]) for key, files in segment.aggregate_rows.items()},
            )
            for keys, segment in self._inputs.segments.items()
        }

    def _segment(
        self,
        keys: frozenset[str],
        contents: Mapping[Relation, SignedColumns],
        aggregate_rows: Mapping[str, SignedColumns],
    ) -> Tables:
        translation = self._translation
        tables = {relation: read.table(translation) for relation, read in contents.items()}
        # Class members stay in one table if the node derives pairs of member and class.
        whole = in_pairs(self._program.rule(key).head for key in keys)
        segment = segment_of(tables, translation, whole=whole)
        segment.aggregate_rows = {key: read.table(translation) for key, read in aggregate_rows.items()}
        segment.seconds = self._program.seconds.get(keys, 0.0)
        return segment

    def _state(self, database: Database) -> EmbeddedState:
        program, settings = self._program, self._settings
        return EmbeddedState(
            database,
            dropped=program.dropped,
            registry=settings.registry if settings.same_functions else Registry(),
            policy=settings.policy,
            graph=HyperGraph.build(program.old_rules) if program.old_rules else None,
            rows=settings.total,
            seconds=sum(program.seconds.values()),
            windows=Windows(given=True),
        )

    def _new_terms(self) -> DataFile:
        """Write the terms that the task created, and those that are new in rules."""
        settings = self._settings
        mentioned = entries_of(self._program.new_terms, settings.hashing)
        new = pa.concat_tables([self._translation.new_terms(), mentioned])
        return write_terms(settings.folder, unseen(new, self._inputs.terms))
