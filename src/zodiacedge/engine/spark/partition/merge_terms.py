"""Merges new terms into the known ones: each once, and no two with one fingerprint."""

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
    work = _MergeTask(new, known, workspace.scratch.folder)
    # A few are looked up in sorted files.
    if new.rows <= FEW or rows <= workspace.options.gather_rows:
        written = [workspace.jobs.one(_compared, work, "comparing terms", yield_point)]
    else:
        # Equal terms have equal fingerprints: every task has a range of them.
        ranges = workspace.hashing.ranges(partition_count(workspace, rows))
        tasks = [replace(work, within=range_) for range_ in ranges]
        written = workspace.jobs.each(_compared, tasks, "comparing terms", yield_point)
    return TermFiles((*known.parts, *(workspace.adopt(part) for part in written if part.rows)))


def _compared(work: _MergeTask) -> DataFile:
    """Write the terms that are not known yet."""
    new = work.new.read(within=work.within)
    return write_terms(work.folder, unseen(new, work.known, work.within))


def terms_frame(workspace: Workspace, terms: TermFiles) -> DataFrame:
    """Return the entries of terms as a data frame."""
    paths = [spark_path(part.path) for part in terms.parts]
    return workspace.jobs.session.read.schema(_ENTRIES).parquet(*paths)
