"""The rows that some owner gained or lost in a change that is under way, by relation.

Nobody else's having a row is looked at here: a row that two owners have and one loses is touched all the
same. Rows of a class are kept by class, whichever table holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, by_class
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.pair import Pair


@dataclass(slots=True)
class ChangedRows:
    """What was noted so far; whole tables are listed, and pairs compared, when somebody asks."""

    news: list[Relation] = field(default_factory=list)
    """The relations of what was noted, in order, until somebody takes them away."""
    _pieces: dict[Relation, list[Ids]] = field(default_factory=dict)
    """Rows; those of one piece are distinct, those of two need not be."""
    _whole: dict[Relation, list[Table]] = field(default_factory=dict)
    _pairs: dict[Relation, list[Pair]] = field(default_factory=dict)
    """Tables and what came in their place."""

    def note(self, relation: Relation, rows: Ids) -> None:
        """Note rows; they are copied."""
        if not len(rows):
            return
        if relation != TYPED:
            self._note_class(relation, rows.copy())
            return
        for one, given in by_class(relation, rows):
            self._note_class(one, given)

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

    def note_pair(self, relation: Relation, pair: Pair) -> None:
        """Note the rows in which a table and what came in its place differ."""
        if relation == TYPED:
            for rows in pair.differing():
                self.note(relation, rows)
        else:
            self._pairs.setdefault(relation, []).append(pair)
            self.news.append(relation)

    def relations(self) -> Iterable[Relation]:
        """Return the relations of all that was noted."""
        if not self._whole and not self._pairs:
            return self._pieces
        return {**self._pieces, **self._whole, **self._pairs}

    def __contains__(self, relation: Relation) -> bool:
        """Whether something of a relation was noted."""
        return relation in self._pieces or relation in self._whole or relation in self._pairs

    def is_listed(self, relation: Relation) -> bool:
        """Whether all that was noted of a relation are rows."""
        return relation not in self._whole and relation not in self._pairs

    def rows(self, relation: Relation) -> Ids:
        """Return the rows of a relation that were noted, each once."""
        pieces = self._pieces.get(relation, [])
        if not self.is_listed(relation):
            pieces += [table.rows for table in self._whole.pop(relation, ())]
            pieces += [rows for pair in self._pairs.pop(relation, ()) for rows in pair.differing()]
        if len(pieces) != 1:
            union = Table(relation.arity)
            for rows in pieces:
                union.insert(rows)
            pieces = [union.rows]
        self._pieces[relation] = pieces
        return pieces[0]

    def count(self, relation: Relation) -> int:
        """Return about how many rows of a relation were noted, without listing them."""
        rows = sum(map(len, self._pieces.get(relation, ())))
        rows += sum(map(len, self._whole.get(relation, ())))
        return rows + sum(pair.about for pair in self._pairs.get(relation, ()))
