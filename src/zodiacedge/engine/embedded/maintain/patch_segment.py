"""An old segment patched to the result of recomputing its node.

Where little changed, old tables are worth more than new tables: they have hash sets and indexes, or will have
them in the next change, and the programs assembled for them can be used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.maintain.strategy import SECONDS_PER_UNREADY_ROW
from zodiacedge.engine.embedded.versions.difference import TableDifference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Draft


# The cost of looking a row up, and of a row inserted or deleted: into an overlay, and from there into a table
# with its indexes.
_SECONDS_PER_LOOK = 4e-8
_SECONDS_PER_DIFFERENCE = 1.5e-6


def can_patch(old: Segment, new: Segment, may_spend: Callable[[float], bool]) -> bool:
    """Whether the change may spend the time to patch an old segment to a new segment."""
    pairs = [(table, new.tables.get(relation)) for relation, table in old.tables.items()]
    pairs += [(rows, new.aggregate_rows.get(key)) for key, rows in old.aggregate_rows.items()]
    # Even an estimate takes time: too large tables are refused before it.
    looking = sum(_seconds_to_look(*pair) for pair in pairs)
    if not may_spend(looking):
        return False
    rows = sum(TableDifference.of_tables([before], after).estimate for before, after in pairs)
    return may_spend(looking + rows * _SECONDS_PER_DIFFERENCE)


def _seconds_to_look(old: Table, new: Table | None) -> float:
    unready = 0 if old.has_hash_set else len(old)
    rows = len(old) + (len(new) if new is not None else 0)
    return rows * _SECONDS_PER_LOOK + unready * SECONDS_PER_UNREADY_ROW


def patch_segment(draft: Draft, old: Segment, new: Segment) -> None:
    """Delete from an old segment and insert into it the rows in which a new segment differs."""
    for relation in dict.fromkeys((*old.tables, *new.tables)):
        deleted, inserted = _changed_rows(old.tables.get(relation), new.tables.get(relation))
        if deleted or inserted:
            _apply(draft.overlay(old, relation), deleted, inserted)
    for key, rows in new.aggregate_rows.items():
        deleted, inserted = _changed_rows(old.aggregate_rows[key], rows)
        if deleted or inserted:
            _apply(draft.aggregate_overlay(old, key), deleted, inserted)
    draft.settle(old)


def keep_equal_tables(olds: Sequence[Segment], new: Segment) -> None:
    """Replace tables of a new segment by old tables with the same rows, whose readers need no visit."""
    for relation, table in new.tables.items():
        tables = [old.tables[relation] for old in olds if old.tables.get(relation)]
        if len(tables) == 1 and _are_equal(tables[0], table):
            new.tables[relation] = tables[0]


def _are_equal(old: Table, new: Table) -> bool:
    if len(old) != len(new) or not len(old):
        return False
    # Often they are in the same order. Otherwise an estimate may say that they differ, for less.
    if np.array_equal(old.rows, new.rows):
        return True
    return not TableDifference.of_tables([old], new).estimate and old.count_present(new.rows) == len(new)


def _changed_rows(old: Table | None, new: Table | None) -> tuple[list[Ids], list[Ids]]:
    deleted, inserted = TableDifference.of_tables([old], new).changed_rows()
    return [rows for rows in deleted if len(rows)], [rows for rows in inserted if len(rows)]


def _apply(overlay: Overlay, deleted: list[Ids], inserted: list[Ids]) -> None:
    for rows in deleted:
        overlay.remove(rows)
    for rows in inserted:
        overlay.add(rows)
