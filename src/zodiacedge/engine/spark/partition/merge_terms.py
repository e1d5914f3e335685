"""Merges new terms into the known ones, and joins rows with their terms.

Each term is known once, and no two terms have the same fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.partition.shuffle import partition_count
from zodiacedge.engine.spark.storage.dataframes import spark_path
from zodiacedge.engine.spark.storage.terms import FEW, FingerprintRange, TermFiles, unseen, write_terms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.storage.files import DataFile, Folder
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

_ENTRIES = "id long, kind tinyint, bits long, text binary"


@dataclass(frozen=True)
class _MergeTask:
    """A task: new terms to compare with the known ones."""

    new: TermFiles
    known: TermFiles
    folder: Folder
    within: FingerprintRange | None = None
    """The range of fingerprints that one of several tasks compares."""


def merged(workspace: Workspace, new: TermFiles, known: TermFiles, yield_point: YieldPoint) -> TermFiles:
    """Return the known terms and the new ones; raise where two share a fingerprint."""
    if not new.rows:
        return known
    rows = new.rows + known.rows
    task = _MergeTask(new, known, workspace.scratch.folder)
    # A few terms are looked up in the sorted files.
    if new.rows <= FEW or rows <= workspace.options.gather_rows:
        written = [workspace.jobs.one(_write_new, task, "comparing terms", yield_point)]
    else:
        # Equal terms have equal fingerprints: each task compares a range of them.
        ranges = workspace.hashing.ranges(partition_count(workspace, rows))
        tasks = [replace(task, within=range_) for range_ in ranges]
        written = workspace.jobs.each(_write_new, tasks, "comparing terms", yield_point)
    return known.with_files(*map(workspace.adopt, written))


def _write_new(task: _MergeTask) -> DataFile:
    """Write the terms that are not known yet."""
    new = task.new.read(within=task.within)
    return write_terms(task.folder, unseen(new, task.known, task.within))


def with_terms(frame: DataFrame, arity: int, terms: TermFiles) -> DataFrame:
    """Join rows of fingerprints with their terms: the kind, bits and text of each argument in turn."""
    paths = [spark_path(file.path) for file in terms.parts]
    entries = frame.sparkSession.read.schema(_ENTRIES).parquet(*paths).dropDuplicates(["id"])
    for n in range(arity):
        frame = frame.join(entries.toDF(f"c{n}", f"k{n}", f"b{n}", f"t{n}"), f"c{n}")
    return frame.select(*(f"{part}{n}" for n in range(arity) for part in "kbt"))
