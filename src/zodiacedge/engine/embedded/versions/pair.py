"""Tables, and the one that came in their place: by how much they differ, and in which rows.

The difference may be larger than either, so it is only estimated until somebody needs its rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids


# So many rows tell about how much two tables have in common.
_SAMPLE = 128
# Where sizes differ by one in so many, they tell enough.
_PLAIN = 4


class Pair:
    """What a relation had in some owner's tables, and what it has there now."""

    def __init__(self, olds: Sequence[Table], new: Table) -> None:
        """Take tables that both hold something."""
        self._olds = olds
        self._new = new

    @cached_property
    def about(self) -> int:
        """About how many rows they do not have in common."""
        there, now = sum(map(len, self._olds)), len(self._new)
        if abs(there - now) * _PLAIN >= max(there, now):
            return abs(there - now)
        sample = np.sort(_keys(self._new.rows[:: max(now // _SAMPLE, 1)]))
        found = np.zeros(len(sample), np.bool_)
        for old in self._olds:
            # One pass over the rows, without a row-set that nobody may need afterwards.
            keys = _keys(old.rows)
            places = np.minimum(np.searchsorted(sample, keys), len(sample) - 1)
            found[places[sample[places] == keys]] = True
        common = int(found.mean() * now)
        return now - common + max(there - common, 0)

    def differing(self) -> Iterator[Ids]:
        """Yield the rows that went, and those that came."""
        rest = self._new.rows
        for old in self._olds:
            places = old.places(rest)
            here = places >= 0
            met = np.zeros(len(old), np.bool_)
            met[places[here]] = True
            lacking = old.rows[~met]
            if len(self._olds) > 1:
                lacking = self._new.sift(lacking, present=False)
            yield lacking
            rest = rest[~here]
        yield rest


def _keys(rows: Ids) -> NDArray[np.int64]:
    """Return a number for each row; equal rows have equal ones, and hardly any others."""
    found = np.zeros(len(rows), np.int64)
    for column in rows.T:
        found = found * 0x1F3D5B79 + column
    return found
