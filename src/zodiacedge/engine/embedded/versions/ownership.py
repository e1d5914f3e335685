"""The owners of a row (explicit facts and segments) in the old version and in the next, as flags.

An entry describes one owner's table of a relation: its rows in the old version, the inserted and the deleted
rows. A node's own segment has flags of its own, because only its facts can support each other in a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.kernels.jit import kernel, load32, store8
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.storage.hash_index import find_row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Ids


OWNER_WORDS = 4
O_BASE = 0  # the record of the table in the old version, or 0
O_PLUS = 1  # the record of the inserted rows, or 0
O_MINUS = 2  # the record of the deleted rows, or 0
O_CLASS = 3  # the class of the rows, where the table has a column for it

OUTSIDE_BEFORE = 1
OUTSIDE = 2
OWN_BEFORE = 4
OWN = 8
BEFORE = OUTSIDE_BEFORE | OWN_BEFORE
AFTER = OUTSIDE | OWN
BOTH_OUTSIDE = OUTSIDE_BEFORE | OUTSIDE


@kernel
def mark_owners(
    entries: int, count: int, own: int, rows: int, total: int, arity: int, marks: int, key: int
) -> None:
    """Write a byte per row with the flags of its owners; `own` is the number of the node's entry, or -1."""
    for n in range(total):
        for column in range(arity):
            put(key, column, load32(rows, n * arity + column))
        flags = 0
        for entry in range(count):
            # One owner outside in both versions tells as much as thirty.
            if entry != own and flags & BOTH_OUTSIDE == BOTH_OUTSIDE:
                continue
            here = entries + 8 * OWNER_WORDS * entry
            put(key, arity, get(here, O_CLASS))
            base = get(here, O_BASE)
            plus = get(here, O_PLUS)
            minus = get(here, O_MINUS)
            before = base != 0 and find_row(base, key) >= 0
            after = before
            if before:
                if minus != 0 and find_row(minus, key) >= 0:
                    after = False
            elif plus != 0 and find_row(plus, key) >= 0:
                after = True
            if before:
                flags |= OWN_BEFORE if entry == own else OUTSIDE_BEFORE
            if after:
                flags |= OWN if entry == own else OUTSIDE
        store8(marks, n, flags)


def changes_input(marks: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return a flag per row: whether it is a change to a node with a segment of its own, by the row's flags.

    It was not outside and visible before and is now, or the reverse; or it is left to the node's own segment.
    """
    was, will_be, outside = marks & BEFORE != 0, marks & AFTER != 0, marks & OUTSIDE != 0
    left = will_be & ~outside & (marks & OUTSIDE_BEFORE != 0)
    changes: NDArray[np.bool_] = (was & ~will_be) | (outside & ~was) | left
    return changes


def split_changes(rows: Ids, marks: NDArray[np.int8]) -> tuple[Ids, Ids]:
    """Return the rows that lost their last owner, and those that got their first owner, by their flags."""
    if len(rows) == 1:
        # The usual case, and much quicker without arrays.
        was, will = bool(marks.item(0) & BEFORE), bool(marks.item(0) & AFTER)
        none = rows[:0]
        return rows if was and not will else none, rows if will and not was else none
    were, will_be = marks & BEFORE != 0, marks & AFTER != 0
    return rows[were & ~will_be], rows[will_be & ~were]
