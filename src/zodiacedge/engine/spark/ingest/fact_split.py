"""Splits files of facts in two: the rows that have one of some fingerprints in a column, and all others.

Files without such rows stay as they are. So late facts are taken out of what was loaded, where it is.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation, read_file, read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.engine.spark.storage.workspace import Workspace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Split(NamedTuple):
    """What to look for in the files of a relation, and the folder to write to."""

    relation: Relation
    classes: frozenset[int] | None
    """For `rdf:type`, the classes of the rows; None for all."""
    column: int
    keys: Collection[int]
    folder: Folder


class _Task(NamedTuple):
    split: Split
    file: DataFile


class _Earlier(NamedTuple):
    """A file of terms, and a moment in microseconds."""

    file: DataFile
    micros: int


def earlier(workspace: Workspace, terms: TermFiles, moment: datetime) -> set[int]:
    """Return the fingerprints of the moments before another one: a job, with a task for each file."""
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    tasks = [_Earlier(file, micros) for file in terms.parts]
    found = workspace.jobs.each(_earlier, tasks, "looking for late facts") if tasks else []
    return {key for keys in found for key in keys.tolist()}


def run(
    workspace: Workspace, split: Split, files: Sequence[DataFile]
) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """Return the files of the rows that stay, and those of the rows looked for: a task for each file."""
    tasks = [_Task(split, file) for file in files]
    parts = workspace.jobs.each(_split, tasks, "taking facts out of files") if tasks else []
    stay: list[DataFile] = []
    go: list[DataFile] = []
    for file, part in zip(files, parts, strict=True):
        if part is None:
            stay.append(file)
            continue
        for side, written in zip((stay, go), part, strict=True):
            if written.rows:
                side.append(workspace.adopt(written))
    return tuple(stay), tuple(go)


def _earlier(task: _Earlier) -> Keys:
    table = read_table(task.file.path, ["id", "kind", "bits"])
    ids, kinds, bits = (column.to_numpy() for column in table.columns)
    keys: Keys = ids[(kinds == L.K_MOMENT) & (bits < task.micros)]
    return keys


def _split(task: _Task) -> tuple[DataFile, DataFile] | None:
    """Write the rows of both sides, those that go each once; None if the file has none of these."""
    relation, classes, column, keys, folder = task.split
    columns = read_file(task.file, relation.width)
    found = np.isin(columns[column], np.array(list(keys), np.int64))
    if classes is not None:
        found &= np.isin(columns[1], np.array(sorted(classes), np.int64))
    if not found.any():
        return None
    rows = np.unique(np.stack([each[found] for each in columns]), axis=1)
    stay = folder.write_rows(relation, [each[~found] for each in columns])
    return stay, folder.write_rows(relation, list(rows))
