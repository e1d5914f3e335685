"""Comparisons, computed values, functions and aggregates in a plan, by the embedded engine's kernels.

The joins of a body give bindings. A task takes a chunk of them, loads the terms of their fingerprints and
evaluates the rest of the body by the embedded engine, so that values and evaluation errors are the same on
both engines. All bindings of an aggregate's group are in one task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import Dropped
from zodiacedge.engine.embedded.evaluate.seminaive import NodeEvaluation
from zodiacedge.engine.embedded.expressions.aggregate import fold_rows
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.embedded.storage.segment import Segment as Tables
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.storage.dataframes import in_tables
from zodiacedge.engine.spark.storage.embedded_tables import SignedFileReader, Translation, segment_of
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, write_terms
from zodiacedge.language.ast import Atom, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.evaluate.inputs import Input
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.language.ast import Aggregate, Conjunct, Variable
    from zodiacedge.terms import Term


# A name that no predicate of a user can have.
_BINDINGS = "bindings so far"
# The number of bindings that are evaluated at once.
_ROWS_AT_ONCE = 262_144


@dataclass(frozen=True)
class ExpressionResult:
    """The result of tasks: files of rows, files of new terms, and bindings dropped by evaluation errors."""

    rows: tuple[DataFile, ...]
    terms: tuple[DataFile, ...]
    dropped: Dropped | None


@dataclass(frozen=True)
class ExpressionTask:
    """A task that evaluates the rest of a body on bindings, and returns heads."""

    head: Atom
    columns: tuple[Variable, ...]
    left: tuple[Conjunct, ...]
    keys: Mapping[Term, int]
    terms: TermFiles
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    registry: Registry = field(default_factory=Registry)
    negated: tuple[Input, ...] = ()
    """The relations that are negated on computed values; they are broadcast to every task."""
    most: int | None = None
    """How many heads of a partition are enough; all if None."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[ExpressionResult]:
        """Evaluate the bindings of a partition, which are distinct unless some heads are enough."""
        for table in in_tables(batches, _ROWS_AT_ONCE):
            chunk = [column.to_numpy() for column in table.columns]
            if self.most is not None:
                chunk = list(np.ascontiguousarray(np.unique(np.stack(chunk, axis=1), axis=0).T))
            result = self._evaluated(chunk)
            yield result
            # The heads of one chunk are distinct.
            if self.most is not None and any(file.rows >= self.most for file in result.rows):
                return

    def _evaluated(self, chunk: list[Keys]) -> ExpressionResult:
        reader, translation = SignedFileReader(), Translation(self.keys, self.hashing)
        reads = [reader.read(i.relation, i.before, i.classes) for i in self.negated]
        bindings = chunk[: len(self.columns)]
        translation.load_values([*bindings, *reader.seen()], self.terms)
        negated = {read.relation: read.table(translation) for read in reads}
        store = Database(translation.terms, segment_of(negated, translation))
        rows = Table.of(_rows(translation, bindings, len(chunk[0])))
        store.show(Tables({TableName(_BINDINGS, len(self.columns)): rows}))
        rule = Rule(self.head, (Atom(_BINDINGS, self.columns), *self.left))
        result = NodeEvaluation(store, {"": rule}, self.registry, _watch).evaluate()
        relation = Relation.of(self.head)
        tables = result.segment.tables.items()
        pieces = [translation.columns(name, table.rows) for name, table in tables if len(table)]
        file = self.folder.write_pieces(relation, pieces)
        return _result(file, translation, self.folder, result.dropped.get(""))


@dataclass(frozen=True)
class AggregateTask:
    """A task that folds the bindings of complete groups to the rows of an aggregate."""

    aggregate: Aggregate
    terms: TermFiles
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    registry: Registry = field(default_factory=Registry)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[ExpressionResult]:
        """Fold the groups of a partition."""
        width = len(self.aggregate.groups) + len(self.aggregate.arguments)
        pieces = [[column.to_numpy() for column in batch.columns] for batch in batches if batch.num_rows]
        if pieces:
            columns = [np.concatenate(column) for column in zip(*pieces, strict=True)][:width]
            yield self._folded(columns)

    def _folded(self, columns: list[Keys]) -> ExpressionResult:
        translation = Translation({}, self.hashing)
        translation.load_values(columns, self.terms)
        store = Database(translation.terms)
        rows, count, example = fold_rows(
            store, self.aggregate, translation.rows(columns, len(columns)), self.registry
        )
        relation = Relation.of_rows(self.aggregate)
        file = self.folder.write_indexed(relation, translation.columns(TableName(*relation), rows))
        dropped = Dropped(count, example) if count else None
        return _result(file, translation, self.folder, dropped)


def run(
    workspace: Workspace,
    frame: DataFrame,
    task: ExpressionTask | AggregateTask,
    why: str,
    yield_point: YieldPoint,
) -> ExpressionResult:
    """Run a task on each partition of a frame, in one job."""
    rows: list[DataFile] = []
    terms: list[DataFile] = []
    dropped: Dropped | None = None
    for result in workspace.jobs.each_partition(task, frame, why, yield_point):
        rows += map(workspace.adopt, result.rows)
        terms += map(workspace.adopt, result.terms)
        dropped = with_more(dropped, result.dropped)
    return ExpressionResult(tuple(rows), tuple(terms), dropped)


def with_more(known: Dropped | None, more: Dropped | None) -> Dropped | None:
    """Add up dropped bindings."""
    if known is None or more is None:
        return known or more
    return Dropped(known.count + more.count, min(known.example, more.example))


def _rows(translation: Translation, columns: Sequence[Keys], count: int) -> NDArray[np.int32]:
    if not columns:
        return np.zeros((min(count, 1), 0), np.int32)
    return translation.rows(list(columns), len(columns))


def _result(
    file: DataFile, translation: Translation, folder: Folder, dropped: Dropped | None
) -> ExpressionResult:
    return ExpressionResult((file,), (write_terms(folder, translation.new_terms()),), dropped)


def _watch(rounds: int, facts: int) -> None:
    """Ignore progress: the driver watches the task."""
    del rounds, facts
