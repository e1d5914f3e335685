"""What a node had, brought to what evaluating it anew gave.

Where little changed, the tables that a node has are worth more than new ones: what finds their rows is
there, or will serve the next change, and so will the programs that were assembled for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.maintain.strategy import SECONDS_PER_UNREADY_ROW
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.pair import Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Draft


# What it takes to look each row up, and what each row takes that came or went: into an overlay, and from
# there into a table with its indexes.
_SECONDS_PER_LOOK = 4e-8
_SECONDS_PER_DIFFERENCE = 1.5e-6


def can_patch(old: Segment, new: Segment, may_spend: Callable[[float], bool]) -> bool:
    """Whether there is the time to bring an old segment to what a new one holds."""
    pairs = [(table, new.tables.get(relation)) for relation, table in old.tables.items()]
    pairs += [(rows, new.aggregate_rows.get(key)) for key, rows in old.aggregate_rows.items()]
    # How much differs is itself not told in no time: large tables are out of the question before.
    looking = sum(_seconds_to_look(*pair) for pair in pairs)
    return may_spend(looking) and may_spend(looking + sum(map(_differing, pairs)) * _SECONDS_PER_DIFFERENCE)


def _seconds_to_look(old: Table, new: Table | None) -> float:
    unready = 0 if old.has_row_set else len(old)
    rows = len(old) + (len(new) if new is not None else 0)
    return rows * _SECONDS_PER_LOOK + unready * SECONDS_PER_UNREADY_ROW


def _differing(pair: tuple[Table, Table | None]) -> int:
    old, new = pair
    if new is None or not len(old) or not len(new):
        return len(old) + (len(new) if new is not None else 0)
    return Pair([old], new).about


def patch_segment(draft: Draft, old: Segment, new: Segment) -> None:
    """Let an old segment gain and lose what it takes to hold what a new one does."""
    for relation in dict.fromkeys((*old.tables, *new.tables)):
        gone, come = _difference(old.tables.get(relation), new.tables.get(relation), relation.arity)
        if len(gone) or len(come):
            overlay = draft.overlay(old, relation)
            overlay.remove(gone)
            overlay.add(come)
    for key, rows in new.aggregate_rows.items():
        gone, come = _difference(old.aggregate_rows[key], rows, rows.arity)
        if len(gone) or len(come):
            overlay = draft.aggregate_rows(old, key)
            overlay.remove(gone)
            overlay.add(come)
    draft.settle(old)


def _difference(old: Table | None, new: Table | None, arity: int) -> tuple[Ids, Ids]:
    before, after = old if old is not None else Table(arity), new if new is not None else Table(arity)
    if not len(before) or not len(after):
        return before.rows, after.rows
    gone, come = Pair([before], after).differing()
    return gone, come
