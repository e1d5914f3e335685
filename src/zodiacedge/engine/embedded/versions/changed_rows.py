"""The rows that were inserted into or deleted from a segment in a change under way, by relation.

Other owners do not matter: a row that two owners hold is recorded when one of them loses it. Rows of a class
are kept by class, whichever table holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, by_class
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.difference import TableDifference


@dataclass(slots=True)
class ChangedRows:
    """The changed rows so far; rows of whole tables and of differences are listed on demand."""

    unread: list[Relation] = field(default_factory=list)
    """The relations of the recorded rows, in order, until the reader clears the list."""
    _pieces: dict[Relation, list[Ids]] = field(default_factory=dict)
    """Arrays of rows; rows are distinct within an array, not across arrays."""
    _whole: dict[Relation, list[Table]] = field(default_factory=dict)
    _differences: dict[Relation, list[TableDifference]] = field(default_factory=dict)

    def record(self, relation: Relation, rows: Ids) -> None:
        """Record copies of changed rows."""
        if not len(rows):
            return
        if relation != TYPED:
            self._record_rows(relation, rows.copy())
            return
        for member, own in by_class(relation, rows):
            self._record_rows(member, own)

    def _record_rows(self, relation: Relation, rows: Ids) -> None:
        pieces = self._pieces.get(relation)
        if pieces is None:
            self._pieces[relation] = [rows]
        else:
            pieces.append(rows)
        self.unread.append(relation)

    def record_table(self, relation: Relation, table: Table) -> None:
        """Record all rows of a table as changed."""
        if not len(table):
            return
        if relation == TYPED:
            self.record(relation, table.rows)
        else:
            self._whole.setdefault(relation, []).append(table)
            self.unread.append(relation)

    def record_difference(self, relation: Relation, difference: TableDifference) -> None:
        """Record the rows in which tables and their replacements differ."""
        if relation == TYPED:
            for pieces in difference.changed_rows():
                for rows in pieces:
                    self.record(relation, rows)
        else:
            self._differences.setdefault(relation, []).append(difference)
            self.unread.append(relation)

    def relations(self) -> Iterable[Relation]:
        """Return the relations of all changed rows."""
        if not self._whole and not self._differences:
            return self._pieces
        return {**self._pieces, **self._whole, **self._differences}

    def __contains__(self, relation: Relation) -> bool:
        """Whether a relation has changed rows."""
        return relation in self._pieces or not self.is_listed(relation)

    def is_listed(self, relation: Relation) -> bool:
        """Whether the changed rows of a relation were recorded as rows only, not as tables or differences."""
        return relation not in self._whole and relation not in self._differences

    def is_quickly_listed(self, relation: Relation) -> bool:
        """Whether the changed rows of a relation can be listed without a comparison of tables."""
        return relation not in self._differences

    def rows(self, relation: Relation) -> Ids:
        """Return the changed rows of a relation, each once."""
        pieces = self._pieces.get(relation, [])
        if not self.is_listed(relation):
            pieces += [table.rows for table in self._whole.pop(relation, ())]
            for difference in self._differences.pop(relation, ()):
                for side in difference.changed_rows():
                    pieces += side
        if len(pieces) != 1:
            pieces = [Table.union(relation.arity, pieces).rows]
        self._pieces[relation] = pieces
        return pieces[0]

    def count(self, relation: Relation) -> int:
        """Estimate the number of changed rows of a relation, without listing them."""
        rows = sum(map(len, self._pieces.get(relation, ())))
        rows += sum(map(len, self._whole.get(relation, ())))
        return rows + sum(difference.estimate for difference in self._differences.get(relation, ()))
