"""Which tables of a segment changed, told without a look at their rows."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.row_algebra import row_hashes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids

    Checksums = dict[int, tuple[int, int]]

_REVISIONS = count(1)


class Revisions:
    """The revisions of the tables of a segment: numbers that are never used again, in no segment.

    A table is named by its relation, or by the rule whose aggregate rows it has; in a table of the members of
    all classes, each class has a revision of its own, by its id.
    """

    __slots__ = ("_changed", "_classes", "_first")

    def __init__(self) -> None:
        """Start with one revision of all tables."""
        self._first = next(_REVISIONS)
        self._changed: dict[Hashable, int] = {}
        self._classes: list[int] | None = None

    def __getitem__(self, name: Hashable) -> int:
        """Return the revision of a table, or of a class."""
        return self._changed.get(name, self._first)

    def bump(self, *names: Hashable) -> None:
        """Give tables or classes that changed a new revision."""
        self._changed |= dict.fromkeys(names, next(_REVISIONS))

    def bump_classes(self, pairs: Iterable[Ids]) -> None:
        """Give the classes of changed members a new revision."""
        self._classes = None
        self.bump(*np.unique(np.concatenate([rows[:, 1] for rows in pairs])).tolist())

    def set_classes(self, classes: Iterable[int]) -> None:
        """Take note of the classes that have members."""
        self._classes = list(classes)

    def classes(self, pairs: Table) -> list[int]:
        """Return the classes that have members; look at the table only if it changed since the last call."""
        if self._classes is None:
            self._classes = np.unique(pairs.rows[:, 1]).tolist()
        return self._classes

    def keep(self, other: Revisions, names: Iterable[Hashable]) -> None:
        """Take the revisions of tables or classes from those of a segment that this one's replaces."""
        self._changed |= {name: other[name] for name in names}


def equal_rows(one: Table, other: Table) -> bool:
    """Whether two tables have the same rows, by a checksum."""
    return len(one) == len(other) and _checksum(one.rows) == _checksum(other.rows)


def equal_classes(one: Table, other: Table) -> list[int]:
    """Return the classes that have the same members in two tables of pairs, by a checksum."""
    sums, others = _class_sums(one.rows), _class_sums(other.rows)
    return [number for number, total in sums.items() if others.get(number) == total]


def _class_sums(pairs: Ids) -> Checksums:
    """Return the number of members of each class and a checksum."""
    order = np.argsort(pairs[:, 1], kind="stable")
    classes, starts, counts = np.unique(pairs[order, 1], return_index=True, return_counts=True)
    sums = np.add.reduceat(row_hashes(pairs.T, len(pairs), 0)[order], starts) if len(starts) else starts
    return dict(zip(classes.tolist(), zip(counts.tolist(), sums.tolist(), strict=True), strict=True))


def _checksum(rows: Ids) -> int:
    return int(row_hashes(rows.T, len(rows), 1).sum(dtype=np.uint64))
