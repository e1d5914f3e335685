"""An index of the moments of a dictionary in their order: a few sorted runs, merged as they grow.

A lookup costs a binary search in each run, whatever the number of moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids

    _Run = tuple[NDArray[np.int64], Ids]


class MomentIndex:
    """The moments of a dictionary, by microseconds; terms that came since are taken up by `catch_up`."""

    def __init__(self, dictionary: Dictionary) -> None:
        """Start with no moments."""
        self._dictionary = dictionary
        self._state: tuple[int, tuple[_Run, ...]] = 0, ()

    def forget(self) -> None:
        """Drop all moments, because ids may have been freed and used again since the last call."""
        self._state = 0, ()

    def catch_up(self) -> None:
        """Take up the terms that were added to the dictionary since the last call."""
        seen, runs = self._state
        total = len(self._dictionary)
        if total == seen:
            return
        ids, micros = self.since(seen)
        if len(ids):
            order = np.argsort(micros, kind="stable")
            runs = _merged((*runs, (micros[order], ids[order])))
        # In one step, so that an interruption leaves the index whole.
        self._state = total, runs

    def since(self, first: int) -> tuple[Ids, NDArray[np.int64]]:
        """Return the moments among the terms from an id on, and their microseconds."""
        dictionary = self._dictionary
        ids = (np.flatnonzero(dictionary.kinds[first:] == L.K_MOMENT) + first).astype(np.int32)
        return ids, dictionary.payloads[ids]

    def between(self, after: int, upto: int) -> Ids:
        """Return the moments with `after < microseconds <= upto`."""
        found: list[Ids] = []
        if after < upto:
            for micros, ids in self._state[1]:
                start, end = micros.searchsorted((after, upto), "right").tolist()
                if start < end:
                    found.append(ids[start:end])
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros(0, np.int32)

    def first_after(self, after: int) -> int | None:
        """Return the microseconds of the first moment after a given one."""
        firsts: list[int] = []
        for micros, _ in self._state[1]:
            at = int(micros.searchsorted(after, "right"))
            if at < len(micros):
                firsts.append(int(micros[at]))
        return min(firsts, default=None)


def _merged(runs: tuple[_Run, ...]) -> tuple[_Run, ...]:
    """Merge the last runs, so that each is at least twice as long as the next."""
    merged = list(runs)
    while len(merged) > 1 and len(merged[-2][0]) < 2 * len(merged[-1][0]):
        last, other = merged.pop(), merged.pop()
        micros = np.concatenate((other[0], last[0]))
        order = np.argsort(micros, kind="stable")
        merged.append((micros[order], np.concatenate((other[1], last[1]))[order]))
    return tuple(merged)
