"""Compaction of the small files that many small changes leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zodiacedge.engine.spark.storage.dataframes import Frames, tagged
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, SignedFiles, read_file
from zodiacedge.engine.spark.storage.terms import TermFiles, distinct, write_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zodiacedge.engine.spark.storage.workspace import Workspace

    Keys = NDArray[np.int64]
    from zodiacedge.engine.yield_point import YieldPoint

# Signed files of more layers than this are compacted.
_MOST_LAYERS = 32
# A file of more rows than this stays as it is, if there are few of them.
_LARGE = 1_000_000
_MANY_LARGE = 8
# So many small files of terms are compacted.
_MANY_FILES = 16
_SMALL = 10_000


@dataclass(frozen=True)
class _CompactionTask:
    """A task: small signed files that follow each other, in order."""

    relation: Relation
    layers: tuple[tuple[bool, DataFile], ...]
    folder: Folder


def compacted(
    workspace: Workspace, relation: Relation, content: SignedFiles, yield_point: YieldPoint
) -> SignedFiles:
    """Return the same rows in few files: one job, once in many changes. Large files stay as they are."""
    if len(content.layers) <= _MOST_LAYERS:
        return content
    # Rows deleted before a large file are not those deleted after it: small files stay on their side of it.
    runs = [(kind, tuple(run)) for kind, run in groupby(content.layers, lambda one: one[1].rows > _LARGE)]
    large = sum(len(run) for kind, run in runs if kind)
    small = sum(part.rows for kind, run in runs if not kind for _, part in run)
    if large > _MANY_LARGE or small > workspace.options.gather_rows:
        frames = Frames(workspace)
        rows = tagged(frames.content(relation, content), 0, relation.width).coalesce(workspace.jobs.cores)
        written = frames.write(rows, [relation], "compacting small files", yield_point)
        return SignedFiles.of(*written.get(0, ()))
    work = [_CompactionTask(relation, run, workspace.scratch.folder) for kind, run in runs if not kind]
    netted = iter(workspace.jobs.each(_compacted, work, "compacting small files", yield_point))
    files = SignedFiles()
    for kind, run in runs:
        if kind:
            files = SignedFiles((*files.layers, *run))
        else:
            minus, plus = next(netted)
            files = files.then((workspace.adopt(plus),), (workspace.adopt(minus),))
    return files


def _compacted(task: _CompactionTask) -> tuple[DataFile, DataFile]:
    """Write the rows deleted and the rows inserted in the end, without those whose signs cancel out."""
    pieces = [np.stack(read_file(part, task.relation.width), axis=1) for _, part in task.layers]
    signs = np.repeat([1 if plus else -1 for plus, _ in task.layers], [len(rows) for rows in pieces])
    rows, counts = consolidated(np.concatenate(pieces), signs)
    minus, plus = (
        task.folder.write_rows(task.relation, list(np.ascontiguousarray(rows[counts == sign].T)))
        for sign in (-1, 1)
    )
    return minus, plus


def consolidated(rows: Keys, counts: Keys) -> tuple[Keys, Keys]:
    """Return each row once with its net count, without rows whose inserts and deletes cancel out."""
    distinct_rows, positions = np.unique(rows, axis=0, return_inverse=True)
    net = np.bincount(positions.ravel(), weights=counts, minlength=len(distinct_rows)).astype(np.int64)
    return distinct_rows[net != 0], net[net != 0]


def small_files(terms: TermFiles) -> tuple[DataFile, ...]:
    """Return the small files of terms, if there are many of them."""
    small = tuple(part for part in terms.parts if part.rows <= _SMALL)
    return small if len(small) >= _MANY_FILES else ()


def compact(folder: Folder, parts: tuple[DataFile, ...]) -> DataFile:
    """Write the terms of several files into one."""
    return write_terms(folder, distinct(pa.concat_tables([TermFiles((part,)).read() for part in parts])))
