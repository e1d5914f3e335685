"""The next version while it is worked out: the old tables, and what each of them gains and loses.

Nothing of the old version changes before `commit`, so whoever reads it meanwhile sees it whole, and a change
that fails is forgotten by dropping its draft. Rows of a class are kept by class here, whichever table holds
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.assemble import Assembly, Source
from zodiacedge.engine.embedded.execute import execute
from zodiacedge.engine.embedded.store import NO_CLASS, TYPED, Part, Relation, Segment, Store
from zodiacedge.engine.embedded.table import Table
from zodiacedge.language.ast import Variable
from zodiacedge.language.safety import analyse
from zodiacedge.plan.algebra import Read
from zodiacedge.plan.order import arrange, expected
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.registry import Registry
    from zodiacedge.language.ast import Aggregate, Argument, Atom, Conjunct

    Ids = NDArray[np.int32]

Delta = dict[Relation, "Ids"]


class Piece(NamedTuple):
    """A table, without the rows that another one holds."""

    table: Table
    without: Table | None = None


@dataclass(slots=True)
class Overlay:
    """What a table gains and loses; rows it gains are not in it, rows it loses are."""

    base: Table | None
    plus: Table
    minus: Table

    def pieces(self) -> Iterator[Piece]:
        """Yield where the rows of the next version are."""
        if self.base is not None and len(self.base):
            yield Piece(self.base, self.minus if len(self.minus) else None)
        if len(self.plus):
            yield Piece(self.plus)

    def add(self, rows: Ids) -> None:
        """Add rows that are not there."""
        back = self.minus.mask(rows)
        self.minus.delete(rows[back])
        self.plus.insert(rows[~back])

    def remove(self, rows: Ids) -> None:
        """Remove rows that are there."""
        young = self.plus.mask(rows)
        self.plus.delete(rows[young])
        self.minus.insert(rows[~young])


@dataclass(slots=True)
class Draft:
    """A store, and what a change does to it."""

    store: Store
    registry: Registry
    watch: Callable[[int], None]
    count: Callable[[int, int], None]
    """Called with the rounds of a node, and by how many facts it grew so far."""
    errors: bool = False
    """Whether an evaluation error was met on the next version."""
    news: list[Relation] = field(default_factory=list)
    """Relations of which some segment gained or lost rows, as they were noted."""
    _touched: dict[Relation, Table] = field(default_factory=dict)
    _whole: dict[Relation, list[Table]] = field(default_factory=dict)
    _overlays: dict[tuple[int, Relation], Overlay] = field(default_factory=dict)
    _begun: dict[Relation, list[tuple[Overlay, Segment]]] = field(default_factory=dict)
    """Overlays where a segment has no table yet."""
    _hidden: dict[tuple[int, str], Overlay] = field(default_factory=dict)
    _changed: dict[int, Segment] = field(default_factory=dict)
    _gone: dict[int, Segment] = field(default_factory=dict)
    _fresh: dict[Relation, list[Segment]] = field(default_factory=dict)

    # What there is.

    def relations(self, atom: Atom) -> list[Relation]:
        """Return the relations whose tables may match an atom, in the old version or in the next."""
        found = dict.fromkeys(self.store.relations(atom))
        if _of_any_class(atom):
            found |= dict.fromkeys(r for _, r in self._overlays if r.member_of != NO_CLASS)
            found |= dict.fromkeys(r for r in self._fresh if r.member_of != NO_CLASS)
        return list(found)

    def old(self, relation: Relation, own: Segment | None = None) -> list[Piece]:
        """Return the tables of a relation in the old version, without those of one segment."""
        owners = self.store.owners(relation)
        return [Piece(s.tables[relation]) for s in owners if s is not own and len(s.tables[relation])]

    def new(self, relation: Relation, own: Segment | None = None) -> list[Piece]:
        """Return the tables of a relation in the next version, without those of one segment."""
        found: list[Piece] = []
        for segment in self.store.owners(relation):
            if segment is own or id(segment) in self._gone:
                continue
            overlay = self._overlays.get((id(segment), relation))
            if overlay:
                found += overlay.pieces()
            elif len(segment.tables[relation]):
                found.append(Piece(segment.tables[relation]))
        for overlay, segment in self._begun.get(relation, ()):
            if segment is not own:
                found += overlay.pieces()
        found += [
            Piece(segment.tables[relation])
            for segment in self._fresh.get(relation, ())
            if segment is not own and len(segment.tables[relation])
        ]
        return found

    def own(self, relation: Relation, own: Segment) -> list[Piece]:
        """Return what one segment has of a relation in the next version."""
        overlay = self._overlays.get((id(own), relation))
        if overlay:
            return list(overlay.pieces())
        table = own.tables.get(relation)
        return [Piece(table)] if table is not None and len(table) else []

    # Rows by relation.

    def mask(
        self, relation: Relation, rows: Ids, pieces: Callable[[Relation], Sequence[Piece]]
    ) -> NDArray[np.bool_]:
        """Tell of each row of a relation whether it is in some pieces."""
        found = np.zeros(len(rows), np.bool_)
        groups = [(rows, relation)]
        if relation.member_of != NO_CLASS:
            groups.append((_typed(relation, rows), TYPED))
        for given, one in groups:
            for piece in pieces(one):
                here = piece.table.mask(given)
                if piece.without is not None:
                    here &= ~piece.without.mask(given)
                found |= here
        return found

    def touch(self, relation: Relation, rows: Ids) -> None:
        """Note rows that some segment gained or lost."""
        for one, given in by_class(relation, rows):
            if len(given):
                self._touched.setdefault(one, Table(one.arity)).insert(given)
                self.news.append(one)

    def touching(self, atom: Atom) -> list[Relation]:
        """Return the relations that match an atom and of which some segment gained or lost rows."""
        return self.matching(atom, (*self._touched, *self._whole))

    def matching(self, atom: Atom, relations: Iterable[Relation]) -> list[Relation]:
        """Return those of some relations whose rows may match an atom; rows of a class are by class."""
        if _of_any_class(atom):
            return [one for one in dict.fromkeys(relations) if one.member_of != NO_CLASS]
        wanted = self.store.relations(atom)
        return [one for one in dict.fromkeys(relations) if one in wanted]

    def touched(self, relation: Relation) -> Ids:
        """Return the rows of a relation that some segment gained or lost."""
        for table in self._whole.pop(relation, ()):
            self._touched.setdefault(relation, Table(relation.arity)).insert(table.rows)
        found = self._touched.get(relation)
        return found.rows if found is not None else np.zeros((0, relation.arity), np.int32)

    def touched_count(self, relation: Relation) -> int:
        """Return about how many rows of a relation some segment gained or lost, without listing them."""
        rows = len(self._touched.get(relation, ()))
        return rows + sum(map(len, self._whole.get(relation, ())))

    def _touch_whole(self, relation: Relation, table: Table) -> None:
        if not len(table):
            return
        if relation == TYPED:
            self.touch(relation, table.rows)
        else:
            self._whole.setdefault(relation, []).append(table)
            self.news.append(relation)

    # What changes.

    def overlay(self, segment: Segment, relation: Relation) -> Overlay:
        """Return what a table of a segment gains and loses."""
        key = (id(segment), relation)
        found = self._overlays.get(key)
        if found is None:
            base = segment.tables.get(relation)
            found = Overlay(base, Table(relation.arity), Table(relation.arity))
            self._overlays[key] = found
            self._changed[id(segment)] = segment
            if base is None:
                self._begun.setdefault(relation, []).append((found, segment))
        return found

    def hidden(self, segment: Segment, key: str) -> Overlay:
        """Return what an aggregate's rows gain and lose."""
        found = self._hidden.get((id(segment), key))
        if found is None:
            base = segment.hidden[key]
            found = self._hidden[id(segment), key] = Overlay(base, Table(base.arity), Table(base.arity))
            self._changed[id(segment)] = segment
        return found

    def forget(self, segment: Segment) -> None:
        """Take back what a segment gains and loses."""
        for key in [key for key in self._overlays if key[0] == id(segment)]:
            del self._overlays[key]
        for name in [name for name in self._hidden if name[0] == id(segment)]:
            del self._hidden[name]
        for relation, begun in self._begun.items():
            self._begun[relation] = [(overlay, owner) for overlay, owner in begun if owner is not segment]
        self._changed.pop(id(segment), None)

    def drop(self, segment: Segment) -> None:
        """Let a segment go."""
        self._gone[id(segment)] = segment
        for relation, table in segment.tables.items():
            self._touch_whole(relation, table)

    def put(self, segment: Segment) -> None:
        """Take a new segment in."""
        for relation, table in segment.tables.items():
            self._fresh.setdefault(relation, []).append(segment)
            self._touch_whole(relation, table)

    def replace(self, old: Segment, new: Segment) -> None:
        """Take a new segment for an old one."""
        self._gone[id(old)] = old
        for relation in new.tables:
            self._fresh.setdefault(relation, []).append(new)
        for relation in {*old.tables, *new.tables}:
            before, after = old.tables.get(relation), new.tables.get(relation)
            if before is None or after is None or not len(before) or not len(after):
                for table in (before, after):
                    if table is not None:
                        self._touch_whole(relation, table)
                continue
            self.touch(relation, before.sift(after.rows, present=False))
            self.touch(relation, after.sift(before.rows, present=False))

    def settle(self, segment: Segment) -> int:
        """Note what a segment gained and lost as touched; return by how many facts it grows or shrinks."""
        grown = 0
        for (owner, relation), overlay in self._overlays.items():
            if owner == id(segment):
                grown += len(overlay.plus) - len(overlay.minus)
                self.touch(relation, overlay.plus.rows)
                self.touch(relation, overlay.minus.rows)
        return grown

    def net(self) -> tuple[dict[Relation, list[Ids]], dict[Relation, list[Ids]]]:
        """Return copies of the rows that became visible, and of those that are visible no more.

        Where all rows of a relation came or went they are given table by table, and may repeat.
        """
        came: dict[Relation, list[Ids]] = {}
        went: dict[Relation, list[Ids]] = {}
        by_class_only = not self.old(TYPED) and not self.new(TYPED)
        for relation in list(dict.fromkeys((*self._whole, *self._touched))):
            before, after = self.old(relation), self.new(relation)
            if (relation.member_of == NO_CLASS or by_class_only) and not (before and after):
                if after:
                    came[relation] = [_rows(piece).copy() for piece in after]
                elif before:
                    went[relation] = [_rows(piece).copy() for piece in before]
                continue
            rows = self.touched(relation)
            was = self.mask(relation, rows, self.old)
            will = self.mask(relation, rows, self.new)
            for delta, which in ((came, will & ~was), (went, was & ~will)):
                if which.any():
                    delta[relation] = [rows[which]]
        return came, went

    def snapshot(self, atoms: Iterable[Atom], own: Segment | None) -> Store:
        """Return a store of the next version, of what some atoms read, without one segment."""
        found = Store(self.store.terms)
        for relation in dict.fromkeys(r for atom in atoms for r in self.relations(atom)):
            for piece in self.new(relation, own):
                table = piece.table
                if piece.without is not None:
                    table = Table.of(_rows(piece))
                found.show(Segment({relation: table}))
        return found

    # Evaluation.

    def run(
        self,
        head: Sequence[Argument],
        body: tuple[Conjunct, ...],
        reads: VersionReads,
        *,
        first: int | None = None,
        exact: bool = False,
    ) -> Ids:
        """Return what a body binds the head's arguments to, each row once, or once per binding if `exact`."""
        wanted = analyse(body).bound if exact else frozenset(a for a in head if isinstance(a, Variable))
        steps = arrange(body, (), first, reads, wanted)
        target = Table(len(head))
        if not exact:
            target.need_rows()
        assembly = Assembly(self.store, reads, self.registry)
        assembly.add(steps, head, target, later=False, rule=0, exact=exact)
        execute(assembly, assembly.frame([], 1), self.registry, self.watch)
        self.errors = self.errors or assembly.errors(0)[0] > 0
        return target.rows

    def commit(self) -> None:
        """Bring the tables that stay to the next version. Nobody may read them meanwhile."""
        for (owner, relation), overlay in self._overlays.items():
            table = self._changed[owner].table(relation)
            table.delete(overlay.minus.rows)
            table.insert(overlay.plus.rows)
            self.store.show(self._changed[owner])
        for (owner, key), overlay in self._hidden.items():
            table = self._changed[owner].hidden[key]
            table.delete(overlay.minus.rows)
            table.insert(overlay.plus.rows)


@dataclass(slots=True)
class VersionReads:
    """Where the steps of a plan find their rows while a change is worked out.

    `special` are tables under names of their own: a delta, candidates, groups.
    """

    draft: Draft
    pieces: Callable[[Relation], Sequence[Piece]]
    special: Mapping[str, Iterable[tuple[Table, int]]]
    aggregates: Callable[[Aggregate], Sequence[Piece]] | None = None

    def sources(self, atom: Atom, read: Read, *, exact: bool, apart: bool) -> list[Source]:
        """Return what an atom reads."""
        del read, apart
        if atom.relation in self.special:
            parts = self.special[atom.relation]
            return [Source(Part(table, member_of), Read.NEW) for table, member_of in parts if len(table)]
        found = [
            _source(piece, relation.member_of)
            for relation in self.draft.relations(atom)
            for piece in self.pieces(relation)
        ]
        if exact and len(found) > 1:
            return [self._merged(atom, found)]
        return found

    def absent(self, atom: Atom) -> list[Source]:
        """Return where a negated atom must have no match."""
        return self.sources(atom, Read.NEW, exact=False, apart=False)

    def rows(self, aggregate: Aggregate) -> list[Source]:
        """Return the rows of an aggregate."""
        if self.aggregates is None:
            return []
        return [_source(piece, NO_CLASS) for piece in self.aggregates(aggregate)]

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return how many rows are expected to match an atom."""
        sources = self.sources(atom, Read.NEW, exact=False, apart=False)
        return expected(sum(len(source.part.table) for source in sources), atom, bound)

    def _merged(self, atom: Atom, sources: Sequence[Source]) -> Source:
        """Return one table of what several hold, each row once."""
        merged = Table(len(atom.args))
        for source in sources:
            rows = source.part.table.rows
            for part in source.excluded:
                rows = rows[~part.table.mask(rows)]
            if rows.shape[1] < len(atom.args):
                rows = np.insert(rows, rows.shape[1], source.part.member_of, axis=1)
            merged.insert(rows)
        return Source(Part(merged, NO_CLASS), Read.NEW)


def _source(piece: Piece, member_of: int) -> Source:
    excluded = (Part(piece.without, member_of),) if piece.without is not None else ()
    return Source(Part(piece.table, member_of), Read.NEW, excluded)


def _of_any_class(atom: Atom) -> bool:
    return atom.relation == RDF_TYPE and len(atom.args) == 2 and isinstance(atom.args[1], Variable)


def _rows(piece: Piece) -> Ids:
    rows = piece.table.rows
    return rows if piece.without is None else piece.without.sift(rows, present=False)


def _typed(relation: Relation, rows: Ids) -> Ids:
    return np.insert(rows, 1, relation.member_of, axis=1)


def by_class(relation: Relation, rows: Ids) -> Iterator[tuple[Relation, Ids]]:
    """Yield rows with those of `rdf:type` as a whole dealt out to their classes."""
    if relation != TYPED:
        yield relation, rows
        return
    for one in np.unique(rows[:, 1]).tolist():
        yield Relation(RDF_TYPE, 1, one), rows[rows[:, 1] == one][:, :1]
