"""A segment: the tables of one hyper-node, or of the explicit facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, too_wide
from zodiacedge.engine.embedded.storage.revisions import Revisions, equal_classes, equal_rows
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from zodiacedge.engine.embedded.storage.arrangement import Arrangement
    from zodiacedge.engine.embedded.storage.overlay import Overlay


@dataclass(slots=True)
class Segment:
    """The tables that one owner (a hyper-node, or the explicit facts) fills; the paper's DataStore.

    `aggregate_rows` are the rows of the aggregates of a node's rules, by rule key: groups, then results.
    `overlays` are the changes under way of both kinds of tables; `seconds` is the time of the last evaluation
    from scratch, `multiplicity` the number of derivations per fact in it, and `tries` the number of times in
    a row that maintaining the segment was given up.
    `arrangements` are those of a node's bindings, by their order, if it is maintained with them.
    `revisions` tell which tables changed, if the database is tracked.
    """

    tables: dict[Relation, Table] = field(default_factory=dict)
    aggregate_rows: dict[str, Table] = field(default_factory=dict)
    overlays: dict[Relation | str, Overlay] = field(default_factory=dict)
    arrangements: dict[Hashable, Arrangement] = field(default_factory=dict)
    seconds: float = 0.0
    multiplicity: float = 1.0
    tries: int = 0
    revisions: Revisions = field(default_factory=Revisions)

    def __len__(self) -> int:
        """Return the number of facts."""
        return sum(len(table) for table in self.tables.values())

    def every_table(self) -> Iterator[Table]:
        """Yield all tables whose rows have ids."""
        yield from self.tables.values()
        yield from self.aggregate_rows.values()

    def table(self, relation: Relation) -> Table:
        """Return the table of a relation; create it if it is missing."""
        table = self.tables.get(relation)
        if table is None:
            if relation.arity > L.MOST_COLUMNS:
                raise too_wide(relation.name, relation.arity, L.MOST_COLUMNS)
            table = self.tables[relation] = Table(relation.arity)
        return table

    def keep_revisions(self, old: Segment) -> None:
        """Keep the revisions of tables that have the same rows as those of the segment this one replaces."""
        pairs: list[tuple[Relation | str, Table | None, Table]] = [
            (relation, old.tables.get(relation), table) for relation, table in self.tables.items()
        ]
        pairs += [(key, old.aggregate_rows.get(key), rows) for key, rows in self.aggregate_rows.items()]
        for name, before, after in pairs:
            if before is not None and name == TYPED:
                self.revisions.keep(old.revisions, equal_classes(before, after))
            elif before is not None and equal_rows(before, after):
                self.revisions.keep(old.revisions, [name])
