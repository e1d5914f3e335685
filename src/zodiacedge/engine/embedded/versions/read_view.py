"""The tables of the old version and of the next, for readers while a change is under way.

A table of the old version stays as it is; an overlay holds the rows that the change inserts and deletes.
Rows of a class are looked up by class, whichever table holds them. Writing is left to `draft`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.storage.database import Database, InputTables
from zodiacedge.engine.embedded.storage.overlay import Overlay, OverlayTable
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, as_pairs, is_any_class
from zodiacedge.engine.embedded.storage.table import SCRATCH, Table
from zodiacedge.engine.embedded.versions.ownership import mark_owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.language.ast import Atom


class Gains(NamedTuple):
    """The overlays of a segment: of its tables, and of the rows of its aggregates."""

    segment: Segment
    tables: dict[Relation, Overlay]
    aggregate_rows: dict[str, Overlay]

    def overlays(self) -> Iterator[tuple[Relation | str, Overlay]]:
        """Yield all overlays, by relation or by rule key."""
        yield from self.tables.items()
        yield from self.aggregate_rows.items()


@dataclass(slots=True)
class _Owners:
    # The owners of a relation, as `ownership` describes them: entries for the kernel, their address, and the
    # identities of the owners. `last` has the flags of the last rows: all nodes that read the relation look
    # up the same rows, once all its owners are visited.
    entries: NDArray[np.int64]
    at: int
    holders: list[int]
    last: tuple[Ids, NDArray[np.int8]] | None = None


@dataclass(slots=True)
class ReadView:
    """The tables of a database in the old version, and in the next version as far as it is written."""

    store: Database
    _in_use: dict[int, Gains] = field(init=False, default_factory=dict)
    """The overlays of a segment, by its identity."""
    _altered: dict[Relation, list[Overlay]] = field(init=False, default_factory=dict)
    _owners: dict[Relation, list[Segment]] = field(init=False, default_factory=dict)
    """The owners of a relation in the next version, where they are not those of the old version."""
    _removed: dict[Relation, list[Table]] = field(init=False, default_factory=dict)
    """Tables of the old version without an owner in the next version."""
    _fresh: dict[int, Segment] = field(init=False, default_factory=dict)
    """Segments all of whose rows are new to the next version."""
    _entries: dict[Relation, _Owners] = field(init=False, default_factory=dict)
    _old_bases: dict[Relation, tuple[Table, ...]] = field(init=False, default_factory=dict)
    _new_bases: dict[Relation, tuple[Table, ...]] = field(init=False, default_factory=dict)

    # Tables by relation.

    def relations(self, atom: Atom) -> list[Relation]:
        """Return the relations whose tables may match an atom, in the old version or in the next."""
        relations = self.store.relations(atom)
        if is_any_class(atom):
            new = (r for r in self._owners if r.is_class)
            return list(dict.fromkeys((*relations, *new)))
        return relations

    def old(
        self, relation: Relation, own: Segment | None = None, *, empty: bool = False
    ) -> list[OverlayTable]:
        """Return the tables of a relation in the old version, without those of the segment `own`."""
        owners = self.store.owners(relation)
        return [
            OverlayTable(s.tables[relation]) for s in owners if s is not own and (empty or s.tables[relation])
        ]

    def new(
        self, relation: Relation, own: Segment | None = None, *, empty: bool = False
    ) -> list[OverlayTable]:
        """Return the tables of a relation in the next version, without those of the segment `own`."""
        tables: list[OverlayTable] = []
        for segment in self.owners(relation):
            if segment is own:
                continue
            used = self._used(segment, relation)
            if used is not None:
                tables += used.pieces(empty=empty)
            elif empty or segment.tables[relation]:
                tables.append(OverlayTable(segment.tables[relation]))
        return tables

    def owners(self, relation: Relation) -> Sequence[Segment]:
        """Return the segments that hold a relation in the next version."""
        owners = self._owners.get(relation)
        return self.store.owners(relation) if owners is None else owners

    # Tables and overlays of programs.

    def bases_of(self, relations: Iterable[Relation], *, old: bool = True) -> tuple[Table, ...]:
        """Return all tables of relations in the old version or in the next, without overlays.

        The same tables are always returned in the same order.
        """
        bases: tuple[Table, ...] = ()
        for relation in relations:
            bases += self._bases(relation, old=old)
        return bases

    def _bases(self, relation: Relation, *, old: bool) -> tuple[Table, ...]:
        is_old = old or relation not in self._owners
        known = self._old_bases if is_old else self._new_bases
        bases = known.get(relation)
        if bases is None:
            owners = self.store.owners(relation) if is_old else self._owners[relation]
            tables = (segment.tables[relation] for segment in owners if relation in segment.tables)
            bases = known[relation] = tuple(sorted(tables, key=id) if len(owners) > 1 else tables)
        return bases

    def overlays_of(self, relations: Iterable[Relation]) -> tuple[Overlay, ...]:
        """Return the overlays of the tables of relations, in the order in which they were created."""
        return tuple(overlay for relation in relations for overlay in self._altered.get(relation, ()))

    # Rows by relation.

    def flags(self, relation: Relation, rows: Ids, own: Segment | None = None) -> NDArray[np.int8]:
        """Return the flags of each row's owners, as `ownership` defines them."""
        owners = self._entries.get(relation)
        if owners is None:
            owners = self._entries[relation] = self._described(relation)
        holders = owners.holders
        number = holders.index(id(own)) if own is not None and id(own) in holders else -1
        last = owners.last
        if last is not None and number < 0 and last[0] is rows:
            return last[1]
        marks = np.zeros(len(rows), np.int8)
        if holders and len(rows):
            flat = np.ascontiguousarray(rows, np.int32).ravel()
            mark_owners(
                owners.at,
                len(holders),
                number,
                MEMORY.address(flat),
                len(rows),
                relation.arity,
                MEMORY.address(marks),
                SCRATCH.address,
            )
        if number < 0:
            owners.last = rows, marks
        return marks

    def held(self, relation: Relation, rows: Ids, own: Segment) -> NDArray[np.bool_]:
        """Return a flag per row: whether a segment holds it in the next version."""
        held = self._held_in(relation, rows, own)
        if not relation.is_class or (TYPED not in own.tables and self._used(own, TYPED) is None):
            return held
        return held | self._held_in(TYPED, as_pairs(relation, rows), own)

    def held_rows(self, relation: Relation, rows: Ids, own: Segment, *, held: bool) -> Ids:
        """Return the rows that a segment holds in the next version, or those that it does not hold."""
        if not relation.is_class or (TYPED not in own.tables and self._used(own, TYPED) is None):
            used, table = self._used(own, relation), own.tables.get(relation)
            if table is not None and (used is None or not (len(used.plus) or len(used.minus))):
                # The usual case: the change has not come to the table yet.
                return table.filter(rows, present=held)
        marks = self.held(relation, rows, own)
        return rows[marks if held else ~marks]

    def _held_in(self, relation: Relation, rows: Ids, own: Segment) -> NDArray[np.bool_]:
        table = own.tables.get(relation)
        held = np.zeros(len(rows), np.bool_) if table is None else table.mask(rows)
        used = self._used(own, relation)
        if used is not None:
            if len(used.minus):
                held &= ~used.minus.mask(rows)
            if len(used.plus):
                held |= used.plus.mask(rows)
        return held

    def _described(self, relation: Relation) -> _Owners:
        entries: list[tuple[int, int, int, int]] = []
        holders: list[int] = []
        for stored in (relation, TYPED) if relation.is_class else (relation,):
            for segment in self.owners(stored):
                table = segment.tables.get(stored)
                base = _hashed_address(table)
                used = self._used(segment, stored)
                if id(segment) in self._fresh:
                    entries.append((0, base, 0, relation.member_of))
                elif used is not None:
                    entries.append((base, used.plus.at, used.minus.at, relation.member_of))
                else:
                    entries.append((base, 0, 0, relation.member_of))
                holders.append(id(segment))
            for table in self._removed.get(stored, ()):
                base = _hashed_address(table)
                entries.append((base, 0, base, relation.member_of))
                holders.append(id(table))
        flat = np.array(entries or [(0, 0, 0, 0)], np.int64).ravel()
        return _Owners(flat, MEMORY.address(flat), holders)

    def _forget_entries(self, relation: Relation) -> None:
        if relation == TYPED:
            self._entries.clear()
        else:
            self._entries.pop(relation, None)

    def _used(self, segment: Segment, relation: Relation) -> Overlay | None:
        gains = self._in_use.get(id(segment))
        return None if gains is None else gains.tables.get(relation)

    def aggregate_rows(self, segment: Segment, key: str, *, old: bool) -> list[OverlayTable]:
        """Return the tables of an aggregate's rows in the old version or in the next."""
        used = () if old else self.aggregate_overlays_of(segment, key)
        return used[0].pieces(empty=True) if used else [OverlayTable(segment.aggregate_rows[key])]

    def aggregate_overlays_of(self, segment: Segment, key: str) -> tuple[Overlay, ...]:
        """Return the overlay of an aggregate's rows, if the change has one."""
        gains = self._in_use.get(id(segment))
        return (gains.aggregate_rows[key],) if gains is not None and key in gains.aggregate_rows else ()

    def gains(self, segment: Segment) -> tuple[dict[Relation, Overlay], dict[str, Overlay]]:
        """Return the overlays of a segment's tables, and those of its aggregates' rows."""
        gains = self._in_use.get(id(segment))
        return ({}, {}) if gains is None else (gains.tables, gains.aggregate_rows)

    def snapshot(self, atoms: Iterable[Atom], own: Segment | None) -> InputTables:
        """Return the tables that atoms read, in the next version, without those of one segment."""
        tables: dict[Relation, list[Table]] = {}
        for atom in atoms:
            for relation in self.relations(atom):
                if relation not in tables:
                    tables[relation] = self._current(relation, own)
        return InputTables(self.store.terms, tables)

    def _current(self, relation: Relation, own: Segment | None) -> list[Table]:
        """Return the tables of a relation in the next version that have rows, without those of a segment."""
        return [table for table in self.current(relation, own) if len(table)]

    def current(self, relation: Relation, own: Segment | None = None) -> list[Table]:
        """Return the tables of a relation in the next version, with the overlays of those that have one."""
        if not self._in_use:
            return [segment.tables[relation] for segment in self.owners(relation) if segment is not own]
        tables: list[Table] = []
        for segment in self.owners(relation):
            if segment is own:
                continue
            used = self._used(segment, relation)
            if used is None:
                tables.append(segment.tables[relation])
            else:
                pieces = used.pieces(empty=False)
                tables += [p.table if p.without is None else Table.of(p.rows) for p in pieces]
        return tables


def _hashed_address(table: Table | None) -> int:
    """Return the address of a table, with its hash set built, or 0 if it has no rows."""
    if not table:
        return 0
    table.ensure_hash_set()
    return table.at
