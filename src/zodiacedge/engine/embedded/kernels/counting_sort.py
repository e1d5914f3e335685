"""Rows in the order of small numbers that they have: counted, not compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels.jit import COMPILED, MEMORY, kernel, load32, store32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Keys = NDArray[np.int32]
    Order = NDArray[np.int32]

# Where the numbers may be larger than this for each row, and than this, there are too many to count.
_COUNTS_PER_ROW = 4
_COUNTS_AT_LEAST = 1024


@kernel
def count_order(keys: int, rows: int, bound: int, before: int, counts: int, order: int) -> None:
    """Write the places of all keys in ascending order; where they are equal, in the order of `before`."""
    for place in range(rows):
        key = load32(keys, place)
        store32(counts, key, load32(counts, key) + 1)
    total = 0
    for key in range(bound):
        count = load32(counts, key)
        store32(counts, key, total)
        total += count
    for n in range(rows):
        place = load32(before, n)
        key = load32(keys, place)
        at = load32(counts, key)
        store32(counts, key, at + 1)
        store32(order, at, place)


def in_order(columns: Sequence[Keys], bound: int) -> Order:
    """Return the places of rows in the order of their columns, the first one first.

    Args:
        columns: What each row has; at least one.
        bound: No number in them is negative, or as large as this.
    """
    rows = len(columns[0])
    if not COMPILED or bound > _COUNTS_PER_ROW * rows + _COUNTS_AT_LEAST:
        return np.lexsort(columns[::-1]).astype(np.int32)
    order = np.arange(rows, dtype=np.int32)
    for column in reversed(columns):
        keys = np.ascontiguousarray(column, np.int32)
        counts = np.zeros(bound, np.int32)
        after = np.empty(rows, np.int32)
        at = [MEMORY.address(array) for array in (keys, order, counts, after)]
        count_order(at[0], rows, bound, at[1], at[2], at[3])
        order = after
    return order
