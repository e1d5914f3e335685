"""Which of some rows are among others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.table import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]

# Up to so many pairs of rows are quicker compared than looked up.
_PAIRS = 256


def without(rows: Ids, others: Ids) -> Ids:
    """Return the rows that are not among others."""
    if not len(rows) or not len(others):
        return rows
    return rows[~are_in(rows, others)]


def are_in(rows: Ids, others: Ids) -> NDArray[np.bool_]:
    """Tell of each row whether it is among others."""
    if len(rows) * len(others) <= _PAIRS:
        same: NDArray[np.bool_] = (rows[:, None, :] == others[None, :, :]).all(axis=2).any(axis=1)
        return same
    return Table.of(others).mask(rows)
