"""The tables of the old version and of the next, for readers while a change is under way.

A table of the old version stays as it is; an overlay holds what the next version adds to it and leaves out.
Rows of a class are found by class, whichever table holds them. Writing the next version is left to `draft`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.overlay import Overlay, OverlayTable
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, as_pairs, is_any_class
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import SCRATCH, Table
from zodiacedge.engine.embedded.versions.ownership import mark_owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

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
    # Who holds a relation, as `owners` describes it: entries for the kernel, where they are, whose they are.
    # All nodes that read the relation ask about the same rows, once all owners are done.
    entries: NDArray[np.int64]
    at: int
    holders: list[int]
    last: tuple[Ids, NDArray[np.int8]] | None = None


@dataclass(slots=True)
class ReadView:
    """The tables of a database in the old version, and in the next one as far as it is written."""

    store: Database
    _in_use: dict[int, Gains] = field(init=False, default_factory=dict)
    """What tables gain and lose, by the identity of the segment that holds them."""
    _altered: dict[Relation, list[Overlay]] = field(init=False, default_factory=dict)
    _owners: dict[Relation, list[Segment]] = field(init=False, default_factory=dict)
    """Who holds a relation in the next version, where others do than in the old one."""
    _left: dict[Relation, list[Table]] = field(init=False, default_factory=dict)
    """Tables of the old version that nobody holds in the next one."""
    _fresh: dict[int, Segment] = field(init=False, default_factory=dict)
    """Segments all of whose rows are new to the next version."""
    _entries: dict[Relation, _Owners] = field(init=False, default_factory=dict)
    _old_bases: dict[Relation, tuple[Table, ...]] = field(init=False, default_factory=dict)
    _new_bases: dict[Relation, tuple[Table, ...]] = field(init=False, default_factory=dict)

    # What there is.

    def relations(self, atom: Atom) -> list[Relation]:
        """Return the relations whose tables may match an atom, in the old version or in the next."""
        found = self.store.relations(atom)
        if is_any_class(atom):
            new = (r for r in self._owners if r.is_class)
            return list(dict.fromkeys((*found, *new)))
        return found

    def old(
        self, relation: Relation, own: Segment | None = None, *, empty: bool = False
    ) -> list[OverlayTable]:
        """Return the tables of a relation in the old version, without those of one segment."""
        owners = self.store.owners(relation)
        return [
            OverlayTable(s.tables[relation]) for s in owners if s is not own and (empty or s.tables[relation])
        ]

    def new(
        self, relation: Relation, own: Segment | None = None, *, empty: bool = False
    ) -> list[OverlayTable]:
        """Return the tables of a relation in the next version, without those of one segment."""
        found: list[OverlayTable] = []
        for segment in self.owners(relation):
            if segment is own:
                continue
            used = self._used(segment, relation)
            if used is not None:
                found += used.pieces(empty=empty)
            elif empty or segment.tables[relation]:
                found.append(OverlayTable(segment.tables[relation]))
        return found

    def owners(self, relation: Relation) -> Sequence[Segment]:
        """Return the segments that hold a relation in the next version."""
        found = self._owners.get(relation)
        return self.store.owners(relation) if found is None else found

    # What programs read.

    def bases_of(self, relations: Iterable[Relation], *, old: bool = True) -> tuple[Table, ...]:
        """Return all tables of relations in the old version or in the next, without overlays.

        The same tables are always returned in the same order.
        """
        return tuple(table for relation in relations for table in self._bases(relation, old=old))

    def _bases(self, relation: Relation, *, old: bool) -> tuple[Table, ...]:
        is_old = old or relation not in self._owners
        known = self._old_bases if is_old else self._new_bases
        bases = known.get(relation)
        if bases is None:
            owners = self.store.owners(relation) if is_old else self._owners[relation]
            tables = (segment.tables[relation] for segment in owners if relation in segment.tables)
            bases = known[relation] = tuple(sorted(tables, key=id))
        return bases

    def overlays_of(self, relations: Iterable[Relation]) -> tuple[Overlay, ...]:
        """Return what stands over the tables of some relations, in the order in which it came."""
        return tuple(overlay for one in relations for overlay in self._altered.get(one, ()))

    # Rows by relation.

    def flags(self, relation: Relation, rows: Ids, own: Segment | None = None) -> NDArray[np.int8]:
        """Tell of each row of a relation who holds it, as `owners` says."""
        found = self._entries.get(relation)
        if found is None:
            found = self._entries[relation] = self._described(relation)
        holders = found.holders
        number = holders.index(id(own)) if own is not None and id(own) in holders else -1
        last = found.last
        if last is not None and number < 0 and last[0] is rows:
            return last[1]
        marks = np.zeros(len(rows), np.int8)
        if holders and len(rows):
            given = np.ascontiguousarray(rows, np.int32).ravel()
            mark_owners(
                found.at,
                len(holders),
                number,
                MEMORY.address(given),
                len(rows),
                relation.arity,
                MEMORY.address(marks),
                SCRATCH.address,
            )
        if number < 0:
            found.last = rows, marks
        return marks

    def held(self, relation: Relation, rows: Ids, own: Segment) -> NDArray[np.bool_]:
        """Tell of each row of a relation whether one segment holds it in the next version."""
        found = self._held_in(relation, rows, own)
        if not relation.is_class or (TYPED not in own.tables and self._used(own, TYPED) is None):
            return found
        return found | self._held_in(TYPED, as_pairs(relation, rows), own)

    def _held_in(self, relation: Relation, rows: Ids, own: Segment) -> NDArray[np.bool_]:
        table = own.tables.get(relation)
        found = np.zeros(len(rows), np.bool_) if table is None else table.mask(rows)
        used = self._used(own, relation)
        if used is not None:
            if len(used.minus):
                found &= ~used.minus.mask(rows)
            if len(used.plus):
                found |= used.plus.mask(rows)
        return found

    def _described(self, relation: Relation) -> _Owners:
        entries: list[tuple[int, int, int, int]] = []
        holders: list[int] = []
        groups = [relation] if not relation.is_class else [relation, TYPED]
        for one in groups:
            for segment in self.owners(one):
                table = segment.tables.get(one)
                base = _found_by(table)
                used = self._used(segment, one)
                if id(segment) in self._fresh:
                    entries.append((0, base, 0, relation.member_of))
                elif used is not None:
                    entries.append((base, used.plus.at, used.minus.at, relation.member_of))
                else:
                    entries.append((base, 0, 0, relation.member_of))
                holders.append(id(segment))
            for table in self._left.get(one, ()):
                base = _found_by(table)
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

    def hidden_pieces(self, segment: Segment, key: str, *, old: bool) -> list[OverlayTable]:
        """Return where an aggregate's rows are."""
        used = () if old else self.hidden_overlay(segment, key)
        return used[0].pieces(empty=True) if used else [OverlayTable(segment.aggregate_rows[key])]

    def hidden_overlay(self, segment: Segment, key: str) -> tuple[Overlay, ...]:
        """Return what stands over an aggregate's rows, if something does."""
        gains = self._in_use.get(id(segment))
        return (gains.aggregate_rows[key],) if gains is not None and key in gains.aggregate_rows else ()

    def gains(self, segment: Segment) -> tuple[dict[Relation, Overlay], dict[str, Overlay]]:
        """Return what the tables of a segment gain and lose, and what its aggregates' rows do."""
        gains = self._in_use.get(id(segment))
        return ({}, {}) if gains is None else (gains.tables, gains.aggregate_rows)

    def snapshot(self, atoms: Iterable[Atom], own: Segment | None) -> Database:
        """Return a store of the next version, of what some atoms read, without one segment."""
        found = Database(self.store.terms)
        for relation in dict.fromkeys(r for atom in atoms for r in self.relations(atom)):
            for piece in self.new(relation, own):
                table = piece.table
                if piece.without is not None:
                    table = Table.of(piece.rows)
                found.show(Segment({relation: table}))
        return found


def _found_by(table: Table | None) -> int:
    """Return the address of a table that rows can be looked for in, or 0 if it holds none."""
    if not table:
        return 0
    table.ensure_hash_set()
    return table.at
