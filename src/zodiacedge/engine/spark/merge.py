"""New terms among those that are known: each once, and none with another's fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zodiacedge.engine.spark.frames import manifest_row, spark_path
from zodiacedge.engine.spark.scratch import Folder, Part
from zodiacedge.engine.spark.vocabulary import FEW, SCHEMA, Terms, clash, shown, unseen, write_terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from zodiacedge.engine.handover import Handover
    from zodiacedge.engine.spark.place import Place

_ENTRIES = "id long, kind tinyint, bits long, text binary"
_MANIFEST = "tag int, path string, rows long, classes string"


@dataclass(frozen=True)
class _Merge:
    new: Terms
    known: Terms
    folder: Folder


def merged(place: Place, new: Terms, known: Terms, turn: Handover) -> Terms:
    """Return what is known of terms when new ones came; raise where two share a fingerprint."""
    if not new.rows:
        return known
    # A few are looked for in files that are in order.
    if new.rows <= FEW or new.rows + known.rows <= place.options.gather_rows:
        work = _Merge(new, known, place.scratch.folder)
        part = place.jobs.one(_in_one_task, work, "comparing terms", turn)
        found = [place.adopt(part)] if part.rows else []
    else:
        found = _by_plans(place, new, known, turn)
    return Terms((*known.parts, *found))


def _in_one_task(work: _Merge) -> Part:
    return write_terms(work.folder, unseen(work.new.read(), work.known))


def _by_plans(place: Place, new: Terms, known: Terms, turn: Handover) -> list[Part]:
    fresh = terms_frame(place, new).distinct()
    there = terms_frame(place, known) if known.rows else None
    every = fresh if there is None else fresh.union(there.join(fresh, "id", "left_semi")).distinct()
    twice = every.groupBy("id").count().where("count > 1").limit(1)
    found = place.jobs.run(twice.collect, "comparing terms", turn)
    if found:
        both = Terms((*new.parts, *known.parts)).read(np.array([found[0]["id"]], np.int64))
        rows = {shown(both.slice(n, 1)) for n in range(len(both))}
        raise clash(*sorted(rows)[:2])
    only = fresh if there is None else fresh.join(there, "id", "left_anti")
    writer = _TermWriter(place.scratch.folder)
    rows_written = place.jobs.run(lambda: only.mapInArrow(writer, _MANIFEST).collect(), "writing terms", turn)
    return [place.adopt(Part(row["path"], row["rows"])) for row in rows_written]


def terms_frame(place: Place, terms: Terms) -> DataFrame:
    """Return entries of terms as a data frame."""
    paths = [spark_path(part.path) for part in terms.parts]
    return place.jobs.session.read.schema(_ENTRIES).parquet(*paths)


@dataclass(frozen=True)
class _TermWriter:
    folder: Folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = [batch for batch in batches if batch.num_rows]
        if pieces:
            yield manifest_row(0, write_terms(self.folder, pa.Table.from_batches(pieces).cast(SCHEMA)))
