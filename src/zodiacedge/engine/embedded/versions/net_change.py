"""The net change of a commit: the facts that became visible and those that are visible no more.

Where whole tables were replaced, the comparison may cost more than the change itself. It is deferred until a
caller reads the net change, or until a later change is about to write to one of the tables.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.storage.table import Table, count_distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.difference import TableDifference
    from zodiacedge.engine.embedded.versions.draft import Net
    from zodiacedge.language.ast import Fact, Predicate


class EmbeddedNetChange:
    """The net change of one commit."""

    def __init__(self, store: Database, rows: Net, deferred: dict[Relation, TableDifference]) -> None:
        """Take the inserted and deleted rows, and the deferred differences of other relations."""
        self._store = store
        self._inserted, self._deleted = rows
        self._deferred = deferred
        self._comparing = threading.Lock()
        # The tables of the deferred differences, by identity.
        self._tables: frozenset[int] | None = None
        store.terms.add_holder(self)
        self._counts: tuple[dict[Predicate, int], dict[Predicate, int]] | None = None
        self.keep()

    def keep(self) -> None:
        """Ask the store to notify before tables of deferred differences change."""
        if self._deferred:
            self._store.add_reader(self)

    def held_ids(self) -> Iterator[Ids]:
        """Yield the ids of the rows, and of all rows that are still to be compared."""
        with self._comparing:
            for side in (self._inserted, self._deleted):
                for relation, pieces in side.items():
                    yield np.array([relation.member_of], np.int32)
                    yield from pieces
            for relation, difference in self._deferred.items():
                yield np.array([relation.member_of], np.int32)
                yield from difference.rows()

    def commit(self) -> None:
        """Prepare the deferred differences for the commit of the change."""
        self._tables = None
        for difference in self._deferred.values():
            difference.commit()

    def look_before(self, changing: set[int]) -> None:
        """Compare the deferred relations that have one of the tables that change, given by identity."""
        if not self._deferred:
            return
        with self._comparing:
            if self._tables is None:
                self._tables = frozenset().union(*(d.tables() for d in self._deferred.values()))
            if self._tables.isdisjoint(changing):
                return
            self._tables = None
            for relation in [r for r, d in self._deferred.items() if not changing.isdisjoint(d.tables())]:
                self._compare(relation)

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the inserted and the deleted facts, without listing them."""
        inserted, deleted = self.rows()
        if self._counts is None:
            self._counts = self._counted(inserted), self._counted(deleted)
        return self._counts

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the inserted and the deleted facts, of all predicates or of the wanted ones."""
        inserted, deleted = (
            frozenset(
                fact
                for relation, pieces in side.items()
                if wanted is None or wanted(self._store.predicate(relation))
                for rows in pieces
                for fact in self._store.facts_of(relation, rows)
            )
            for side in self.rows()
        )
        return inserted, deleted

    def rows(self) -> Net:
        """Return the inserted and the deleted rows; the rows of a relation may repeat."""
        with self._comparing:
            for relation in list(self._deferred):
                self._compare(relation)
        return self._inserted, self._deleted

    def _compare(self, relation: Relation) -> None:
        inserted, deleted = self._deferred[relation].compare()
        if inserted:
            self._inserted[relation] = inserted
        if deleted:
            self._deleted[relation] = deleted
        del self._deferred[relation]

    def _counted(self, side: Mapping[Relation, list[Ids]]) -> dict[Predicate, int]:
        counts: dict[Predicate, int] = {}
        for relation, pieces in side.items():
            predicate = self._store.predicate(relation)
            counts[predicate] = counts.get(predicate, 0) + count_distinct(list(map(Table.of, pieces)))
        return counts
