"""Reads DataFrames in tasks: each partition becomes files of fingerprints and of their terms.

The rows of a user's DataFrame are read on its own session, and never reach the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.spark.ingest.batch import BatchFiles, write_tables
from zodiacedge.engine.spark.storage.dataframes import in_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.storage.files import Folder
    from zodiacedge.engine.spark.storage.terms import Hashing
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.io.formats.column_mapping import ColumnMapping

_ROWS_AT_ONCE = 1 << 18


def ingest_frame(
    workspace: Workspace, frame: DataFrame, relation: str, mapping: ColumnMapping
) -> tuple[BatchFiles, int, int]:
    """Read a DataFrame; return the files of its facts, the number of its rows, and of those left out."""
    mapping.check(_schema(frame))
    task = _FrameTask(relation, mapping, workspace.scratch.folder, workspace.hashing)
    files, rows, dropped = BatchFiles(by_tasks=True), 0, 0
    for written, kept, left_out in workspace.jobs.each_partition(task, frame, "reading a DataFrame"):
        files = files.merged(written.adopted(workspace))
        rows += kept
        dropped += left_out
    return files, rows, dropped


def _schema(frame: DataFrame) -> pa.Schema:
    """Return the columns of a DataFrame, with types by which a mapping tells whether they hold terms."""
    fields = []
    for field in frame.schema.fields:
        kind = field.dataType
        match kind.typeName():
            case "struct":
                inner = pa.struct([(name, pa.string()) for name in getattr(kind, "names", ())])
            case "array" | "map":
                inner = pa.list_(pa.string())
            case "binary" | "void" | "variant":
                inner = pa.binary()
            case _:
                inner = pa.string()
        fields.append((field.name, inner))
    return pa.schema(fields)


@dataclass(frozen=True)
class _FrameTask:
    """A task: the rows of a partition, as facts of a relation."""

    relation: str
    mapping: ColumnMapping
    folder: Folder
    hashing: Hashing

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[BatchFiles, int, int]]:
        batch, rows, dropped = EmbeddedBatch(Database()), 0, 0
        for table in in_tables(batches, _ROWS_AT_ONCE):
            facts, left_out = self.mapping.apply(table)
            batch.add_table(facts, self.relation)
            rows += len(facts)
            dropped += left_out
        if rows or dropped:
            segment, dictionary = batch.distinct(), batch.store.dictionary
            written = write_tables(segment, dictionary, self.folder, self.hashing, by_tasks=True)
            yield written, rows, dropped
