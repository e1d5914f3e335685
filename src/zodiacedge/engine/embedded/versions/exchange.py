"""What a node had, and what came in its place: by how many facts they differ, counted when somebody asks.

Most reports are only glanced at, so the tables are kept, and compared at the latest before a later change
alters one of them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.embedded.storage.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.segment import Segment


class Exchange:
    """Old segments of a node, and the new one."""

    def __init__(self, store: Database, olds: Sequence[Segment], new: Segment) -> None:
        """Take segments; their tables must be as they are now when they are compared."""
        self._pairs = [
            ([one.tables[relation] for one in olds if one.tables.get(relation)], new.tables.get(relation))
            for relation in dict.fromkeys(r for one in (*olds, new) for r in one.tables)
        ]
        self._tables = frozenset(
            id(table) for olds, new in self._pairs for table in (*olds, new) if table is not None
        )
        self._counted: SegmentChange | None = None
        self._looking = threading.Lock()
        store.add_reader(self)

    def __call__(self) -> SegmentChange:
        """Count what came and what went."""
        with self._looking:
            if self._counted is None:
                found = list(self._differences())
                self._counted = SegmentChange(
                    sum(one.gained for one in found), sum(one.lost for one in found)
                )
                self._pairs = []
            return self._counted

    def look_before(self, changing: set[int]) -> None:
        """Count now, if some tables, by identity, are among those to compare."""
        if self._counted is None and not self._tables.isdisjoint(changing):
            self()

    def _differences(self) -> Iterator[SegmentChange]:
        for olds, new in self._pairs:
            if not olds:
                yield SegmentChange(0 if new is None else len(new), 0)
                continue
            # A table of its own: other threads may work with these.
            there = Table(olds[0].arity)
            for table in olds:
                there.insert(table.rows)
            common = 0 if new is None else there.count_present(new.rows)
            yield SegmentChange((0 if new is None else len(new)) - common, len(there) - common)
