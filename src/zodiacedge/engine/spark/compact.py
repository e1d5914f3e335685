"""Many small files into few: what many small changes leave behind must not slow down the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.engine.spark.frames import Frames, tagged
from zodiacedge.engine.spark.scratch import Content, Folder, Part, Relation
from zodiacedge.engine.spark.vocabulary import Terms, each_once, write_terms

if TYPE_CHECKING:
    from zodiacedge.engine.handover import Handover
    from zodiacedge.engine.spark.place import Place

# A content of more layers than this is written anew.
_MOST_LAYERS = 32
# So many small files of terms are put together.
_MANY_FILES = 16
_SMALL = 10_000


def compacted(place: Place, relation: Relation, content: Content, turn: Handover) -> Content:
    """Return the same rows in few files: one job, once in many changes."""
    if len(content.layers) <= _MOST_LAYERS:
        return content
    frames = Frames(place)
    rows = tagged(frames.content(relation, content), 0, relation.width).coalesce(place.jobs.cores)
    written = frames.write(rows, [relation], "putting small files together", turn)
    return Content.of(*written.get(0, ()))


def small_parts(terms: Terms) -> tuple[Part, ...]:
    """Return files of terms that are small, if there are many of them."""
    found = tuple(part for part in terms.parts if part.rows <= _SMALL)
    return found if len(found) >= _MANY_FILES else ()


def put_together(folder: Folder, parts: tuple[Part, ...]) -> Part:
    """Write the terms of some files into one."""
    return write_terms(folder, each_once(pa.concat_tables([Terms((part,)).read() for part in parts])))
