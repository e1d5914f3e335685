"""Revisions: numbers that tell which tables of a segment changed, without reading rows."""

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
    """The revisions of the tables of a segment: numbers that are unique over all segments.

    A table is named by its relation, or by the rule whose aggregate rows it has; in a table of the members of
    all classes, each class has a revision of its own, by its id.
    """

    __slots__ = ("_changed", "_classes", "_first")

    def __init__(self) -> None:
        """Start with the same revision for all tables."""
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
        """Set the classes that have members."""
        self._classes = list(classes)

    def classes(self, pairs: Table) -> list[int]:
        """Return the classes that have members; read the table only if it changed since the last call."""
        if self._classes is None:
            self._classes = np.unique(pairs.rows[:, 1]).tolist()
        return self._classes

    def keep(self, other: Revisions, names: Iterable[Hashable]) -> None:
        """Copy the revisions of tables or classes from the segment that this segment replaces."""
        self._changed |= {name: other[name] for name in names}


def equal_rows(old: Table, new: Table) -> bool:
    """Whether two tables have the same rows, by a checksum."""
    return len(old) == len(new) and _checksum(old.rows) == _checksum(new.rows)


def equal_classes(old: Table, new: Table) -> list[int]:
    """Return the classes that have the same members in two tables of pairs, by a checksum."""
    old_sums, new_sums = _class_sums(old.rows), _class_sums(new.rows)
    return [number for number, total in old_sums.items() if new_sums.get(number) == total]


def _class_sums(pairs: Ids) -> Checksums:
    """Return the number of members of each class and a checksum."""
    order = np.argsort(pairs[:, 1], kind="stable")
    classes, starts, counts = np.unique(pairs[order, 1], return_index=True, return_counts=True)
    sums = np.add.reduceat(row_hashes(pairs.T, len(pairs), 0)[order], starts) if len(starts) else starts
    return dict(zip(classes.tolist(), zip(counts.tolist(), sums.tolist(), strict=True), strict=True))


def _checksum(rows: Ids) -> int:
    return int(row_hashes(rows.T, len(rows), 1).sum(dtype=np.uint64))
