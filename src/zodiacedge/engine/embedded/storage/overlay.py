"""What a table gains and loses in a change that is under way.

Overlays live as long as the segment whose tables they are for, empty between changes, so that what reads
them need not be assembled anew for each change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.types import Ids


# An overlay that took more rows is thrown away: emptying it would cost more than a new one.
_MOST_SLOTS = 8192


class OverlayTable(NamedTuple):
    """A table, without the rows that another one holds."""

    table: Table
    without: Table | None = None

    @property
    def rows(self) -> Ids:
        """The rows that are left."""
        rows = self.table.rows
        if self.without is None or not len(self.without):
            return rows
        return self.without.sift(rows, present=False)


class Overlay:
    """What a table gains and loses; rows it gains are not in it, rows it loses are."""

    __slots__ = ("base", "minus", "plus")

    def __init__(self, base: Table | None, arity: int) -> None:
        """Start with nothing, on a table or, where there is none yet, on none."""
        self.base = base
        self.plus = Table(arity)
        self.minus = Table(arity)
        self.plus.need_rows()
        self.minus.need_rows()

    def pieces(self, *, empty: bool = False) -> list[OverlayTable]:
        """Return where the rows of the next version are; tables without rows too, if asked for."""
        found: list[OverlayTable] = []
        if self.base is not None and (empty or len(self.base)):
            found.append(OverlayTable(self.base, self.minus if empty or len(self.minus) else None))
        if empty or len(self.plus):
            found.append(OverlayTable(self.plus))
        return found

    def add(self, rows: Ids) -> None:
        """Add rows that are not there."""
        if len(self.minus):
            back = self.minus.mask(rows)
            self.minus.delete(rows[back])
            rows = rows[~back]
        if len(rows):
            self.plus.insert(rows)

    def remove(self, rows: Ids) -> None:
        """Remove rows that are there."""
        if len(self.plus):
            young = self.plus.mask(rows)
            self.plus.delete(rows[young])
            rows = rows[~young]
        if len(rows):
            self.minus.insert(rows)

    def is_clean(self, base: Table | None) -> bool:
        """Whether this is an overlay of a table that no other change left something in."""
        return self.base is base and not len(self.plus) and not len(self.minus)

    @property
    def grown(self) -> int:
        """By how many rows the table grows or shrinks."""
        return len(self.plus) - len(self.minus)

    def apply(self, table: Table) -> None:
        """Bring a table to the next version."""
        if len(self.minus):
            table.delete(self.minus.rows)
        if len(self.plus):
            table.insert(self.plus.rows)

    def empty(self) -> bool:
        """Drop all rows; return whether the overlay may serve again."""
        if self.plus.slot_count + self.minus.slot_count > _MOST_SLOTS:
            return False
        for table in (self.plus, self.minus):
            if len(table):
                table.clear()
        return True
