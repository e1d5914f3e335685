"""The rows that an owner gained or lost in a change that is under way, by relation.

Other owners do not matter here: a row that two owners hold and one loses is noted all the same. Rows of a
class are kept by class, whichever table holds them.
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
    """The rows noted so far; those of whole tables and differences are listed on demand."""

    news: list[Relation] = field(default_factory=list)
    """The relations of the rows noted, in order, until the reader clears the list."""
    _pieces: dict[Relation, list[Ids]] = field(default_factory=dict)
    """Rows; those of one piece are distinct, those of two need not be."""
    _whole: dict[Relation, list[Table]] = field(default_factory=dict)
    _differences: dict[Relation, list[TableDifference]] = field(default_factory=dict)

    def note(self, relation: Relation, rows: Ids) -> None:
        """Note rows; they are copied."""
        if not len(rows):
            return
        if relation != TYPED:
            self._note_class(relation, rows.copy())
            return
        for member, own in by_class(relation, rows):
            self._note_class(member, own)

    def _note_class(self, relation: Relation, rows: Ids) -> None:
        pieces = self._pieces.get(relation)
        if pieces is None:
            self._pieces[relation] = [rows]
        else:
            pieces.append(rows)
        self.news.append(relation)

    def note_whole(self, relation: Relation, table: Table) -> None:
        """Note all rows of a table."""
        if not len(table):
            return
        if relation == TYPED:
            self.note(relation, table.rows)
        else:
            self._whole.setdefault(relation, []).append(table)
            self.news.append(relation)

    def note_difference(self, relation: Relation, difference: TableDifference) -> None:
        """Note the rows in which tables and those that replace them differ."""
        if relation == TYPED:
            for pieces in difference.changed_rows():
                for rows in pieces:
                    self.note(relation, rows)
        else:
            self._differences.setdefault(relation, []).append(difference)
            self.news.append(relation)

    def relations(self) -> Iterable[Relation]:
        """Return the relations of all rows noted."""
        if not self._whole and not self._differences:
            return self._pieces
        return {**self._pieces, **self._whole, **self._differences}

    def __contains__(self, relation: Relation) -> bool:
        """Whether rows of a relation were noted."""
        return relation in self._pieces or not self.is_listed(relation)

    def is_listed(self, relation: Relation) -> bool:
        """Whether rows of a relation were noted as rows only, not as tables or differences."""
        return relation not in self._whole and relation not in self._differences

    def rows(self, relation: Relation) -> Ids:
        """Return the rows of a relation that were noted, each once."""
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
        """Estimate how many rows of a relation were noted, without listing them."""
        rows = sum(map(len, self._pieces.get(relation, ())))
        rows += sum(map(len, self._whole.get(relation, ())))
        return rows + sum(difference.estimate for difference in self._differences.get(relation, ()))
