"""Rows that are among others, and rows that came and went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.owners import AFTER, BEFORE
from zodiacedge.engine.embedded.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]

# So few rows are quicker looked up by Python itself.
_FEW = 16


def without(rows: Ids, others: Ids) -> Ids:
    """Return the rows that are not among others."""
    if not len(rows) or not len(others):
        return rows
    return rows[~are_in(rows, others)]


def are_in(rows: Ids, others: Ids) -> NDArray[np.bool_]:
    """Tell of each row whether it is among others."""
    if len(rows) <= _FEW and len(others) <= _FEW:
        there = set(map(tuple, others.tolist()))
        return np.array([tuple(row) in there for row in rows.tolist()], np.bool_)
    return Table.of(others).mask(rows)


def each_once(rows: Ids) -> Ids:
    """Return rows, each once."""
    if len(rows) <= 1:
        return rows
    found = Table(rows.shape[1])
    found.insert(rows)
    return found.rows


def gone_and_come(rows: Ids, marks: NDArray[np.int8]) -> tuple[Ids, Ids]:
    """Return the rows that nobody holds any more, and those that nobody held, by marks of their owners."""
    if len(rows) == 1:
        # The usual case, and much quicker without arrays.
        was, will = bool(marks.item(0) & BEFORE), bool(marks.item(0) & AFTER)
        none = rows[:0]
        return rows if was and not will else none, rows if will and not was else none
    were, will_be = marks & BEFORE != 0, marks & AFTER != 0
    return rows[were & ~will_be], rows[will_be & ~were]
