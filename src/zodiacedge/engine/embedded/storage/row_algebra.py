"""Set operations on arrays of rows, and row hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Flags, Ids


# Up to so many rows are quicker to look up in a Python set.
_FEW = 16
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


def difference(rows: Ids, others: Ids) -> Ids:
    """Return the rows that are not among other rows."""
    if not len(rows) or not len(others):
        return rows
    return rows[~is_member(rows, others)]


def is_member(rows: Ids, others: Ids) -> Flags:
    """Return for each row whether it is among other rows."""
    if len(rows) <= _FEW and len(others) <= _FEW:
        members = set(map(tuple, others.tolist()))
        return np.array([tuple(row) in members for row in rows.tolist()], np.bool_)
    return Table.of(others).mask(rows)


def distinct(rows: Ids) -> Ids:
    """Return the distinct rows."""
    return rows if len(rows) <= 1 else Table.union(rows.shape[1], [rows]).rows


def row_hashes(columns: Iterable[NDArray[np.integer]], rows: int, seed: int) -> NDArray[np.uint64]:
    """Return a hash of each row; the sum of the hashes is a checksum independent of the order of rows."""
    hashes = np.full(rows, seed, np.uint64)
    for column in columns:
        # Columns must not commute, and the sum of the rows must not depend on the sums of the columns only.
        hashes = (hashes ^ column.astype(np.uint64)) * _FACTOR
        hashes ^= hashes >> _SHIFT
    return hashes * _FACTOR
