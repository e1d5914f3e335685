"""Compaction: merges the small files that many small changes write."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zodiacedge.engine.spark.storage.dataframes import Frames
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles, read_file
from zodiacedge.engine.spark.storage.terms import TermFiles, distinct, write_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

# Signed files with more layers than this are compacted, unless a caller names another number.
_MOST_LAYERS = 32
# A file with more rows than this is kept, unless there are more than `_MANY_LARGE` of them.
_LARGE = 1_000_000
_MANY_LARGE = 8
# Term files are compacted when this many of them are small.
_MANY_FILES = 16
_SMALL = 10_000


@dataclass(frozen=True)
class _CompactionTask:
    """The input of a task: consecutive small signed files, in order."""

    relation: Relation
    layers: tuple[tuple[bool, DataFile], ...]
    stamped: bool
    folder: Folder


def compacted(
    workspace: Workspace,
    relation: Relation,
    content: SignedFiles,
    yield_point: YieldPoint,
    most: int = _MOST_LAYERS,
) -> SignedFiles:
    """Merge small files if there are more than `most`, in one job; large files are kept."""
    if len(content.layers) <= most:
        return content
    # Order matters: small files are merged only with those between the same large files.
    runs = [(kind, tuple(run)) for kind, run in groupby(content.layers, lambda layer: layer[1].rows > _LARGE)]
    large = sum(len(run) for kind, run in runs if kind)
    small = sum(file.rows for kind, run in runs if not kind for _, file in run)
    if large > _MANY_LARGE or small > workspace.options.gather_rows:
        frames = Frames(workspace, yield_point)
        read = relation.with_stamps if content.stamped else relation
        rows = frames.content(read, content).coalesce(workspace.jobs.cores)
        (written,) = frames.write([(relation, rows)], "compacting small files")
        return SignedFiles.of(*written)
    folder, stamped = workspace.scratch.folder, content.stamped
    tasks = [_CompactionTask(relation, run, stamped, folder) for kind, run in runs if not kind]
    merged = iter(workspace.jobs.each(_compacted, tasks, "compacting small files", yield_point))
    files = SignedFiles()
    for kind, run in runs:
        if kind:
            files = SignedFiles((*files.layers, *run))
        else:
            minus, plus = next(merged)
            files = files.then((workspace.adopt(plus),), (workspace.adopt(minus),))
    return files


def _compacted(task: _CompactionTask) -> tuple[DataFile, DataFile]:
    """Write the net deleted and the net inserted rows of the files."""
    # A row that went and came with another stamp did both.
    width = task.relation.width + task.stamped
    layers = [(plus, read_file(file, width)) for plus, file in task.layers]
    rows, counts = consolidated(*signed_rows(layers))
    minus, plus = (
        task.folder.write_indexed(task.relation, list(np.ascontiguousarray(rows[counts == sign].T)))
        for sign in (-1, 1)
    )
    return minus, plus


def signed_rows(layers: Sequence[tuple[bool, list[Keys]]]) -> tuple[Keys, Keys]:
    """Return the rows of one or more layers, each with the count of its sign: 1 or -1."""
    pieces = [np.stack(columns, axis=1) for _, columns in layers]
    signs = [1 if plus else -1 for plus, _ in layers]
    return np.concatenate(pieces), np.repeat(signs, [len(rows) for rows in pieces])


def consolidated(rows: Keys, counts: Keys) -> tuple[Keys, Keys]:
    """Return the distinct rows with their net counts, without rows whose net count is zero."""
    distinct_rows, positions = np.unique(rows, axis=0, return_inverse=True)
    net = np.bincount(positions.ravel(), weights=counts, minlength=len(distinct_rows)).astype(np.int64)
    return distinct_rows[net != 0], net[net != 0]


def small_files(terms: TermFiles) -> tuple[DataFile, ...]:
    """Return the small term files, if there are many."""
    small = tuple(file for file in terms.parts if file.rows <= _SMALL)
    return small if len(small) >= _MANY_FILES else ()


def compact(folder: Folder, files: tuple[DataFile, ...]) -> DataFile:
    """Merge several term files into one."""
    return write_terms(folder, distinct(pa.concat_tables([TermFiles((file,)).read() for file in files])))
