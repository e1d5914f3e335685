"""What differs between tables before and after a change: estimated first, compared on demand.

A difference may be larger than all the work of the change, and most reports are only glanced at. So the
tables are kept, and compared when the rows or their number are asked for, at the latest before a later change
alters one of the tables.
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
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Flags, Ids


# So many rows tell about how much two tables have in common.
_SAMPLE = 128
# Where sizes differ by one in so many, they tell enough.
_PLAIN = 4


class TableDifference:
    """The tables of one relation before and after a change."""

    def __init__(
        self, before: Sequence[OverlayTable], after: Sequence[OverlayTable], overlays: Sequence[Overlay] = ()
    ) -> None:
        """Take tables, and the overlays that are applied to tables of both versions when it is committed."""
        old, new = {id(piece.table) for piece in before}, {id(piece.table) for piece in after}
        self._before, self._after = list(before), list(after)
        self._overlays = list(overlays)
        # The tables that hold all rows which were inserted or deleted.
        self._inserted = [piece.table for piece in after if id(piece.table) not in old]
        self._deleted = [piece.table for piece in before if id(piece.table) not in new]
        self._deleted += [overlay.minus for overlay in overlays if len(overlay.minus)]

    @classmethod
    def of_tables(cls, before: Iterable[Table | None], after: Table | None) -> TableDifference:
        """Return the difference between the tables of an owner and the one that replaces them."""
        olds = [OverlayTable(table) for table in before if table]
        return cls(olds, [OverlayTable(after)] if after else [])

    @cached_property
    def estimate(self) -> int:
        """About how many rows tables without overlays do not have in common."""
        old, new = sum(map(len, self._deleted)), sum(map(len, self._inserted))
        if abs(old - new) * _PLAIN >= max(old, new):
            return abs(old - new)
        (table,) = self._inserted
        sample = np.sort(_keys(table.rows[:: max(new // _SAMPLE, 1)]))
        present = np.zeros(len(sample), np.bool_)
        for table in self._deleted:
            # One pass over the rows, without a hash set that may never be needed.
            keys = _keys(table.rows)
            places = np.minimum(np.searchsorted(sample, keys), len(sample) - 1)
            present[places[sample[places] == keys]] = True
        common = int(present.mean() * new)
        return new - common + max(old - common, 0)

    def changed_rows(self) -> tuple[list[Ids], list[Ids]]:
        """Return the rows deleted and those inserted: by hash sets of the old tables, without overlays."""
        if not self._deleted or not self._inserted:
            return [table.rows for table in self._deleted], [table.rows for table in self._inserted]
        (new,) = self._inserted
        deleted, rest = [], new.rows
        for old in self._deleted:
            places = old.positions(rest)
            common = places >= 0
            met = np.zeros(len(old), np.bool_)
            met[places[common]] = True
            rows = old.rows[~met]
            deleted.append(new.filter(rows, present=False) if len(self._deleted) > 1 else rows)
            rest = rest[~common]
        return deleted, [rest]

    def commit(self) -> None:
        """Replace overlays by copies: they are about to be applied to their tables and emptied."""
        for overlay in self._overlays:
            base, plus, minus = overlay.base, _copy(overlay.plus), _copy(overlay.minus)
            if base is None:
                continue
            self._before = [piece for piece in self._before if piece.table is not base]
            self._before += [OverlayTable(base, plus), OverlayTable(minus)]
            over = (base, overlay.plus)
            self._after = [piece for piece in self._after if not any(piece.table is one for one in over)]
            self._after.append(OverlayTable(base))
            self._inserted = [plus if table is overlay.plus else table for table in self._inserted]
            self._deleted = [minus if table is overlay.minus else table for table in self._deleted]
        self._overlays = []

    def tables(self) -> set[int]:
        """Return the tables to compare, by identity."""
        pieces = (piece.table for piece in (*self._before, *self._after))
        return {id(table) for table in (*pieces, *self._inserted, *self._deleted)}

    def compare(self) -> tuple[list[Ids], list[Ids]]:
        """Return copies of the rows inserted and of those deleted, from any thread; rows may repeat."""
        inserted = [_without(table, self._before) for table in self._inserted]
        deleted = [_without(table, self._after) for table in self._deleted]
        return [rows for rows in inserted if len(rows)], [rows for rows in deleted if len(rows)]

    def count(self) -> SegmentChange:
        """Count the rows inserted and those deleted, from any thread: tables without overlays."""
        new = sum(map(len, self._inserted))
        if not self._deleted:
            return SegmentChange(new, 0)
        # A table of its own: other threads may work with these.
        old = Table.union(self._deleted[0].arity, (table.rows for table in self._deleted))
        common = sum(old.count_present(table.rows) for table in self._inserted)
        return SegmentChange(new - common, len(old) - common)


class SegmentDifference:
    """Old segments of a node and the new one: by how many facts they differ, counted when called."""

    def __init__(self, store: Database, olds: Sequence[Segment], new: Segment) -> None:
        """Take segments; the store announces changes of their tables."""
        relations = dict.fromkeys(relation for segment in (*olds, new) for relation in segment.tables)
        self._relations = [
            TableDifference.of_tables([old.tables.get(one) for old in olds], new.tables.get(one))
            for one in relations
        ]
        self._tables = frozenset().union(*(one.tables() for one in self._relations))
        self._counted: SegmentChange | None = None
        self._comparing = threading.Lock()
        store.add_reader(self)

    def __call__(self) -> SegmentChange:
        """Count the facts that the node gained and those that it lost."""
        with self._comparing:
            if self._counted is None:
                counts = [one.count() for one in self._relations]
                self._counted = SegmentChange(
                    sum(count.gained for count in counts), sum(count.lost for count in counts)
                )
                self._relations = []
            return self._counted

    def look_before(self, changing: set[int]) -> None:
        """Count now, if a table that is about to change, by identity, is among those to compare."""
        if self._counted is None and not self._tables.isdisjoint(changing):
            self()


def _keys(rows: Ids) -> NDArray[np.int64]:
    """Return a number for each row; equal rows have equal ones, and hardly any others."""
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
    # Row-sets of copies: other threads may work with the tables themselves.
    present = _is_row_of(piece.table, rows)
    if piece.without is not None and len(piece.without) and present.any():
        present &= ~_is_row_of(piece.without, rows)
    return present


def _is_row_of(table: Table, rows: Ids) -> Flags:
    """Tell of each row whether a table holds it; the smaller of both gets a hash set."""
    if len(table) <= len(rows):
        return _copy(table).mask(rows)
    wanted = Table.union(rows.shape[1], [rows])
    if len(wanted) < len(rows):
        return _copy(table).mask(rows)
    present = np.zeros(len(rows), np.bool_)
    places = wanted.positions(table.rows)
    present[places[places >= 0]] = True
    return present
