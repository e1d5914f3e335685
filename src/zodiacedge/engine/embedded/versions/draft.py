"""The next version while it is written: what each table of the old version gains and loses.

Nothing of the old version changes before `commit`, so its readers see it whole meanwhile, and a change that
fails is forgotten by dropping its draft. Reading both versions is the subject of `read_view`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.embedded.storage.overlay import Overlay
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation
from zodiacedge.engine.embedded.versions.changed_rows import ChangedRows
from zodiacedge.engine.embedded.versions.clock import Clock
from zodiacedge.engine.embedded.versions.difference import TableDifference
from zodiacedge.engine.embedded.versions.ownership import split_changes
from zodiacedge.engine.embedded.versions.read_view import Gains, ReadView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.registry import Registry


Delta = dict[Relation, "Ids"]
# Rows that came, and rows that went.
Net = tuple[dict[Relation, list["Ids"]], dict[Relation, list["Ids"]]]


class TableReader(Protocol):
    """A reader of tables that lives longer than a change."""

    def retain(self, draft: Draft, *, old: bool) -> None:
        """Keep only what reads tables of the old version, which stays, or of the next, which is in force."""


class GaveUpError(Exception):
    """Evaluating a node anew is quicker than to go on maintaining it."""


@dataclass(slots=True)
class Draft(ReadView):
    """The next version of a database, written beside the old one."""

    registry: Registry
    look: Callable[[int], None]
    """Called now and then while something runs."""
    count: Callable[[int, int], None]
    """Called with the rounds of a node, and by how many facts it grew so far."""
    clock: Clock = field(default_factory=Clock)
    """Tells when to give up maintaining the node at hand."""
    errors: bool = False
    """Whether an evaluation error was met on the next version."""
    derivations: int = 0
    """How many heads questions gave since somebody counted last."""
    touched: ChangedRows = field(default_factory=ChangedRows)
    """What segments gained and lost so far."""
    _readers: set[TableReader] = field(init=False, default_factory=set)

    def watch(self, rounds: int) -> None:
        """Let others work, look at the limits, and give up a node that takes too long to maintain."""
        self.look(rounds)
        self.check_time()

    def check_time(self) -> None:
        """Give up a node that takes too long to maintain."""
        if self.clock.is_up():
            raise GaveUpError

    def add_reader(self, reader: TableReader, relations: Iterable[Relation]) -> None:
        """Let a reader of relations know when the change ends, if it exchanges tables of them."""
        if self._owners and any(relation in self._owners for relation in relations):
            self._readers.add(reader)

    def _set_owners(self, relation: Relation, owners: list[Segment]) -> None:
        self._owners[relation] = owners
        self._new_bases.pop(relation, None)
        self._forget_entries(relation)

    def _gains(self, segment: Segment) -> Gains:
        found = self._in_use.get(id(segment))
        if found is None:
            found = self._in_use[id(segment)] = Gains(segment, {}, {})
        return found

    def overlay(self, segment: Segment, relation: Relation) -> Overlay:
        """Return what a table of a segment gains and loses."""
        gains = self._gains(segment)
        found = gains.tables.get(relation)
        if found is not None:
            return found
        base = segment.tables.get(relation)
        found = gains.tables[relation] = _clean_overlay(segment, relation, base, relation.arity)
        self._altered.setdefault(relation, []).append(found)
        if base is None:
            self._set_owners(relation, [*self.owners(relation), segment])
        self._forget_entries(relation)
        return found

    def aggregate_rows(self, segment: Segment, key: str) -> Overlay:
        """Return what an aggregate's rows gain and lose."""
        gains = self._gains(segment)
        found = gains.aggregate_rows.get(key)
        if found is None:
            base = segment.aggregate_rows[key]
            found = gains.aggregate_rows[key] = _clean_overlay(segment, key, base, base.arity)
        return found

    def forget(self, segment: Segment) -> None:
        """Take back what a segment gains and loses."""
        gains = self._in_use.pop(id(segment), None)
        if gains is None:
            return
        for name, _ in gains.overlays():
            segment.overlays.pop(name, None)
        for relation, overlay in gains.tables.items():
            self._altered[relation] = [one for one in self._altered[relation] if one is not overlay]
            if overlay.base is None:
                others = [one for one in self._owners[relation] if one is not segment]
                self._set_owners(relation, others)
            self._forget_entries(relation)

    def leave(self, segment: Segment) -> None:
        """Let a segment go; its tables are tables of the old version only, unless an heir has them."""
        for relation, table in segment.tables.items():
            others = [one for one in self.owners(relation) if one is not segment]
            self._set_owners(relation, others)
            if not any(one.tables.get(relation) is table for one in others):
                self._left.setdefault(relation, []).append(table)

    def inherit(self, heir: Segment) -> None:
        """Take a segment in whose facts others held before."""
        for relation in heir.tables:
            self._set_owners(relation, [*self.owners(relation), heir])

    def abandon(self, relation: Relation, table: Table) -> None:
        """Note that nobody holds a table any more that somebody held, so that readers look at its rows."""
        self.touched.note_whole(relation, table)

    def put(self, segment: Segment) -> None:
        """Take a new segment in."""
        self._add(segment)
        for relation, table in segment.tables.items():
            self.touched.note_whole(relation, table)

    def replace(self, olds: Sequence[Segment], new: Segment) -> None:
        """Take a new segment for old ones, the first of which holds its facts in the next version so far."""
        self.forget(olds[0])
        self.leave(olds[0])
        self._add(new)
        for relation in dict.fromkeys(r for one in (*olds, new) for r in one.tables):
            before = [one.tables[relation] for one in olds if one.tables.get(relation)]
            after = new.tables.get(relation)
            if not before or not after:
                for table in before or ([after] if after else []):
                    self.touched.note_whole(relation, table)
            else:
                self.touched.note_difference(relation, TableDifference.of_tables(before, after))

    def _add(self, segment: Segment) -> None:
        self._fresh[id(segment)] = segment
        for relation in segment.tables:
            self._set_owners(relation, [*self.owners(relation), segment])

    def settle(self, segment: Segment) -> int:
        """Note what a segment gained and lost as touched; return by how many facts it grows or shrinks."""
        grown = 0
        for relation, overlay in self.gains(segment)[0].items():
            grown += overlay.grown
            plus, minus = overlay.plus.rows, overlay.minus.rows
            # No row is in both.
            both = len(plus) and len(minus)
            self.touched.note(
                relation, np.concatenate((plus, minus)) if both else plus if len(plus) else minus
            )
        return grown

    def net(self) -> tuple[Net, dict[Relation, TableDifference]]:
        """Return copies of the rows that came and went, and what to look at for relations not looked at yet.

        These are relations of which whole tables came and went.
        """
        came: dict[Relation, list[Ids]] = {}
        went: dict[Relation, list[Ids]] = {}
        later: dict[Relation, TableDifference] = {}
        for relation in list(self.touched.relations()):
            if self._may_wait(relation):
                overlays = [one for one in self._altered.get(relation, ()) if one.base is not None]
                later[relation] = TableDifference(self.old(relation), self.new(relation), overlays)
                continue
            rows = self.touched.rows(relation)
            gone, come = split_changes(rows, self.flags(relation, rows))
            for delta, some in ((came, come), (went, gone)):
                if len(some):
                    delta[relation] = [some.copy()]
        return (came, went), later

    def _may_wait(self, relation: Relation) -> bool:
        if self.touched.is_listed(relation):
            return False
        # Members of classes may stand in tables of all classes too.
        return not relation.is_class or not (self.old(TYPED) or self.new(TYPED))

    def commit(self) -> None:
        """Bring the tables that stay to the next version. Nobody may read them meanwhile."""
        self.store.notify_readers(self._tables_to_change())
        pending: list[tuple[Overlay, Table]] = []
        for gains in self._in_use.values():
            segment = gains.segment
            for name, overlay in gains.overlays():
                table = segment.table(name) if isinstance(name, Relation) else segment.aggregate_rows[name]
                # All memory is there before the first row moves: nothing may fail half-way.
                table.make_ready(len(overlay.plus), deleting=bool(len(overlay.minus)))
                pending.append((overlay, table))
        if self.store.tracked:
            self._bump_revisions()
        for overlay, table in pending:
            overlay.apply(table)
        for gains in self._in_use.values():
            if any(overlay.base is None for overlay in gains.tables.values()):
                self.store.show(gains.segment)
        # Some owners have a table of their own only now.
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
        """Drop the change: overlays, whatever they hold, and programs for tables that it would have added."""
        for reader in self._readers:
            reader.retain(self, old=True)
        for gains in self._in_use.values():
            for name, _ in gains.overlays():
                gains.segment.overlays.pop(name, None)
        self._in_use.clear()

    def moved(self, segment: Segment) -> SegmentChange:
        """Count the facts that a segment gains and loses so far."""
        overlays = self.gains(segment)[0].values()
        return SegmentChange(sum(len(one.plus) for one in overlays), sum(len(one.minus) for one in overlays))

    def grown(self, segment: Segment) -> int:
        """Return by how many facts a segment grows or shrinks so far."""
        return sum(overlay.grown for overlay in self.gains(segment)[0].values())

    def close(self) -> None:
        """Leave overlays behind as they were found: empty."""
        for gains in self._in_use.values():
            for name, overlay in gains.overlays():
                if overlay.base is None or not overlay.empty():
                    gains.segment.overlays.pop(name, None)
        self._in_use.clear()


def _clean_overlay(segment: Segment, name: Relation | str, base: Table | None, arity: int) -> Overlay:
    """Return an empty overlay of a table: that of the last change, if it was left clean."""
    found = segment.overlays.get(name)
    if found is None or not found.is_clean(base):
        found = segment.overlays[name] = Overlay(base, arity)
    return found
