"""Overlays: the rows that a change under way inserts into a table and deletes from it.

An overlay lives as long as the segment of its table, empty between changes, so that programs that read it
need not be assembled again for each change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.types import Ids


# An overlay that grew larger is dropped: clearing it would cost more than a new overlay.
_MOST_SLOTS = 8192


class OverlayTable(NamedTuple):
    """A table without the rows of another table."""

    table: Table
    without: Table | None = None

    @property
    def rows(self) -> Ids:
        """The remaining rows."""
        rows = self.table.rows
        if self.without is None or not len(self.without):
            return rows
        return self.without.filter(rows, present=False)


class Overlay:
    """Rows to insert into a table, which are not in it, and rows to delete, which are."""

    __slots__ = ("base", "minus", "plus")

    def __init__(self, base: Table | None, arity: int) -> None:
        """Start empty, on a table, or on None where the relation has no table yet."""
        self.base = base
        self.plus = Table(arity)
        self.minus = Table(arity)
        self.plus.ensure_hash_set()
        self.minus.ensure_hash_set()

    def pieces(self, *, empty: bool = False) -> list[OverlayTable]:
        """Return the tables with the rows of the next version, empty tables included on request."""
        tables: list[OverlayTable] = []
        if self.base is not None and (empty or len(self.base)):
            tables.append(OverlayTable(self.base, self.minus if empty or len(self.minus) else None))
        if empty or len(self.plus):
            tables.append(OverlayTable(self.plus))
        return tables

    def add(self, rows: Ids) -> None:
        """Insert rows that are not in the next version."""
        if len(self.minus):
            deleted = self.minus.mask(rows)
            self.minus.delete(rows[deleted])
            rows = rows[~deleted]
        if len(rows):
            self.plus.insert(rows)

    def remove(self, rows: Ids) -> None:
        """Delete rows that are in the next version."""
        if len(self.plus):
            inserted = self.plus.mask(rows)
            self.plus.delete(rows[inserted])
            rows = rows[~inserted]
        if len(rows):
            self.minus.insert(rows)

    def is_clean(self, base: Table | None) -> bool:
        """Whether this is an empty overlay of this table."""
        return self.base is base and not len(self.plus) and not len(self.minus)

    @property
    def grown(self) -> int:
        """The number of rows that the table grows by; negative where it shrinks."""
        return len(self.plus) - len(self.minus)

    def apply(self, table: Table) -> None:
        """Apply the change to a table."""
        if len(self.minus):
            table.delete(self.minus.rows)
        if len(self.plus):
            table.insert(self.plus.rows)

    def empty(self) -> bool:
        """Drop all rows; return whether the overlay may be used again."""
        if self.plus.slot_count + self.minus.slot_count > _MOST_SLOTS:
            return False
        for table in (self.plus, self.minus):
            if len(table):
                table.clear()
        return True
