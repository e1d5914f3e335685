"""What a node had, brought to what evaluating it anew gave.

Where little changed, the tables that a node has are worth more than new ones: what finds their rows is
there, or will serve the next change, and so will the programs that were assembled for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.pair import Pair
from zodiacedge.engine.embedded.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.store import Segment
    from zodiacedge.engine.embedded.versions import Draft

    Ids = NDArray[np.int32]

# What it takes to look each row up, and what a row-set takes where there is none.
_SECONDS_PER_LOOK = 4e-8
_SECONDS_PER_UNREADY_ROW = 6e-8


def seconds_to_keep(old: Segment, new: Segment) -> float:
    """Return about how long it takes to find out in what two segments differ."""
    tables = (*old.tables.values(), *old.hidden.values())
    unready = sum(len(table) for table in tables if not table.has_row_set)
    return (len(old) + len(new)) * _SECONDS_PER_LOOK + unready * _SECONDS_PER_UNREADY_ROW


def keep(draft: Draft, old: Segment, new: Segment) -> int:
    """Let an old segment gain and lose what it takes to hold what a new one does; return how it grows."""
    for relation in dict.fromkeys((*old.tables, *new.tables)):
        gone, come = _difference(old.tables.get(relation), new.tables.get(relation), relation.arity)
        if len(gone) or len(come):
            overlay = draft.overlay(old, relation)
            overlay.remove(gone)
            overlay.add(come)
    for key, rows in new.hidden.items():
        gone, come = _difference(old.hidden[key], rows, rows.arity)
        if len(gone) or len(come):
            overlay = draft.hidden(old, key)
            overlay.remove(gone)
            overlay.add(come)
    return draft.settle(old)


def _difference(old: Table | None, new: Table | None, arity: int) -> tuple[Ids, Ids]:
    before, after = old if old is not None else Table(arity), new if new is not None else Table(arity)
    gone, come = _each(before, after)
    return gone, come


def _each(before: Table, after: Table) -> Iterator[Ids]:
    if not len(before) or not len(after):
        return iter((before.rows, after.rows))
    return Pair([before], after).differing()
