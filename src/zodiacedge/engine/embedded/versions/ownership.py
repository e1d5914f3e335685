"""Who holds a row: the explicit facts and the segments, in the old version and in the next.

An entry stands for one owner's table of a relation: what it holds in the old version, what it gains, what it
loses. A node's own segment is told apart from all others, because a fact may hold itself up only there.
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
O_PLUS = 1  # the record of what it gains, or 0
O_MINUS = 2  # the record of what it loses, or 0
O_CLASS = 3  # the class of the rows, where the table has a column for it

OUTSIDE_BEFORE = 1
OUTSIDE = 2
OWN_BEFORE = 4
OWN = 8
BEFORE = OUTSIDE_BEFORE | OWN_BEFORE
AFTER = OUTSIDE | OWN


@kernel
def mark_owners(
    entries: int, count: int, own: int, given: int, total: int, arity: int, found: int, key: int
) -> None:
    """Write for each of the rows given a byte that tells who holds it; `own` is an entry's number or -1."""
    for n in range(total):
        for column in range(arity):
            put(key, column, load32(given, n * arity + column))
        flags = 0
        for entry in range(count):
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
        store8(found, n, flags)


def split_changes(rows: Ids, marks: NDArray[np.int8]) -> tuple[Ids, Ids]:
    """Return the rows that nobody holds any more, and those that nobody held, by marks of their owners."""
    if len(rows) == 1:
        # The usual case, and much quicker without arrays.
        was, will = bool(marks.item(0) & BEFORE), bool(marks.item(0) & AFTER)
        none = rows[:0]
        return rows if was and not will else none, rows if will and not was else none
    were, will_be = marks & BEFORE != 0, marks & AFTER != 0
    return rows[were & ~will_be], rows[will_be & ~were]
