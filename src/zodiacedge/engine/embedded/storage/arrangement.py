"""Arrangements: multisets of terms by group, in the order of a key, which follow the rows that come and go.

An arrangement is a few sorted runs of entries with weights, each run at least twice as long as the next. What
comes has the weight 1, what goes -1: a change adds a run, and runs are merged as they grow, where entries
cancel each other out. So a change costs what it brings, and a rank is found by binary searches in all runs.

Totals of numbers are exact: each run has the sums of its numbers' digits up to each entry.

Arrangements do not change: the next version has another one, with most of the same runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage.arrangement_kernels import (
    STATE_WORDS,
    entry_weights,
    group_weights,
    merge_runs,
    select_ranks,
)
from zodiacedge.engine.embedded.storage.exact_sums import digits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.types import Flags, Ids

    Words = NDArray[np.int64]


_BITS = 32
_MASK = (1 << 31) - 1


class NotArrangedError(Exception):
    """Values have no order in an arrangement, or no exact total."""


@dataclass(frozen=True, eq=False)
class Run:
    """Entries sorted by group, key and id, each once, and the weights of all entries up to each."""

    groups: Words
    keys: Words
    ids: Ids
    sums: NDArray[np.int32]
    _totals: list[dict[int, Words]] = field(default_factory=list)

    @classmethod
    def of(cls, groups: Words, keys: Words, ids: Ids, weights: NDArray[np.int32]) -> Run:
        """Sort entries; weights of equal ones are added."""
        order = _order(groups, keys, ids)
        groups, keys, ids, weights = groups[order], keys[order], ids[order], weights[order]
        differs = np.ones(len(groups), np.bool_)
        differs[1:] = (groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1]) | (ids[1:] != ids[:-1])
        if not differs.all():
            starts = np.flatnonzero(differs)
            weights = np.add.reduceat(weights, starts)
            starts, weights = starts[weights != 0], weights[weights != 0]
            groups, keys, ids = groups[starts], keys[starts], ids[starts]
        return cls(groups, keys, ids, np.cumsum(weights, dtype=np.int32))

    @cached_property
    def distinct_groups(self) -> Words:
        """Its groups, each once."""
        differs = np.ones(len(self.groups), np.bool_)
        differs[1:] = self.groups[1:] != self.groups[:-1]
        return self.groups[differs]

    @cached_property
    def described(self) -> Words:
        """The words that kernels read."""
        at = [MEMORY.address(self.groups), MEMORY.address(self.keys)]
        return np.array(
            [*at, MEMORY.address(self.ids), MEMORY.address(self.sums), len(self.groups)], np.int64
        )

    def merged(self, other: Run) -> Run:
        """Return the run with the entries of both."""
        most = len(self.groups) + len(other.groups)
        out = Run(
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty(most, np.int32),
            np.empty(most, np.int32),
        )
        count = merge_runs(
            MEMORY.address(self.described), MEMORY.address(other.described), MEMORY.address(out.described)
        )
        # Room that is not needed would stay for as long as the run.
        shown = slice(count) if 2 * count > most else np.arange(count)
        return Run(out.groups[shown], out.keys[shown], out.ids[shown], out.sums[shown])

    @property
    def weights(self) -> NDArray[np.int32]:
        """The weight of each entry."""
        return np.diff(self.sums, prepend=np.int32(0))

    def totals(self, kind: int) -> dict[int, Words]:
        """Return the sums of the digits of all keys before each entry and of all, by place."""
        if not self._totals:
            of_keys = digits(kind, self.keys)
            if of_keys is None:
                raise NotArrangedError
            weights = self.weights
            sums = {place: np.zeros(len(self.keys) + 1, np.int64) for place in of_keys}
            for place, words in of_keys.items():
                np.cumsum(words * weights, out=sums[place][1:])
            self._totals.append(sums)
        return self._totals[0]

    def with_weights(self, weights: NDArray[np.int32]) -> Run:
        """Return the run with other weights; entries whose weight is 0 are left out."""
        here = weights != 0
        return Run(
            self.groups[here], self.keys[here], self.ids[here], np.cumsum(weights[here], dtype=np.int32)
        )

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        columns = (self.groups, self.keys, self.ids, self.sums)
        allocated = sum((c.base if c.base is not None else c).nbytes for c in columns)
        return allocated + sum(words.nbytes for sums in self._totals for words in sums.values())


@dataclass(frozen=True, eq=False)
class Arrangement:
    """The entries of some groups, and their order."""

    runs: tuple[Run, ...] = ()
    kind: int = 0
    """The kind of the terms whose payloads are the keys; of the caller's choice."""
    _described: list[Words] = field(default_factory=list)

    def changed(self, run: Run) -> Arrangement:
        """Return the arrangement with the entries of one more run."""
        if not len(run.groups):
            return self
        runs = [*self.runs, run]
        while len(runs) > 1 and len(runs[-2].groups) < 2 * len(runs[-1].groups):
            last, other = runs.pop(), runs.pop()
            both = other.merged(last)
            if len(both.groups):
                runs.append(both)
        return Arrangement(tuple(runs), self.kind)

    def weights(self, groups: Words) -> Words:
        """Return how many entries each group has."""
        out = np.zeros(len(groups), np.int64)
        if self.runs and len(groups):
            groups = np.ascontiguousarray(groups, np.int64)
            runs, state = self._words()
            group_weights(
                MEMORY.address(runs),
                len(self.runs),
                MEMORY.address(groups),
                len(groups),
                MEMORY.address(out),
                MEMORY.address(state),
            )
        return out

    def weights_of(self, run: Run) -> Words:
        """Return the weight of each entry of a run."""
        out = np.zeros(len(run.groups), np.int64)
        if self.runs and len(out):
            runs, _ = self._words()
            entry_weights(
                MEMORY.address(runs), len(self.runs), MEMORY.address(run.described), MEMORY.address(out)
            )
        return out

    def totals(self, groups: Words) -> dict[int, Words]:
        """Return the sums of the digits of each group's keys, by place (`exact_sums`)."""
        found: dict[int, Words] = {}
        for run in self.runs:
            low, high = run.groups.searchsorted(groups), run.groups.searchsorted(groups, "right")
            for place, sums in run.totals(self.kind).items():
                totals = found.setdefault(place, np.zeros(len(groups), np.int64))
                totals += sums[high] - sums[low]
        return found

    def select(self, groups: Words, ranks: Words) -> tuple[Words, Ids, Flags]:
        """Return the key and the id of the entry that has a rank, from 1, in its group.

        The flag says whether entries with other ids have the same key; then the id is that of any of them.
        Entries that cancel each other out count for nothing: their ids may be those of other terms by now.
        """
        found, tied = np.empty((len(groups), 2), np.int64), np.zeros(len(groups), np.int8)
        if len(groups):
            queries = np.stack((groups, ranks), axis=1).ravel()
            runs, state = self._words()
            select_ranks(
                MEMORY.address(runs),
                len(self.runs),
                MEMORY.address(queries),
                len(groups),
                MEMORY.address(found.ravel()),
                MEMORY.address(tied),
                MEMORY.address(state),
            )
        keys, ids, several = found[:, 0], found[:, 1].astype(np.int32), tied != 0
        for n in np.flatnonzero(several).tolist():
            those = self.ids_at(int(groups[n]), int(keys[n]))
            ids[n], several[n] = those[0], len(those) > 1
        return keys, ids, several

    def ids_at(self, group: int, key: int) -> list[int]:
        """Return the ids of a group's entries that have a key."""
        weights = Counter[int]()
        for run in self.runs:
            low, high = run.groups.searchsorted((group, group + 1)).tolist()
            keys = run.keys[low:high]
            first, end = low + int(keys.searchsorted(key)), low + int(keys.searchsorted(key, "right"))
            for at in range(first, end):
                before = int(run.sums[at - 1]) if at else 0
                weights[int(run.ids[at])] += int(run.sums[at]) - before
        return [number for number, weight in weights.items() if weight]

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        return sum(run.nbytes for run in self.runs)

    def __len__(self) -> int:
        """Return the number of entries, those among them that cancel each other out."""
        return sum(len(run.groups) for run in self.runs)

    def _words(self) -> tuple[Words, Words]:
        """Return the description of all runs, and room for the state of a search."""
        if not self._described:
            self._described.append(np.concatenate([run.described for run in self.runs]))
        return self._described[0], words(STATE_WORDS * len(self.runs))


def _order(groups: Words, keys: Words, ids: Ids) -> NDArray[np.intp]:
    """Return the positions of entries by group, key and id."""
    if len(groups) and groups[groups.argmax()] <= _MASK:
        # By key, then by group and place: words are sorted several times as quickly as columns.
        order: NDArray[np.intp] = np.argsort(keys)
        words = (groups[order] << _BITS) | np.arange(len(order))
        words.sort()
        order = order[words & _MASK]
        group, key, number = groups[order], keys[order], ids[order]
        same = (group[1:] == group[:-1]) & (key[1:] == key[:-1])
        if not (same & (number[1:] < number[:-1])).any():
            return order
    slowly: NDArray[np.intp] = np.lexsort((ids, keys, groups))
    return slowly
