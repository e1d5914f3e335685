"""What became visible in a commit, and what is visible no more: found when somebody asks.

Where whole tables came and went the difference may be larger than all the work of the change, and most
reports are only glanced at. So the tables are kept, and compared when somebody asks, or at the latest before
a later change alters one of them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.storage.table import Table, count_distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.difference import TableDifference
    from zodiacedge.engine.embedded.versions.draft import Net
    from zodiacedge.language.ast import Fact, Predicate


class EmbeddedNetChange:
    """The net change of one commit."""

    def __init__(self, store: Database, found: Net, later: dict[Relation, TableDifference]) -> None:
        """Take what was found, and what is to be looked at."""
        self._store = store
        self._came, self._went = found
        self._later = later
        self._looking = threading.Lock()
        # The tables to look at, by identity.
        self._waiting: frozenset[int] | None = None
        self._counts: tuple[dict[Predicate, int], dict[Predicate, int]] | None = None
        self.keep()

    def keep(self) -> None:
        """Be told before tables change that are to be looked at, if there are some."""
        if self._later:
            self._store.add_reader(self)

    def commit(self) -> None:
        """Take note that the change is about to be committed."""
        self._waiting = None
        for one in self._later.values():
            one.commit()

    def look_before(self, changing: set[int]) -> None:
        """Compare tables now that will be others soon."""
        if not self._later:
            return
        with self._looking:
            if self._waiting is None:
                self._waiting = frozenset().union(*(one.tables() for one in self._later.values()))
            if self._waiting.isdisjoint(changing):
                return
            self._waiting = None
            for relation in [r for r, one in self._later.items() if not changing.isdisjoint(one.tables())]:
                self._compare(relation)

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the facts that came and those that went, without listing them."""
        came, went = self.rows()
        if self._counts is None:
            self._counts = self._counted(came), self._counted(went)
        return self._counts

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The facts that came, and those that went; of the predicates that are wanted, if not of all."""
        came, went = (
            frozenset(
                fact
                for relation, pieces in side.items()
                if wanted is None or wanted(self._store.predicate(relation))
                for rows in pieces
                for fact in self._store.facts_of(relation, rows)
            )
            for side in self.rows()
        )
        return came, went

    def rows(self) -> Net:
        """Return the rows that came and those that went; those of one relation may repeat."""
        with self._looking:
            for relation in list(self._later):
                self._compare(relation)
        return self._came, self._went

    def _compare(self, relation: Relation) -> None:
        came, went = self._later[relation].compare()
        if came:
            self._came[relation] = came
        if went:
            self._went[relation] = went
        del self._later[relation]

    def _counted(self, side: Mapping[Relation, list[Ids]]) -> dict[Predicate, int]:
        counts: dict[Predicate, int] = {}
        for relation, pieces in side.items():
            predicate = self._store.predicate(relation)
            counts[predicate] = counts.get(predicate, 0) + count_distinct(list(map(Table.of, pieces)))
        return counts
