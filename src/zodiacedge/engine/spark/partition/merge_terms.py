"""New terms among those that are known: each once, and none with another's fingerprint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.partition.shuffle import partition_count
from zodiacedge.engine.spark.storage.dataframes import spark_path
from zodiacedge.engine.spark.storage.terms import FEW, Stretch, TermFiles, unseen, write_terms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.storage.files import DataFile, Folder
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

_ENTRIES = "id long, kind tinyint, bits long, text binary"


@dataclass(frozen=True)
class _Merge:
    new: TermFiles
    known: TermFiles
    folder: Folder
    within: Stretch | None = None
    """The fingerprints that one of several tasks looks at."""


def merged(place: Workspace, new: TermFiles, known: TermFiles, turn: YieldPoint) -> TermFiles:
    """Return what is known of terms when new ones came; raise where two share a fingerprint."""
    if not new.rows:
        return known
    rows = new.rows + known.rows
    work = _Merge(new, known, place.scratch.folder)
    # A few are looked for in files that are in order.
    if new.rows <= FEW or rows <= place.options.gather_rows:
        found = [place.jobs.one(_compared, work, "comparing terms", turn)]
    else:
        # Equal terms have equal fingerprints: every task has a stretch of them.
        stretches = place.hashing.stretches(partition_count(place, rows))
        shares = [replace(work, within=stretch) for stretch in stretches]
        found = place.jobs.each(_compared, shares, "comparing terms", turn)
    return TermFiles((*known.parts, *(place.adopt(part) for part in found if part.rows)))


def _compared(work: _Merge) -> DataFile:
    """Write the terms that nobody knew yet."""
    new = work.new.read(within=work.within)
    return write_terms(work.folder, unseen(new, work.known, work.within))


def terms_frame(place: Workspace, terms: TermFiles) -> DataFrame:
    """Return entries of terms as a data frame."""
    paths = [spark_path(part.path) for part in terms.parts]
    return place.jobs.session.read.schema(_ENTRIES).parquet(*paths)
