"""Many small files into few: what many small changes leave behind must not slow down the next one."""

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

# A content of more layers than this is put together.
_MOST_LAYERS = 32
# A file of more rows than this stays as it is, if there are few of them.
_LARGE = 1_000_000
_MANY_LARGE = 8
# So many small files of terms are put together.
_MANY_FILES = 16
_SMALL = 10_000


@dataclass(frozen=True)
class _Small:
    """Small files of a content that follow each other, in order."""

    relation: Relation
    layers: tuple[tuple[bool, DataFile], ...]
    folder: Folder


def compacted(place: Workspace, relation: Relation, content: SignedFiles, turn: YieldPoint) -> SignedFiles:
    """Return the same rows in few files: one job, once in many changes. Large files stay as they are."""
    if len(content.layers) <= _MOST_LAYERS:
        return content
    # What went before a large file came is not what went after it: small files stay on their side of it.
    runs = [(kind, tuple(run)) for kind, run in groupby(content.layers, lambda one: one[1].rows > _LARGE)]
    large = sum(len(run) for kind, run in runs if kind)
    small = sum(part.rows for kind, run in runs if not kind for _, part in run)
    if large > _MANY_LARGE or small > place.options.gather_rows:
        frames = Frames(place)
        rows = tagged(frames.content(relation, content), 0, relation.width).coalesce(place.jobs.cores)
        written = frames.write(rows, [relation], "putting small files together", turn)
        return SignedFiles.of(*written.get(0, ()))
    work = [_Small(relation, run, place.scratch.folder) for kind, run in runs if not kind]
    netted = iter(place.jobs.each(_netted, work, "putting small files together", turn))
    found = SignedFiles()
    for kind, run in runs:
        if kind:
            found = SignedFiles((*found.layers, *run))
        else:
            minus, plus = next(netted)
            found = found.then((place.adopt(plus),), (place.adopt(minus),))
    return found


def _netted(work: _Small) -> tuple[DataFile, DataFile]:
    """Write what goes in the end, and what comes: a row that came and went again is neither."""
    pieces = [np.stack(read_file(part, work.relation.width), axis=1) for _, part in work.layers]
    signs = np.repeat([1 if came else -1 for came, _ in work.layers], [len(rows) for rows in pieces])
    rows, counts = consolidated(np.concatenate(pieces), signs)
    minus, plus = (
        work.folder.write_rows(work.relation, list(np.ascontiguousarray(rows[counts == sign].T)))
        for sign in (-1, 1)
    )
    return minus, plus


def consolidated(rows: Keys, counts: Keys) -> tuple[Keys, Keys]:
    """Return each row once with its net count, without rows whose inserts and deletes cancel out."""
    distinct_rows, positions = np.unique(rows, axis=0, return_inverse=True)
    net = np.bincount(positions.ravel(), weights=counts, minlength=len(distinct_rows)).astype(np.int64)
    return distinct_rows[net != 0], net[net != 0]


def small_parts(terms: TermFiles) -> tuple[DataFile, ...]:
    """Return files of terms that are small, if there are many of them."""
    found = tuple(part for part in terms.parts if part.rows <= _SMALL)
    return found if len(found) >= _MANY_FILES else ()


def compact(folder: Folder, parts: tuple[DataFile, ...]) -> DataFile:
    """Write the terms of some files into one."""
    return write_terms(folder, distinct(pa.concat_tables([TermFiles((part,)).read() for part in parts])))
