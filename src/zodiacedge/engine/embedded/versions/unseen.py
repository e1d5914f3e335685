"""The tables of one relation before and after a change, to be compared later.

Tables that stay are altered when the change is committed. From then on the old version is told by what they
hold now, what they gained, and what they lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.overlay import OverlayTable
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.overlay import Overlay
    from zodiacedge.engine.embedded.types import Ids


@dataclass(slots=True)
class Unseen:
    """Where a relation was and is, and the tables among whose rows those are that came or went."""

    olds: list[OverlayTable]
    news: list[OverlayTable]
    coming: list[Table]
    going: list[Table]
    overlays: list[Overlay]

    def commit(self) -> None:
        """Take note that what stands over tables will be part of them now."""
        for overlay in self.overlays:
            base, plus, minus = overlay.base, _copy(overlay.plus), _copy(overlay.minus)
            if base is None:
                continue
            self.olds = [piece for piece in self.olds if piece.table is not base]
            self.olds += [OverlayTable(base, plus), OverlayTable(minus)]
            over = (base, overlay.plus)
            self.news = [piece for piece in self.news if not any(piece.table is one for one in over)]
            self.news.append(OverlayTable(base))
            self.coming = [plus if table is overlay.plus else table for table in self.coming]
            self.going = [minus if table is overlay.minus else table for table in self.going]
        self.overlays = []

    def tables(self) -> set[int]:
        """Return the tables to look at, by identity."""
        pieces = (piece.table for piece in (*self.olds, *self.news))
        return {id(table) for table in (*pieces, *self.coming, *self.going)}

    def compare(self) -> tuple[list[Ids], list[Ids]]:
        """Return the rows that came and those that went; rows may repeat."""
        came = [_without(table, self.olds) for table in self.coming]
        went = [_without(table, self.news) for table in self.going]
        return [rows for rows in came if len(rows)], [rows for rows in went if len(rows)]


def _copy(table: Table) -> Table:
    return Table.of(table.rows.copy())


def _without(table: Table, others: list[OverlayTable]) -> Ids:
    """Return a copy of the rows that are in none of some pieces."""
    rows = table.rows.copy()
    for piece in others:
        if len(piece.table) and len(rows):
            rows = rows[~_in(piece, rows)]
    return rows


def _in(piece: OverlayTable, rows: Ids) -> NDArray[np.bool_]:
    # Row-sets of copies: other threads may work with the tables themselves.
    found = _found(piece.table, rows)
    if piece.without is not None and len(piece.without) and found.any():
        found &= ~_found(piece.without, rows)
    return found


def _found(table: Table, rows: Ids) -> NDArray[np.bool_]:
    """Tell of each row whether a table has it; the smaller of both is the one that gets a row-set."""
    if len(table) <= len(rows):
        return _copy(table).mask(rows)
    found = np.zeros(len(rows), np.bool_)
    asked = Table(rows.shape[1])
    asked.insert(rows)
    if len(asked) < len(rows):
        return _copy(table).mask(rows)
    places = asked.places(table.rows)
    found[places[places >= 0]] = True
    return found
