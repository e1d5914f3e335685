"""A region of hyper-nodes brought up to date in one task, by the embedded engine's own maintenance.

What lies outside the region (explicit facts, segments of other nodes) is what the region reads: the embedded
engine gets it as its explicit facts, in the old version, with what came and what went as a change of them. A
fact that one owner outside lost while another still has it has not gone. The segments of the region's nodes
are segments there too. What they gain and lose goes into files; names and counts are returned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from zodiacedge.engine.api import Dropped, NodeRun, Settings
from zodiacedge.engine.embedded.engine import EmbeddedState, EmbeddedUncommitted
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.embedded.storage.database import NO_CLASS, Database, in_pairs
from zodiacedge.engine.embedded.storage.database import TYPED as ALL_CLASSES
from zodiacedge.engine.embedded.storage.database import Relation as TableName
from zodiacedge.engine.embedded.storage.database import Segment as Tables
from zodiacedge.engine.embedded.storage.table import Table, count_distinct
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.lookup.by_key import SliceReader
from zodiacedge.engine.spark.partition.shuffle import PartitionInput, PartitionReader
from zodiacedge.engine.spark.storage.embedded_tables import (
    Reader,
    Translation,
    needs_values,
    segment_of,
    union,
)
from zodiacedge.engine.spark.storage.files import TYPED, DataFile, Folder, Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, columns_of, unseen, write_terms
from zodiacedge.graph.hrdg import HyperGraph
from zodiacedge.terms import RDF_TYPE

_Name = TypeVar("_Name", TableName, str)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

    Ids = NDArray[np.int32]

# A table of at most so many rows is written as a whole when it changes; of a larger one, what came and went.
_REWRITTEN = 50_000
# So many layers are enough: then a table is written as a whole again, however large.
_MOST_LAYERS = 16
_SHARE = 4
# What the embedded engine says of a node that it did not evaluate anew.
MAINTAINED = "maintained"


@dataclass(frozen=True)
class Input:
    """What a region reads of a relation: what each owner outside has, before and, where it differs, after."""

    relation: Relation
    before: tuple[SignedFiles, ...]
    after: tuple[SignedFiles, ...] | None = None
    classes: frozenset[int] | None = None
    """Of `rdf:type`, the classes that are read; all of them if not given."""


@dataclass(frozen=True)
class RegionTask:
    """A region of nodes, and all that a task needs to bring it up to date."""

    rules: Mapping[str, Rule]
    keys: Mapping[Term, int]
    """The fingerprints of the terms that rules mention."""
    inputs: tuple[Input, ...]
    segments: Mapping[frozenset[str], Segment]
    terms: TermFiles
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    same_functions: bool = True
    limits: Limits = field(default_factory=Limits)
    strict: bool = False
    policy: Policy = field(default_factory=Policy)
    total: int = 0
    """How many facts all segments have, those outside too."""
    fresh: tuple[Term, ...] = ()
    """Terms that rules mention and no file may have yet."""
    net: float = 0
    """Whether to tell what became visible and what is visible no more: if no more rows came and went."""
    rows: Mapping[str, list[NDArray[np.int64]]] | None = None
    """The rows of each file that were looked up, where they are enough to maintain the nodes."""
    old_rules: Mapping[str, Rule] = field(default_factory=dict)
    """The rules that the nodes of `segments` had, where some of those nodes are no more."""
    seconds: Mapping[frozenset[str], float] = field(default_factory=dict)
    """How long evaluating nodes from nothing took the last time."""
    share: PartitionInput | None = None
    """What there is of the inputs, where this is one part of a region."""

    def reader(self) -> Reader:
        """Return what reads the rows of this region's inputs and segments."""
        if self.share is not None:
            return PartitionReader(self.share)
        return Reader() if self.rows is None else SliceReader(self.rows)


@dataclass(frozen=True)
class RegionResult:
    """What became of a region."""

    segments: Mapping[frozenset[str], Segment]
    """The segments that changed, with those contents of theirs that did."""
    whole: frozenset[frozenset[str]]
    """Those of them that are as told and have nothing else."""
    runs: tuple[NodeRun, ...]
    dropped: Mapping[str, Dropped]
    terms: DataFile
    inserted: Mapping[Relation, DataFile] = field(default_factory=dict)
    deleted: Mapping[Relation, DataFile] = field(default_factory=dict)
    seconds: Mapping[frozenset[str], float] = field(default_factory=dict)
    """How long evaluating nodes from nothing took, of those that were."""
    counted: Mapping[Relation, Mapping[int, int]] = field(default_factory=dict)
    """How many rows of a relation all nodes derive together, by class or under 0, where the task knows."""
    told: bool = False
    """Whether `inserted` and `deleted` are what became visible and what is visible no more."""
    exact: bool = True
    """Whether this is what became of it; what was looked up is not enough to evaluate a node anew."""


def run(region: RegionTask) -> RegionResult:
    """Bring a region up to date."""
    return _Task(region).run()


class _Task:
    def __init__(self, region: RegionTask) -> None:
        self._region = region
        self._reader = region.reader()
        self._translation = Translation(region.keys, region.hashing)

    def run(self) -> RegionResult:
        region = self._region
        state, add, remove = self._load()
        graph = HyperGraph.build(region.rules)
        settings = Settings(region.registry, region.limits, region.strict)
        attempt = state.attempt(region.rules, graph, state.effective_delta(add, remove), settings)
        if region.rows is not None and any(run.strategy != MAINTAINED for run in attempt.runs):
            return RegionResult({}, frozenset(), (), {}, DataFile("", 0), exact=False)
        written = _Written(self._translation, region.folder, rewrites=region.rows is None)
        segments: dict[frozenset[str], Segment] = {}
        whole: set[frozenset[str]] = set()
        for node in graph.nodes.values():
            keys = frozenset(node.rules)
            if keys in attempt.work.segments:
                whole.add(keys)
            found = self._segment(attempt, keys, written)
            if found is not None:
                segments[keys] = found
        recompute = len(whole) == len(graph.nodes) and all(run.strategy != MAINTAINED for run in attempt.runs)
        told = bool(region.net) and written.moved <= region.net
        came, went = attempt.net.rows() if told else ({}, {})
        return RegionResult(
            segments,
            frozenset(whole),
            tuple(replace(run, moved=run.counted()) for run in attempt.runs),
            {key: one for key, one in attempt.dropped.items() if key in region.rules},
            self._new_terms(),
            written.distinct(came),
            written.distinct(went),
            {keys: one.seconds for keys, one in attempt.work.segments.items()},
            self._counted(attempt.work.segments.values()) if recompute else {},
            told=told,
        )

    def _counted(self, segments: Iterable[Tables]) -> dict[Relation, dict[int, int]]:
        """Count the rows of nodes, each once; of nodes on a part of their facts nobody asks."""
        if self._region.share is not None:
            return {}
        tables: dict[TableName, list[Table]] = {}
        for segment in segments:
            for name, table in segment.tables.items():
                if len(table):
                    tables.setdefault(name, []).append(table)
        if ALL_CLASSES in tables:
            # Members stand in tables of one class and of all: they are counted when somebody asks.
            tables = {name: some for name, some in tables.items() if name.name != RDF_TYPE}
        found: dict[Relation, dict[int, int]] = {}
        for name, some in tables.items():
            key = 0
            relation = Relation(name.name, name.arity)
            if name.member_of != NO_CLASS:
                relation = TYPED
                key = int(self._translation.keys(np.array([name.member_of], np.int32))[0])
            found.setdefault(relation, {})[key] = count_distinct(some)
        return found

    # In.

    def _load(self) -> tuple[EmbeddedState, EmbeddedBatch, EmbeddedBatch]:
        region, reader, translation = self._region, self._reader, self._translation
        before = {i: [reader.read(i.relation, c, i.classes) for c in i.before] for i in region.inputs}
        after = {i: [reader.read(i.relation, c, i.classes) for c in i.after or ()] for i in region.inputs}
        own = {
            keys: {relation: reader.read(relation, content) for relation, content in one.contents.items()}
            for keys, one in region.segments.items()
        }
        hidden = {
            keys: {
                key: reader.read(self._rows_of(key), content) for key, content in one.aggregate_rows.items()
            }
            for keys, one in region.segments.items()
        }
        if any(needs_values(rule.body) for rule in region.rules.values()):
            translation.load_values(reader.seen(), region.terms)
        old: dict[Relation, Table] = {}
        for one, reads in before.items():
            old[one.relation] = union([r.table(translation) for r in reads], one.relation.arity)
        store = Database(translation.terms, segment_of(old, translation))
        for keys, reads_by_relation in own.items():
            tables = {relation: read.table(translation) for relation, read in reads_by_relation.items()}
            segment = segment_of(tables, translation, whole=self._keeps_members_together(keys))
            segment.aggregate_rows = {key: read.table(translation) for key, read in hidden[keys].items()}
            segment.seconds = region.seconds.get(keys, 0.0)
            store.add_segment(keys, segment)
        state = EmbeddedState(
            store,
            (),
            region.dropped,
            region.registry if region.same_functions else Registry(),
            region.policy,
            HyperGraph.build(region.old_rules) if region.old_rules else None,
            rows=region.total,
            seconds=sum(region.seconds.values()),
        )
        add, remove = state.batch(), state.batch()
        for one, reads in after.items():
            if one.after is not None:
                table = union([r.table(translation) for r in reads], one.relation.arity)
                was = old[one.relation]
                for batch, rows in (
                    (add, was.sift(table.rows, present=False)),
                    (remove, table.sift(was.rows, present=False)),
                ):
                    for name, piece in translation.tables(one.relation, rows):
                        batch.add_rows(name, piece)
        return state, add, remove

    def _rows_of(self, key: str) -> Relation:
        aggregate = self._rule(key).aggregate
        if aggregate is None:
            raise AssertionError(key)
        return Relation.of_rows(aggregate)

    def _keeps_members_together(self, keys: frozenset[str]) -> bool:
        return in_pairs(self._rule(key).head for key in keys)

    def _rule(self, key: str) -> Rule:
        found = self._region.rules.get(key)
        return found if found is not None else self._region.old_rules[key]

    # Out.

    def _segment(
        self, attempt: EmbeddedUncommitted, keys: frozenset[str], written: _Written
    ) -> Segment | None:
        before = attempt.before.store.segments.get(keys)
        kept = self._region.segments.get(keys, Segment())
        fresh = attempt.work.segments.get(keys)
        if fresh is not None and before is not None:
            tables = _replaced(before.tables, fresh.tables)
            hidden = _replaced(before.aggregate_rows, fresh.aggregate_rows)
        elif fresh is not None:
            kept = self._taken_over(attempt, fresh)
            overlays, hidden_overlays = attempt.draft.gains(fresh)
            tables = {
                name: change if written.relation(name) in kept.contents else _whole(*change)
                for name, change in _overlaid(fresh.tables, overlays).items()
            }
            hidden = {
                key: change if key in kept.aggregate_rows else _whole(*change)
                for key, change in _overlaid(fresh.aggregate_rows, hidden_overlays).items()
            }
        elif before is not None:
            overlays, hidden_overlays = attempt.draft.gains(before)
            tables = _overlaid(before.tables, overlays)
            hidden = _overlaid(before.aggregate_rows, hidden_overlays)
        else:
            raise AssertionError(keys)
        grouped: dict[Relation, list[_Change]] = {}
        for name, change in tables.items():
            grouped.setdefault(written.relation(name), []).append(_Change(name, *change))
        contents = {
            relation: content
            for relation, changes in grouped.items()
            if (content := written.content(relation, kept.content(relation), changes)) is not None
        }
        rows = {}
        for key, (old, plus, minus) in hidden.items():
            relation = self._rows_of(key)
            one = _Change(TableName(*relation), old, plus, minus)
            found = written.content(relation, kept.aggregate_rows.get(key, SignedFiles()), [one])
            if found is not None:
                rows[key] = found
            elif fresh is not None:
                rows[key] = kept.aggregate_rows.get(key, SignedFiles())
        if fresh is None and not contents and not rows:
            return None
        if fresh is not None:
            # What did not change is told as well: the segment is as told and has nothing else.
            contents = {
                **{r: kept.contents[r] for r in grouped if r in kept.contents and r not in contents},
                **contents,
            }
        return Segment(contents, rows)

    def _taken_over(self, attempt: EmbeddedUncommitted, heir: Tables) -> Segment:
        """Return the files of nodes that are no more whose very tables a node took over."""
        contents: dict[Relation, SignedFiles] = {}
        hidden: dict[str, SignedFiles] = {}
        for keys, tables in attempt.before.store.segments.items():
            kept = self._region.segments[keys]
            for name, table in tables.tables.items():
                # Members of classes are many tables and one content: they are written anew.
                if heir.tables.get(name) is table and name.name != RDF_TYPE:
                    relation = Relation(name.name, name.arity)
                    contents[relation] = kept.content(relation)
            for key, rows in tables.aggregate_rows.items():
                if heir.aggregate_rows.get(key) is rows:
                    hidden[key] = kept.aggregate_rows.get(key, SignedFiles())
        return Segment(contents, hidden)

    def _new_terms(self) -> DataFile:
        """Write the terms that came up here, and those that rules mention for the first time."""
        region = self._region
        found = self._translation.new_terms()
        tables = [found] if found is not None else []
        if region.fresh:
            dictionary = Dictionary()
            dictionary.encode_all(region.fresh)
            tables.append(columns_of(dictionary, region.hashing))
        if not tables:
            return DataFile("", 0)
        return write_terms(region.folder, unseen(pa.concat_tables(tables), region.terms))


@dataclass(frozen=True)
class _Change:
    """What a table has, gains and loses."""

    name: TableName
    before: Ids
    plus: Ids
    minus: Ids


def _replaced(
    before: Mapping[_Name, Table], after: Mapping[_Name, Table]
) -> dict[_Name, tuple[Ids, Ids, Ids]]:
    found = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        arity = (old if old is not None else after[name]).arity
        was, will = (one if one is not None else Table(arity) for one in (old, new))
        plus = was.sift(will.rows, present=False) if len(was) else will.rows
        minus = will.sift(was.rows, present=False) if len(was) else was.rows
        found[name] = (was.rows, plus, minus)
    return found


def _overlaid(
    tables: Mapping[_Name, Table], overlays: Mapping[_Name, Overlay]
) -> dict[_Name, tuple[Ids, Ids, Ids]]:
    found = {}
    for name in {**tables, **overlays}:
        table, overlay = tables.get(name), overlays.get(name)
        arity = table.arity if table is not None else overlays[name].plus.arity
        nothing = np.zeros((0, arity), np.int32)
        plus, minus = (overlay.plus.rows, overlay.minus.rows) if overlay else (nothing, nothing)
        found[name] = (table.rows if table is not None else nothing, plus, minus)
    return found


def _whole(before: Ids, plus: Ids, minus: Ids) -> tuple[Ids, Ids, Ids]:
    """Return the same as a table that comes as a whole."""
    return before[:0], _after(before, plus, minus), minus[:0]


class _Written:
    """Writes rows of ids as files of fingerprints."""

    def __init__(self, translation: Translation, folder: Folder, *, rewrites: bool) -> None:
        self._translation = translation
        self._folder = folder
        # Whether all rows are there, so that they can be written as a whole.
        self._rewrites = rewrites
        # How many rows came and went.
        self.moved = 0

    def relation(self, name: TableName) -> Relation:
        return TYPED if name.member_of != NO_CLASS else Relation(name.name, name.arity)

    def content(self, relation: Relation, kept: SignedFiles, changes: list[_Change]) -> SignedFiles | None:
        """Write what came and went, or all of it; return the content after it, or None if nothing changed."""
        moved = sum(len(c.plus) + len(c.minus) for c in changes)
        self.moved += moved
        if not moved:
            return None
        rows = sum(len(c.before) + len(c.plus) - len(c.minus) for c in changes)
        little = rows > _REWRITTEN and moved * _SHARE <= rows and len(kept.layers) < _MOST_LAYERS
        if little or not self._rewrites:
            plus = self._part(relation, ((c.name, c.plus) for c in changes))
            minus = self._part(relation, ((c.name, c.minus) for c in changes))
            return kept.then((plus,), (minus,))
        return SignedFiles.of(
            self._part(relation, ((c.name, _after(c.before, c.plus, c.minus)) for c in changes))
        )

    def distinct(self, given: Mapping[TableName, list[Ids]]) -> dict[Relation, DataFile]:
        """Write rows that may repeat, each once."""
        grouped: dict[Relation, list[tuple[TableName, Ids]]] = {}
        for name, pieces in given.items():
            rows = pieces[0]
            if len(pieces) > 1:
                table = Table(name.arity)
                for piece in pieces:
                    table.insert(piece)
                rows = table.rows
            grouped.setdefault(self.relation(name), []).append((name, rows))
        found = {relation: self._part(relation, named) for relation, named in grouped.items()}
        return {relation: part for relation, part in found.items() if part.rows}

    def _part(self, relation: Relation, given: Iterable[tuple[TableName, Ids]]) -> DataFile:
        pieces = [self._translation.columns(name, rows)[1] for name, rows in given if len(rows)]
        if not pieces:
            return DataFile("", 0)
        columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
        return self._folder.write_rows(relation, columns)


def _after(before: Ids, plus: Ids, minus: Ids) -> Ids:
    rows = before
    if len(minus):
        gone = Table(minus.shape[1])
        gone.insert(minus)
        rows = gone.sift(rows, present=False)
    return np.concatenate((rows, plus)) if len(plus) else rows
