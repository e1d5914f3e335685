"""The next version while it is written: overlays of the old version's tables, and new segments.

The old version does not change before `commit`, so its readers see it whole meanwhile, and a change that
fails is undone by dropping its draft. Reading both versions is left to `read_view`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.embedded.storage.database import WINDOWS
from zodiacedge.engine.embedded.storage.overlay import Overlay
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation
from zodiacedge.engine.embedded.versions.changed_rows import ChangedRows
from zodiacedge.engine.embedded.versions.difference import TableDifference
from zodiacedge.engine.embedded.versions.ownership import split_changes
from zodiacedge.engine.embedded.versions.read_view import Gains, ReadView
from zodiacedge.engine.embedded.versions.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from zodiacedge.engine.embedded.storage.arrangement import Arrangement
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.registry import Registry


Delta = dict[Relation, "Ids"]
# The inserted and the deleted rows.
Net = tuple[dict[Relation, list["Ids"]], dict[Relation, list["Ids"]]]


class TableReader(Protocol):
    """An object that reads tables and outlives a change."""

    def retain(self, draft: Draft, *, old: bool) -> None:
        """Keep the parts that read tables of the version in force: the old version, or the next."""


class GaveUpError(Exception):
    """Maintaining a node takes longer than recomputing it."""


@dataclass(slots=True)
class Draft(ReadView):
    """The next version of a database, written beside the old version."""

    registry: Registry
    look: Callable[[int], None]
    """Called with the round at intervals, for limits, progress and waiting threads."""
    count: Callable[[int, int], None]
    """Called with the rounds of a node and the number of its facts so far."""
    clock: Stopwatch = field(default_factory=Stopwatch)
    """The deadline for maintaining the current node."""
    errors: bool = False
    """Whether an evaluation error occurred on the next version."""
    derivations: int = 0
    """The number of heads that delta queries derived since the caller last reset it."""
    changed: ChangedRows = field(default_factory=ChangedRows)
    """The rows inserted into and deleted from segments so far."""
    _readers: set[TableReader] = field(init=False, default_factory=set)
    _arranged: dict[int, tuple[Segment, dict[Hashable, Arrangement]]] = field(
        init=False, default_factory=dict
    )
    """The arrangements of segments in the next version, by the identity of the segment."""

    def watch(self, rounds: int) -> None:
        """Yield to other threads, check the limits, and give up a node past its deadline."""
        self.look(rounds)
        self.check_time()

    def check_time(self) -> None:
        """Give up the current node if its deadline has passed."""
        if self.clock.is_up():
            raise GaveUpError

    def add_reader(self, reader: TableReader, relations: Iterable[Relation]) -> None:
        """Notify a reader of relations when the change ends, if the change replaces tables of them."""
        if self._owners and any(relation in self._owners for relation in relations):
            self._readers.add(reader)

    def _set_owners(self, relation: Relation, owners: list[Segment]) -> None:
        self._owners[relation] = owners
        self._new_bases.pop(relation, None)
        self._forget_entries(relation)

    def _gains(self, segment: Segment) -> Gains:
        gains = self._in_use.get(id(segment))
        if gains is None:
            gains = self._in_use[id(segment)] = Gains(segment, {}, {})
        return gains

    def overlay(self, segment: Segment, relation: Relation) -> Overlay:
        """Return the overlay of a segment's table; create it if it is missing."""
        gains = self._gains(segment)
        overlay = gains.tables.get(relation)
        if overlay is not None:
            return overlay
        base = segment.tables.get(relation)
        overlay = gains.tables[relation] = _clean_overlay(segment, relation, base, relation.arity)
        self._altered.setdefault(relation, []).append(overlay)
        if base is None:
            self._set_owners(relation, [*self.owners(relation), segment])
        self._forget_entries(relation)
        return overlay

    def aggregate_overlay(self, segment: Segment, key: str) -> Overlay:
        """Return the overlay of an aggregate's rows; create it if it is missing."""
        gains = self._gains(segment)
        overlay = gains.aggregate_rows.get(key)
        if overlay is None:
            base = segment.aggregate_rows[key]
            overlay = gains.aggregate_rows[key] = _clean_overlay(segment, key, base, base.arity)
        return overlay

    def arranged(self, segment: Segment) -> dict[Hashable, Arrangement]:
        """Return the arrangements that a segment has in the next version, to be filled."""
        return self._arranged.setdefault(id(segment), (segment, {}))[1]

    def revert(self, segment: Segment) -> None:
        """Drop the overlays of a segment, and the arrangements that it would have."""
        self._arranged.pop(id(segment), None)
        gains = self._in_use.pop(id(segment), None)
        if gains is None:
            return
        for name, _ in gains.overlays():
            segment.overlays.pop(name, None)
        for relation, overlay in gains.tables.items():
            self._altered[relation] = [other for other in self._altered[relation] if other is not overlay]
            if overlay.base is None:
                others = [owner for owner in self._owners[relation] if owner is not segment]
                self._set_owners(relation, others)
            self._forget_entries(relation)

    def remove_segment(self, segment: Segment) -> None:
        """Remove a segment from the next version, but not its tables that a successor has."""
        for relation, table in segment.tables.items():
            others = [owner for owner in self.owners(relation) if owner is not segment]
            self._set_owners(relation, others)
            if not any(owner.tables.get(relation) is table for owner in others):
                self._removed.setdefault(relation, []).append(table)

    def add_successor(self, successor: Segment) -> None:
        """Add a segment with the tables of removed segments."""
        for relation in successor.tables:
            self._set_owners(relation, [*self.owners(relation), successor])

    def record_unowned(self, relation: Relation, table: Table) -> None:
        """Record the rows of a table that has lost its owner, so that the nodes that read it are visited."""
        self.changed.record_table(relation, table)

    def add_segment(self, segment: Segment) -> None:
        """Add a new segment; record its rows as changed."""
        self.add_unfilled(segment)
        self.record_filled(segment)

    def add_unfilled(self, segment: Segment) -> None:
        """Add a new segment whose tables are filled later."""
        self._fresh[id(segment)] = segment
        for relation in segment.tables:
            self._set_owners(relation, [*self.owners(relation), segment])

    def record_filled(self, segment: Segment) -> None:
        """Record the rows of a new segment as changed."""
        for relation, table in segment.tables.items():
            self.changed.record_table(relation, table)

    def replace(self, olds: Sequence[Segment], new: Segment) -> None:
        """Replace old segments, of which only the first is in the next version so far, by a new segment.

        The new segment may have tables of the old ones, if they have the same rows.
        """
        self.revert(olds[0])
        self.remove_segment(olds[0])
        self.add_unfilled(new)
        for relation in dict.fromkeys(r for segment in (*olds, new) for r in segment.tables):
            before = [old.tables[relation] for old in olds if old.tables.get(relation)]
            after = new.tables.get(relation)
            if len(before) == 1 and before[0] is after:
                continue
            if not before or not after:
                for table in before or ([after] if after else []):
                    self.changed.record_table(relation, table)
            else:
                self.changed.record_difference(relation, TableDifference.of_tables(before, after))

    def settle(self, segment: Segment) -> int:
        """Record the rows of a segment's overlays as changed; return by how many facts the segment grows."""
        grown = 0
        for relation, overlay in self.gains(segment)[0].items():
            plus, minus = len(overlay.plus), len(overlay.minus)
            grown += plus - minus
            if plus and minus:
                # No row is in both.
                self.changed.record(relation, np.concatenate((overlay.plus.rows, overlay.minus.rows)))
            elif plus or minus:
                self.changed.record(relation, (overlay.plus if plus else overlay.minus).rows)
        return grown

    def net(self) -> tuple[Net, dict[Relation, TableDifference]]:
        """Return copies of the inserted and deleted rows, and the deferred differences of other relations.

        A relation is deferred if whole tables of it were added, removed or replaced.
        """
        inserted: dict[Relation, list[Ids]] = {}
        deleted: dict[Relation, list[Ids]] = {}
        deferred: dict[Relation, TableDifference] = {}
        for relation in list(self.changed.relations()):
            if relation == WINDOWS:
                continue
            if self._is_deferred(relation):
                overlays = [o for o in self._altered.get(relation, ()) if o.base is not None]
                deferred[relation] = TableDifference(self.old(relation), self.new(relation), overlays)
                continue
            rows = self.changed.rows(relation)
            lost, gained = split_changes(rows, self.flags(relation, rows))
            for delta, side in ((inserted, gained), (deleted, lost)):
                if len(side):
                    delta[relation] = [side.copy()]
        return (inserted, deleted), deferred

    def _is_deferred(self, relation: Relation) -> bool:
        if self.changed.is_listed(relation):
            return False
        # Members of a class may also be in tables of all classes.
        return not relation.is_class or not (self.old(TYPED) or self.new(TYPED))

    def commit(self) -> None:
        """Apply the overlays to their tables, which no thread may read meanwhile."""
        self.store.notify_readers(self._tables_to_change())
        pending: list[tuple[Overlay, Table]] = []
        for gains in self._in_use.values():
            segment = gains.segment
            for name, overlay in gains.overlays():
                table = segment.table(name) if isinstance(name, Relation) else segment.aggregate_rows[name]
                # All memory is allocated before the first row is written: a commit must not fail half-way.
                table.make_ready(len(overlay.plus), deleting=bool(len(overlay.minus)))
                pending.append((overlay, table))
        if self.store.tracked:
            self._bump_revisions()
        reclamation = self.store.reclamation
        for overlay, table in pending:
            overlay.apply(table)
            reclamation.wrote(overlay.plus.rows, overlay.minus.rows)
        for segment, arrangements in self._arranged.values():
            segment.arrangements = arrangements
        for gains in self._in_use.values():
            if any(overlay.base is None for overlay in gains.tables.values()):
                self.store.show(gains.segment)
        # Owners of new relations have got their tables.
        self._new_bases.clear()
        for reader in self._readers:
            reader.retain(self, old=False)
        self.close()

    def _bump_revisions(self) -> None:
        for gains in self._in_use.values():
            for name, overlay in gains.overlays():
                if not len(overlay.plus) and not len(overlay.minus):
                    continue
                if name == TYPED:
                    gains.segment.revisions.bump_classes((overlay.plus.rows, overlay.minus.rows))
                else:
                    gains.segment.revisions.bump(name)

    def _tables_to_change(self) -> Iterator[Table]:
        for gains in self._in_use.values():
            for _, overlay in gains.overlays():
                if overlay.base is not None and (len(overlay.plus) or len(overlay.minus)):
                    yield overlay.base

    def discard(self) -> None:
        """Drop the change: its overlays, and the programs for tables that it would have added."""
        for reader in self._readers:
            reader.retain(self, old=True)
        for gains in self._in_use.values():
            for name, _ in gains.overlays():
                gains.segment.overlays.pop(name, None)
        self._in_use.clear()

    def segment_change(self, segment: Segment) -> SegmentChange:
        """Count the facts that a segment gains and loses so far."""
        gained = lost = 0
        for overlay in self.gains(segment)[0].values():
            gained += len(overlay.plus)
            lost += len(overlay.minus)
        return SegmentChange(gained, lost)

    def grown(self, segment: Segment) -> int:
        """Return by how many facts a segment grows or shrinks so far."""
        return sum(overlay.grown for overlay in self.gains(segment)[0].values())

    def close(self) -> None:
        """Clear the overlays, for the next change."""
        for gains in self._in_use.values():
            for name, overlay in gains.overlays():
                if overlay.base is None or not overlay.empty():
                    gains.segment.overlays.pop(name, None)
        self._in_use.clear()


def _clean_overlay(segment: Segment, name: Relation | str, base: Table | None, arity: int) -> Overlay:
    """Return an empty overlay of a table: the overlay of the last change, if it is clean."""
    overlay = segment.overlays.get(name)
    if overlay is None or not overlay.is_clean(base):
        overlay = segment.overlays[name] = Overlay(base, arity)
    return overlay
