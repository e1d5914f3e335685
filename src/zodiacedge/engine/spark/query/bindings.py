"""Bindings of a query's variables in the driver: columns of fingerprints, and joins of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.language.ast import Atom, Variable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.terms import Term

    Rows = NDArray[np.int64]


class Bindings(NamedTuple):
    """Values of variables: a row of fingerprints for each binding, a column for each variable."""

    variables: tuple[Variable, ...]
    rows: Rows

    @classmethod
    def none(cls) -> Bindings:
        """Return the one binding of no variables."""
        return cls((), np.zeros((1, 0), np.int64))

    @classmethod
    def of(cls, atom: Atom, rows: Rows, keys: Mapping[Term, int]) -> Bindings:
        """Return the bindings under which an atom is one of some rows."""
        first: dict[Variable, int] = {}
        for column, arg in enumerate(atom.args):
            if isinstance(arg, Variable):
                rows = rows[rows[:, column] == rows[:, first.setdefault(arg, column)]]
            else:
                rows = rows[rows[:, column] == keys[arg]]
        return cls(tuple(first), rows[:, list(first.values())])

    def __len__(self) -> int:
        """Return the number of bindings."""
        return len(self.rows)

    def columns(self, names: Sequence[Variable]) -> Rows:
        """Return the columns of some variables."""
        return self.rows[:, [self.variables.index(name) for name in names]]

    def first(self, count: int) -> Bindings:
        """Return at most so many of the bindings."""
        return Bindings(self.variables, self.rows[:count])

    def after(self, count: int) -> Bindings:
        """Return the bindings without the first ones."""
        return Bindings(self.variables, self.rows[count:])

    def distinct(self, names: Sequence[Variable]) -> Bindings:
        """Return the distinct values of some variables."""
        columns = self.columns(names)
        return Bindings(tuple(names), np.unique(columns, axis=0) if columns.shape[1] else columns[:1])

    def joined(self, other: Bindings, most: int) -> Bindings:
        """Join with other bindings by the variables of both; return at most so many."""
        shared = [v for v in other.variables if v in self.variables]
        new = [v for v in other.variables if v not in shared]
        ours, theirs = _codes(self.columns(shared), other.columns(shared))
        order = np.argsort(theirs, kind="stable")
        ordered = theirs[order]
        starts = np.searchsorted(ordered, ours, "left")
        ends = np.cumsum(np.searchsorted(ordered, ours, "right") - starts)
        counts = np.diff(np.minimum(ends, most), prepend=0)
        left = np.repeat(np.arange(len(self)), counts)
        right = np.arange(len(left)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        rows = np.concatenate([self.rows[left], other.columns(new)[order[right]]], axis=1)
        return Bindings((*self.variables, *new), rows)


def rows_of(tuples: Collection[tuple[int | None, ...]], width: int) -> Rows:
    """Return rows of fingerprints as an array."""
    return np.array(list(tuples), np.int64).reshape(len(tuples), width)


def _codes(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """Return a number for each row of two arrays, the same for equal rows."""
    if left.shape[1] == 1:
        return left[:, 0], right[:, 0]
    if not left.shape[1]:
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64)
    _, codes = np.unique(np.concatenate([left, right]), axis=0, return_inverse=True)
    # NumPy 2.0 returns a column.
    codes = codes.ravel()
    return codes[: len(left)], codes[len(left) :]
