"""What looks at values: comparisons, bindings, functions and folds, by the embedded engine's kernels.

The joins of a body give bindings; a task takes a stretch of them, loads the terms behind their fingerprints
and lets the embedded engine judge what is left of the body. So a value is the same to the last bit wherever
it is computed, and an evaluation error counts the same. Folds get all bindings of a group in one task.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from zodiacedge import errors
from zodiacedge.engine.api import Dropped
from zodiacedge.engine.embedded.evaluate.seminaive import NodeEvaluation
from zodiacedge.engine.embedded.expressions.aggregate import fold_rows
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.embedded.storage.segment import Segment as Tables
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.cluster.jobs import OUT_OF_MEMORY
from zodiacedge.engine.spark.cluster.task_files import all_or_nothing
from zodiacedge.engine.spark.storage.embedded_tables import Reader, Translation, segment_of, union
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, write_terms
from zodiacedge.errors import Diagnostic, ZodiacError
from zodiacedge.language.ast import Atom, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, Row

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.ast import Aggregate, Conjunct, Variable
    from zodiacedge.terms import Term


# Names that no predicate of a user can have.
_GIVEN = "bindings so far"
# So many bindings are judged together.
_TOGETHER = 262_144
MANIFEST = "told string"


@dataclass(frozen=True)
class ExpressionResult:
    """What the tasks of a job wrote: rows, terms that came up, and what evaluation errors dropped."""

    rows: tuple[DataFile, ...]
    terms: tuple[DataFile, ...]
    dropped: Dropped | None


@dataclass(frozen=True)
class Negated:
    """A relation that what is left of a body negates: all of it is read by every task."""

    relation: Relation
    contents: tuple[SignedFiles, ...]


@dataclass(frozen=True)
class ExpressionTask:
    """A task: bindings to heads."""

    head: Atom
    columns: tuple[Variable, ...]
    left: tuple[Conjunct, ...]
    keys: Mapping[Term, int]
    terms: TermFiles
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    registry: Registry = field(default_factory=Registry)
    negated: tuple[Negated, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Judge the bindings of a partition."""
        for chunk in _chunks(batches):
            yield told(partial(self._judged, chunk))

    def _judged(self, chunk: list[Keys]) -> dict[str, object]:
        reader, translation = Reader(), Translation(self.keys, self.hashing)
        reads = [
            (one.relation, [reader.read(one.relation, content) for content in one.contents])
            for one in self.negated
        ]
        given = chunk[: len(self.columns)]
        translation.load_values([*given, *reader.seen()], self.terms)
        tables = {
            relation: union([read.table(translation) for read in found], relation.arity)
            for relation, found in reads
        }
        store = Database(translation.terms, segment_of(tables, translation))
        rows = Table.of(_rows(translation, given, len(chunk[0])))
        store.show(Tables({TableName(_GIVEN, len(self.columns)): rows}))
        rule = Rule(self.head, (Atom(_GIVEN, self.columns), *self.left))
        result = NodeEvaluation(store, {"": rule}, self.registry, _watch).evaluate()
        relation = Relation.of(self.head)
        pieces = [translation.columns(name, t.rows)[1] for name, t in result.segment.tables.items() if len(t)]
        part = DataFile("", 0)
        if pieces:
            part = self.folder.write_rows(
                relation, [np.concatenate(column) for column in zip(*pieces, strict=True)]
            )
        return outcome(part, translation, self.folder, result.dropped.get(""))


@dataclass(frozen=True)
class AggregateTask:
    """A task: the bindings of whole groups to the rows of an aggregate."""

    aggregate: Aggregate
    terms: TermFiles
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    registry: Registry = field(default_factory=Registry)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Fold the groups of a partition."""
        width = len(self.aggregate.groups) + len(self.aggregate.folds)
        pieces = [[column.to_numpy() for column in batch.columns] for batch in batches if batch.num_rows]
        if pieces:
            columns = [np.concatenate(column) for column in zip(*pieces, strict=True)][:width]
            yield told(partial(self._folded, columns))

    def _folded(self, columns: list[Keys]) -> dict[str, object]:
        translation = Translation({}, self.hashing)
        translation.load_values(columns, self.terms)
        store = Database(translation.terms)
        found, count, example = fold_rows(
            store, self.aggregate, translation.rows(columns, len(columns)), self.registry
        )
        relation = Relation.of_rows(self.aggregate)
        part = DataFile("", 0)
        if len(found):
            _, keys = translation.columns(TableName(*relation), found)
            part = self.folder.write_rows(relation, keys)
        dropped = Dropped(count, example) if count else None
        return outcome(part, translation, self.folder, dropped)


def run(
    place: Workspace, frame: DataFrame, task: ExpressionTask | AggregateTask, why: str, turn: YieldPoint
) -> ExpressionResult:
    """Run a task on the partitions of a frame: one job."""
    return taken(place, place.jobs.run(lambda: frame.mapInArrow(task, MANIFEST).collect(), why, turn))


def taken(place: Workspace, results: Iterable[Row]) -> ExpressionResult:
    """Take what tasks told; raise what they failed with."""
    rows: list[DataFile] = []
    terms: list[DataFile] = []
    dropped: Dropped | None = None
    failed: list[Mapping[str, Any]] = []
    for row in results:
        one = json.loads(row["told"])
        if "failed" in one:
            failed.append(one)
            continue
        classes = {int(key): count for key, count in one["classes"].items()}
        if one["rows"]:
            rows.append(place.adopt(DataFile(one["path"], one["rows"], classes)))
        if one["terms"]:
            terms.append(place.adopt(DataFile(one["terms_path"], one["terms"])))
        if one["dropped"]:
            dropped = with_more(dropped, Dropped(one["dropped"], one["example"]))
    # What the others wrote is ours by now, and goes.
    for one in failed:
        raise_failure(one)
    return ExpressionResult(tuple(rows), tuple(terms), dropped)


def raise_failure(one: Mapping[str, Any]) -> None:
    """Raise the problem that a task met, if it met one."""
    if "failed" in one:
        raise getattr(errors, one["failed"])([Diagnostic(*finding) for finding in one["diagnostics"]])


def with_more(one: Dropped | None, other: Dropped | None) -> Dropped | None:
    """Return what evaluation errors dropped in two places."""
    if one is None or other is None:
        return one or other
    return Dropped(one.count + other.count, min(one.example, other.example))


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[list[Keys]]:
    waiting: list[list[Keys]] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append([column.to_numpy() for column in batch.columns])
        rows += batch.num_rows
        if rows >= _TOGETHER:
            yield [np.concatenate(column) for column in zip(*waiting, strict=True)]
            waiting, rows = [], 0
    if waiting:
        yield [np.concatenate(column) for column in zip(*waiting, strict=True)]


def _rows(translation: Translation, columns: Sequence[Keys], count: int) -> NDArray[np.int32]:
    if not columns:
        return np.zeros((min(count, 1), 0), np.int32)
    return translation.rows(list(columns), len(columns))


def outcome(
    part: DataFile, translation: Translation, folder: Folder, dropped: Dropped | None
) -> dict[str, object]:
    """Return what a task tells: the rows it wrote, the terms that came up, and what errors dropped."""
    fresh = translation.new_terms()
    terms = write_terms(folder, fresh) if fresh is not None else DataFile("", 0)
    return {
        "path": part.path,
        "rows": part.rows,
        "classes": dict(part.classes),
        "terms_path": terms.path,
        "terms": terms.rows,
        "dropped": dropped.count if dropped else 0,
        "example": dropped.example if dropped else "",
    }


def told(work: Callable[[], dict[str, object]]) -> pa.RecordBatch:
    """Return what a task tells of its work, or of the problem that it met."""
    try:
        with all_or_nothing():
            found = work()
    except ZodiacError as problem:
        found = _failed(type(problem), problem.diagnostics)
    except MemoryError:
        found = _failed(OUT_OF_MEMORY.kind, OUT_OF_MEMORY.diagnostics)
    return pa.RecordBatch.from_pydict({"told": pa.array([json.dumps(found)], pa.string())})


def _failed(kind: type[ZodiacError], diagnostics: Iterable[Diagnostic]) -> dict[str, object]:
    findings = [(one.code, one.message, one.note) for one in diagnostics]
    return {"failed": kind.__name__, "diagnostics": findings}


def _watch(rounds: int, facts: int) -> None:
    """Let a task run on: Spark watches it."""
    del rounds, facts
