"""The next version while it is worked out: the old tables, and what each of them gains and loses.

Nothing of the old version changes before `commit`, so whoever reads it meanwhile sees it whole, and a change
that fails is forgotten by dropping its draft. Rows of a class are kept by class here, whichever table holds
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.api import SegmentChange
from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.storage.database import (
    NO_CLASS,
    TYPED,
    Database,
    Relation,
    Segment,
    is_any_class,
)
from zodiacedge.engine.embedded.storage.overlay import Overlay, OverlayTable
from zodiacedge.engine.embedded.storage.table import SCRATCH, Table
from zodiacedge.engine.embedded.versions.changed_rows import ChangedRows
from zodiacedge.engine.embedded.versions.clock import Clock
from zodiacedge.engine.embedded.versions.ownership import mark_owners, split_changes
from zodiacedge.engine.embedded.versions.pair import Pair
from zodiacedge.engine.embedded.versions.unseen import Unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.registry import Registry
    from zodiacedge.language.ast import Atom

    Ids = NDArray[np.int32]

Delta = dict[Relation, "Ids"]
# Rows that came, and rows that went.
Net = tuple[dict[Relation, list["Ids"]], dict[Relation, list["Ids"]]]


class GaveUpError(Exception):
    """Evaluating a node anew is quicker than to go on maintaining it."""


class _Gains(NamedTuple):
    # What the tables of a segment gain and lose, and the rows of its aggregates.
    segment: Segment
    tables: dict[Relation, Overlay]
    aggregate_rows: dict[str, Overlay]

    def overlays(self) -> Iterator[tuple[Relation | str, Overlay]]:
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
class Draft:
    """A store, and what a change does to it."""

    store: Database
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
    _in_use: dict[int, _Gains] = field(default_factory=dict)
    """What tables gain and lose, by the identity of the segment that holds them."""
    _altered: dict[Relation, list[Overlay]] = field(default_factory=dict)
    _owners: dict[Relation, list[Segment]] = field(default_factory=dict)
    """Who holds a relation in the next version, where others do than in the old one."""
    _left: dict[Relation, list[Table]] = field(default_factory=dict)
    """Tables of the old version that nobody holds in the next one."""
    _fresh: dict[int, Segment] = field(default_factory=dict)
    """Segments all of whose rows are new to the next version."""
    _entries: dict[Relation, _Owners] = field(default_factory=dict)
    _bases: dict[Relation, tuple[Table, ...]] = field(default_factory=dict)

    def watch(self, rounds: int) -> None:
        """Let others work, look at the limits, and give up a node that takes too long to maintain."""
        self.look(rounds)
        self.check_time()

    def check_time(self) -> None:
        """Give up a node that takes too long to maintain."""
        if self.clock.is_up():
            raise GaveUpError

    # What there is.

    def relations(self, atom: Atom) -> list[Relation]:
        """Return the relations whose tables may match an atom, in the old version or in the next."""
        found = self.store.relations(atom)
        if is_any_class(atom):
            new = (r for r in self._owners if r.member_of != NO_CLASS)
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

    def is_replacing(self, relations: Iterable[Relation]) -> bool:
        """Whether other segments hold some relation in the next version than in the old one."""
        return bool(self._owners) and any(one in self._owners for one in relations)

    def bases_of(self, relations: Iterable[Relation]) -> tuple[Table, ...]:
        """Return all tables of some relations in the old version."""
        found: tuple[Table, ...] = ()
        for one in relations:
            tables = self._bases.get(one)
            if tables is None:
                tables = tuple(segment.tables[one] for segment in self.store.owners(one))
                self._bases[one] = tables
            found += tables
        return found

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
        if relation.member_of == NO_CLASS or (TYPED not in own.tables and self._used(own, TYPED) is None):
            return found
        return found | self._held_in(TYPED, np.insert(rows, 1, relation.member_of, axis=1), own)

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
        groups = [relation] if relation.member_of == NO_CLASS else [relation, TYPED]
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

    # What changes.

    def _used(self, segment: Segment, relation: Relation) -> Overlay | None:
        gains = self._in_use.get(id(segment))
        return None if gains is None else gains.tables.get(relation)

    def _gains(self, segment: Segment) -> _Gains:
        found = self._in_use.get(id(segment))
        if found is None:
            found = self._in_use[id(segment)] = _Gains(segment, {}, {})
        return found

    def overlay(self, segment: Segment, relation: Relation) -> Overlay:
        """Return what a table of a segment gains and loses."""
        gains = self._gains(segment)
        found = gains.tables.get(relation)
        if found is not None:
            return found
        base = segment.tables.get(relation)
        found = segment.overlays.get(relation)
        if found is None or not found.is_clean(base):
            found = segment.overlays[relation] = Overlay(base, relation.arity)
        gains.tables[relation] = found
        self._altered.setdefault(relation, []).append(found)
        if base is None:
            self._owners[relation] = [*self.owners(relation), segment]
        self._forget_entries(relation)
        return found

    def aggregate_rows(self, segment: Segment, key: str) -> Overlay:
        """Return what an aggregate's rows gain and lose."""
        gains = self._gains(segment)
        found = gains.aggregate_rows.get(key)
        if found is not None:
            return found
        base = segment.aggregate_rows[key]
        found = segment.overlays.get(key)
        if found is None or not found.is_clean(base):
            found = segment.overlays[key] = Overlay(base, base.arity)
        gains.aggregate_rows[key] = found
        return found

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
                self._owners[relation] = [one for one in self._owners[relation] if one is not segment]
            self._forget_entries(relation)

    def leave(self, segment: Segment) -> None:
        """Let a segment go; its tables are tables of the old version only, unless an heir has them."""
        for relation, table in segment.tables.items():
            others = [one for one in self.owners(relation) if one is not segment]
            self._owners[relation] = others
            if not any(one.tables.get(relation) is table for one in others):
                self._left.setdefault(relation, []).append(table)
            self._forget_entries(relation)

    def inherit(self, heir: Segment) -> None:
        """Take a segment in whose facts others held before."""
        for relation in heir.tables:
            self._owners[relation] = [*self.owners(relation), heir]
            self._forget_entries(relation)

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
                self.touched.note_pair(relation, Pair(before, after))

    def _add(self, segment: Segment) -> None:
        self._fresh[id(segment)] = segment
        for relation in segment.tables:
            self._owners[relation] = [*self.owners(relation), segment]
            self._forget_entries(relation)

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

    def net(self) -> tuple[Net, dict[Relation, Unseen]]:
        """Return copies of the rows that came and went, and what to look at for relations not looked at yet.

        These are relations of which whole tables came and went.
        """
        came: dict[Relation, list[Ids]] = {}
        went: dict[Relation, list[Ids]] = {}
        later: dict[Relation, Unseen] = {}
        for relation in list(self.touched.relations()):
            if self._may_wait(relation):
                later[relation] = self._unseen(relation)
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
        return relation.member_of == NO_CLASS or not (self.old(TYPED) or self.new(TYPED))

    def _unseen(self, relation: Relation) -> Unseen:
        olds, news = self.old(relation), self.new(relation)
        before, after = {id(piece.table) for piece in olds}, {id(piece.table) for piece in news}
        overlays = [one for one in self._altered.get(relation, ()) if one.base is not None]
        return Unseen(
            olds,
            news,
            [piece.table for piece in news if id(piece.table) not in before],
            [piece.table for piece in olds if id(piece.table) not in after]
            + [overlay.minus for overlay in overlays if len(overlay.minus)],
            overlays,
        )

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

    def commit(self) -> None:
        """Bring the tables that stay to the next version. Nobody may read them meanwhile."""
        self.store.before_changes(self._tables_to_change())
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
        """Let overlays go, whatever they hold."""
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


def _found_by(table: Table | None) -> int:
    """Return the address of a table that rows can be looked for in, or 0 if it holds none."""
    if not table:
        return 0
    table.need_rows()
    return table.at
