"""Stable counting sort of rows by small integer keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels.jit import COMPILED, MEMORY, kernel, load32, store32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Keys = NDArray[np.int32]
    Order = NDArray[np.int32]

# Keys may be this many times the number of rows, plus this, before comparing is quicker than counting.
_COUNTS_PER_ROW = 4
_COUNTS_AT_LEAST = 1024


@kernel
def counting_sort(keys: int, rows: int, bound: int, before: int, counts: int, order: int) -> None:
    """Write the positions of all keys in ascending order; equal keys stay in the order of `before`."""
    for position in range(rows):
        key = load32(keys, position)
        store32(counts, key, load32(counts, key) + 1)
    total = 0
    for key in range(bound):
        count = load32(counts, key)
        store32(counts, key, total)
        total += count
    for n in range(rows):
        position = load32(before, n)
        key = load32(keys, position)
        at = load32(counts, key)
        store32(counts, key, at + 1)
        store32(order, at, position)


def sorted_positions(columns: Sequence[Keys], bound: int) -> Order:
    """Return the positions of rows sorted by their columns, the first column first.

    Args:
        columns: The keys of the rows; at least one column.
        bound: Keys are at least 0 and less than this.
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
        counting_sort(at[0], rows, bound, at[1], at[2], at[3])
        order = after
    return order
