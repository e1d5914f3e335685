"""An index of the moments of a dictionary in their order: a few sorted runs, merged as they grow.

A lookup costs a binary search in each run, whatever the number of moments. New terms are those with new ids,
and those that have taken free ids: a number takes the lowest free id without a hole. Moments that arrived
wait apart until a version has taken them up (`settle`); moments whose terms are freed leave the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids

    _Run = tuple[NDArray[np.int64], Ids]

_NO_IDS: Ids = np.zeros(0, np.int32)
_FREED = -1
# So many entries are searched at once for one that is not freed.
_TOGETHER = 1024
# The bytes of an entry.
_BYTES = 12


class _Known(NamedTuple):
    """What the index knows; replaced in one step, so that an interruption leaves it whole."""

    total: int = 0
    """The number of ids when it last caught up."""
    free: Ids = _NO_IDS
    """The free ids without holes at that time, in the order in which they are taken."""
    arrived: Ids = _NO_IDS
    """The moments that no version has taken up."""
    settled: int = 0
    """The number of moments that were taken up since `follow`."""
    runs: tuple[_Run, ...] = ()
    freed: int = 0
    """The number of entries of the runs whose moments are freed."""

    def with_runs(self, runs: tuple[_Run, ...], came: int = 0) -> _Known:
        """Return this with other runs of the same entries, and of some that came, but maybe of none freed."""
        dropped = _entries(self.runs) + came - _entries(runs)
        return self._replace(runs=runs, freed=self.freed - dropped)


class MomentIndex:
    """The moments of a dictionary, by microseconds, once it follows the dictionary."""

    def __init__(self, dictionary: Dictionary) -> None:
        """Start with no moments."""
        self._dictionary = dictionary
        self._known: _Known | None = None
        self._wanted = False
        self.clocks: set[int] = set()
        """The moments that are or were times of the clock."""

    def __len__(self) -> int:
        """Return the number of moments that were taken up."""
        return _entries(self._runs()) - (self._known.freed if self._known else 0)

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        return sum(micros.nbytes + ids.nbytes for micros, ids in self._runs())

    @property
    def unused_bytes(self) -> int:
        """Bytes of entries whose moments are freed."""
        return self._known.freed * _BYTES if self._known else 0

    def follow(self) -> None:
        """Take up all moments of the dictionary, and those that come from now on."""
        total = len(self._dictionary)
        free = self._free_between(0, total)
        self._known = _Known(total, free, runs=_merged((self._sorted(self._moments(0, total)),)))

    def want(self) -> None:
        """Follow the dictionary from now on, with or without windows."""
        self._wanted = True
        if self._known is None:
            self.follow()

    def stop(self) -> None:
        """Drop all moments, or take up all if they are wanted: no window reads them."""
        if self._wanted:
            self.settle(self.arrived)
        else:
            self._known = None

    @property
    def arrived(self) -> int:
        """The number of moments that have arrived since `follow`."""
        known = self._caught_up()
        return known.settled + len(known.arrived)

    def since(self, first: int) -> tuple[Ids, NDArray[np.int64]]:
        """Return the moments that arrived after the first so many, and their microseconds."""
        known = self._caught_up()
        ids = known.arrived[first - known.settled :]
        ids = ids[ids != _FREED]
        return ids, self._dictionary.payloads[ids]

    def settle(self, first: int) -> None:
        """Take up the first so many moments that arrived: a version has them."""
        known = self._caught_up()
        count = first - known.settled
        ids = known.arrived[:count]
        fresh = self._sorted(ids[ids != _FREED])
        known = known.with_runs(_merged((*known.runs, fresh)), len(fresh[1]))
        self._known = known._replace(arrived=known.arrived[count:], settled=first)

    def between(self, after: int, upto: int) -> Ids:
        """Return the moments that were taken up with `after < microseconds <= upto`."""
        found: list[Ids] = []
        for micros, ids in self._runs() if after < upto else ():
            start, end = micros.searchsorted((after, upto), "right").tolist()
            part = ids[start:end]
            part = part[part != _FREED]
            if len(part):
                found.append(part)
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else _NO_IDS

    def first_after(self, after: int) -> int | None:
        """Return the microseconds of the first moment after a given one."""
        _, late = self.since(self._known.settled) if self._known else (_NO_IDS, np.zeros(0, np.int64))
        firsts = late[late > after].tolist()
        for micros, ids in self._runs():
            at = int(micros.searchsorted(after, "right"))
            while at < len(ids):
                there = np.flatnonzero(ids[at : at + _TOGETHER] != _FREED)
                if len(there):
                    firsts.append(int(micros[at + there[0]]))
                    break
                at += _TOGETHER
        return min(firsts, default=None)

    def known_between(self, after: int, upto: int) -> Ids:
        """Return all moments with `after < microseconds <= upto`, whether they were taken up or not."""
        found = self.between(after, upto)
        late, micros = self.since(self._known.settled) if self._known else (_NO_IDS, _NO_IDS)
        late = late[(after < micros) & (micros <= upto)]
        return np.concatenate((found, late)) if len(late) else found

    # Terms are freed

    def unlisted(self) -> None:
        """Take up the terms that are there before the dictionary makes its list of free ids anew."""
        if self._known:
            self._known = self._caught_up()._replace(free=_NO_IDS)

    def leave(self, first: int, end: int) -> Ids:
        """Drop the moments among some ids that are not marked as used, and return them."""
        gone = self._moments(first, min(end, len(self._dictionary)), used=False)
        self.clocks.difference_update(gone.tolist() if self.clocks else ())
        if not self._known:
            return _NO_IDS
        known = self._caught_up()
        micros = self._dictionary.payloads[gone]
        freed = known.freed
        for values, ids in known.runs if len(gone) else ():
            at = values.searchsorted(micros)
            at = at[at < len(values)]
            at = at[np.isin(ids[at], gone)]
            ids[at] = _FREED
            freed += len(at)
        known.arrived[np.isin(known.arrived, gone)] = _FREED
        self._known = known = known._replace(freed=freed)
        if 2 * freed > _entries(known.runs):
            self._known = known.with_runs(tuple(map(_without_freed, known.runs)))
        return gone

    def listed(self, first: int, end: int) -> None:
        """Note the free ids among some, which were appended to the list of free ids."""
        if self._known:
            free = self._free_between(first, min(end, len(self._dictionary)))
            self._known = self._known._replace(free=np.concatenate((self._known.free, free)))

    def listed_anew(self) -> None:
        """Note all free ids, after the last ones were dropped or holes closed."""
        if self._known:
            total = len(self._dictionary)
            self._known = self._known._replace(total=total, free=self._free_between(0, total))

    def _caught_up(self) -> _Known:
        """Take up the terms that came since the last call."""
        known = self._known
        if known is None:
            return _Known()
        first, total = self._dictionary.first_free, len(self._dictionary)
        taken = len(known.free) if first < 0 else int(known.free.searchsorted(first))
        if not taken and total == known.total:
            return known
        fresh = known.free[:taken]
        fresh = fresh[self._dictionary.kinds[fresh] == L.K_MOMENT]
        arrived = np.concatenate((known.arrived, fresh, self._moments(known.total, total)))
        self._known = known._replace(total=total, free=known.free[taken:], arrived=arrived)
        return self._known

    def _runs(self) -> Iterator[_Run]:
        yield from self._known.runs if self._known else ()

    def _moments(self, first: int, end: int, *, used: bool = True) -> Ids:
        are_moments = self._dictionary.kinds[first:end] == L.K_MOMENT
        if not used:
            are_moments &= self._dictionary.unmarked(first, end)
        return (np.flatnonzero(are_moments) + first).astype(np.int32)

    def _free_between(self, first: int, end: int) -> Ids:
        dictionary = self._dictionary
        free = np.flatnonzero(dictionary.kinds[first:end] == L.K_FREE) + first
        holes = dictionary.payloads[free] & ((1 << L.HOLE_BITS) - 1)
        ids: Ids = free[holes == 0].astype(np.int32)
        return ids

    def _sorted(self, ids: Ids) -> _Run:
        micros = self._dictionary.payloads[ids]
        order = np.argsort(micros, kind="stable")
        return micros[order], ids[order]


def _entries(runs: Iterable[_Run]) -> int:
    return sum(len(ids) for _, ids in runs)


def _without_freed(run: _Run) -> _Run:
    micros, ids = run
    return micros[ids != _FREED], ids[ids != _FREED]


def _merged(runs: tuple[_Run, ...]) -> tuple[_Run, ...]:
    """Merge the last runs, so that each is at least twice as long as the next, without freed moments."""
    merged = [run for run in runs if len(run[1])]
    while len(merged) > 1 and len(merged[-2][1]) < 2 * len(merged[-1][1]):
        last, other = merged.pop(), merged.pop()
        micros, ids = np.concatenate((other[0], last[0])), np.concatenate((other[1], last[1]))
        micros, ids = _without_freed((micros, ids))
        order = np.argsort(micros, kind="stable")
        merged.append((micros[order], ids[order]))
    return tuple(merged)
