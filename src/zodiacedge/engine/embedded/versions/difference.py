"""The rows in which tables differ before and after a change: estimated first, compared on demand.

A comparison may cost more than the change itself, and most callers never read its result. So the tables are
kept, and compared when a caller reads the rows or their number, at the latest before a later change writes
to one of the tables.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.embedded.storage.overlay import OverlayTable
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Flags, Ids


# The size of the sample that estimates how many rows two tables share.
_SAMPLE = 128
# Where the sizes differ by more than one row in so many, the difference of the sizes is the estimate.
_PLAIN = 4


class TableDifference:
    """The tables of one relation before and after a change."""

    def __init__(
        self, before: Sequence[OverlayTable], after: Sequence[OverlayTable], overlays: Sequence[Overlay] = ()
    ) -> None:
        """Take the tables of both versions, and the overlays that the commit applies to tables of both."""
        old, new = {id(piece.table) for piece in before}, {id(piece.table) for piece in after}
        self._before, self._after = list(before), list(after)
        self._overlays = list(overlays)
        # The tables that hold all inserted and all deleted rows, and perhaps others.
        self._inserted = [piece.table for piece in after if id(piece.table) not in old]
        self._deleted = [piece.table for piece in before if id(piece.table) not in new]
        self._deleted += [overlay.minus for overlay in overlays if len(overlay.minus)]

    @classmethod
    def of_tables(cls, before: Iterable[Table | None], after: Table | None) -> TableDifference:
        """Return the difference between the tables of an owner and the table that replaces them."""
        olds = [OverlayTable(table) for table in before if table]
        return cls(olds, [OverlayTable(after)] if after else [])

    @cached_property
    def estimate(self) -> int:
        """The estimated number of rows in which the tables differ; for tables without overlays."""
        old, new = sum(map(len, self._deleted)), sum(map(len, self._inserted))
        if abs(old - new) * _PLAIN >= max(old, new):
            return abs(old - new)
        (table,) = self._inserted
        sample = np.sort(_keys(table.rows[:: max(new // _SAMPLE, 1)]))
        present = np.zeros(len(sample), np.bool_)
        for table in self._deleted:
            # One pass over the rows, without a hash set that may never be needed.
            keys = _keys(table.rows)
            positions = np.minimum(np.searchsorted(sample, keys), len(sample) - 1)
            present[positions[sample[positions] == keys]] = True
        common = int(present.mean() * new)
        return new - common + max(old - common, 0)

    def changed_rows(self) -> tuple[list[Ids], list[Ids]]:
        """Return the deleted and the inserted rows, by hash sets of the old tables; without overlays."""
        if not self._deleted or not self._inserted:
            return [table.rows for table in self._deleted], [table.rows for table in self._inserted]
        (new,) = self._inserted
        deleted, rest = [], new.rows
        for old in self._deleted:
            positions = old.positions(rest)
            common = positions >= 0
            kept = np.zeros(len(old), np.bool_)
            kept[positions[common]] = True
            rows = old.rows[~kept]
            deleted.append(new.filter(rows, present=False) if len(self._deleted) > 1 else rows)
            rest = rest[~common]
        return deleted, [rest]

    def commit(self) -> None:
        """Replace overlays by copies: the commit is about to apply and clear them."""
        for overlay in self._overlays:
            base, plus, minus = overlay.base, _copy(overlay.plus), _copy(overlay.minus)
            if base is None:
                continue
            self._before = [piece for piece in self._before if piece.table is not base]
            self._before += [OverlayTable(base, plus), OverlayTable(minus)]
            self._after = [piece for piece in self._after if piece.table not in (base, overlay.plus)]
            self._after.append(OverlayTable(base))
            self._inserted = [plus if table is overlay.plus else table for table in self._inserted]
            self._deleted = [minus if table is overlay.minus else table for table in self._deleted]
        self._overlays = []

    def tables(self) -> set[int]:
        """Return the tables to compare, by identity."""
        pieces = (piece.table for piece in (*self._before, *self._after))
        return {id(table) for table in (*pieces, *self._inserted, *self._deleted)}

    def rows(self) -> Iterator[Ids]:
        """Yield the rows of all tables to compare."""
        for piece in (*self._before, *self._after):
            yield piece.table.rows
        for table in (*self._inserted, *self._deleted):
            yield table.rows

    def compare(self) -> tuple[list[Ids], list[Ids]]:
        """Return copies of the inserted and the deleted rows, in any thread; rows may repeat."""
        inserted = [_without(table, self._before) for table in self._inserted]
        deleted = [_without(table, self._after) for table in self._deleted]
        return [rows for rows in inserted if len(rows)], [rows for rows in deleted if len(rows)]

    def count(self) -> SegmentChange:
        """Count the inserted and the deleted rows, in any thread; for tables without overlays."""
        new = sum(map(len, self._inserted))
        if not self._deleted:
            return SegmentChange(new, 0)
        # A new table, because other threads may use the compared tables.
        old = Table.union(self._deleted[0].arity, (table.rows for table in self._deleted))
        common = sum(old.count_present(table.rows) for table in self._inserted)
        return SegmentChange(new - common, len(old) - common)


class SegmentDifference:
    """The difference between the old segments of a node and its new segment, counted when called."""

    def __init__(self, store: Database, olds: Sequence[Segment], new: Segment) -> None:
        """Take the segments; the store notifies before their tables change."""
        relations = dict.fromkeys(relation for segment in (*olds, new) for relation in segment.tables)
        self._differences = [
            TableDifference.of_tables([old.tables.get(relation) for old in olds], new.tables.get(relation))
            for relation in relations
        ]
        self._tables = frozenset().union(*(difference.tables() for difference in self._differences))
        self._counted: SegmentChange | None = None
        self._comparing = threading.Lock()
        store.add_reader(self)

    def __call__(self) -> SegmentChange:
        """Count the facts that the node gained and lost."""
        with self._comparing:
            if self._counted is None:
                counts = [difference.count() for difference in self._differences]
                self._counted = SegmentChange(
                    sum(count.gained for count in counts), sum(count.lost for count in counts)
                )
                self._differences = []
            return self._counted

    def look_before(self, changing: set[int]) -> None:
        """Count now if one of the compared tables is among the tables that change, given by identity."""
        if self._counted is None and not self._tables.isdisjoint(changing):
            self()


def _keys(rows: Ids) -> NDArray[np.int64]:
    """Return a hash of each row."""
    keys = np.zeros(len(rows), np.int64)
    for column in rows.T:
        keys = keys * 0x1F3D5B79 + column
    return keys


def _copy(table: Table) -> Table:
    return Table.of(table.rows.copy())


def _without(table: Table, others: list[OverlayTable]) -> Ids:
    """Return a copy of the rows that none of the other tables holds."""
    rows = table.rows.copy()
    for piece in others:
        if len(piece.table) and len(rows):
            rows = rows[~_is_in(piece, rows)]
    return rows


def _is_in(piece: OverlayTable, rows: Ids) -> Flags:
    # Hash sets of copies, because other threads may use the tables.
    present = _is_row_of(piece.table, rows)
    if piece.without is not None and len(piece.without) and present.any():
        present &= ~_is_row_of(piece.without, rows)
    return present


def _is_row_of(table: Table, rows: Ids) -> Flags:
    """Return a flag per row: whether a table holds it. The smaller of both gets a hash set."""
    if len(table) <= len(rows):
        return _copy(table).mask(rows)
    wanted = Table.union(rows.shape[1], [rows])
    if len(wanted) < len(rows):
        return _copy(table).mask(rows)
    present = np.zeros(len(rows), np.bool_)
    positions = wanted.positions(table.rows)
    present[positions[positions >= 0]] = True
    return present
