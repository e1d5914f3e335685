"""Delta queries: rule bodies that changes evaluate again and again, planned and assembled once.

A delta query has one position whose rows come from outside, the delta rows: inserted or deleted facts,
candidates, groups. Its program stays valid as long as the same tables hold the relations that it reads. The
rows that a change inserts into tables and deletes from them are in overlays, which live as long as their
segments, so the program of one change serves the next change of the same relations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.machine.assemble import OUT_WORDS, Assembly, Frame
from zodiacedge.engine.embedded.machine.execute import execute, resume, step_budget
from zodiacedge.engine.embedded.machine.rerun import rerun
from zodiacedge.engine.embedded.machine.sources import TableSource
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, Relation, TableView, is_any_class
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.language.ast import Aggregate, Atom, Negation, Variable
from zodiacedge.plan.algebra import RelationVersion
from zodiacedge.plan.order import arrange, expected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from zodiacedge.engine.embedded.storage.overlay import Overlay, OverlayTable
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.language.ast import Argument, Conjunct
    from zodiacedge.plan.algebra import Step
    from zodiacedge.plan.order import Statistics

    DeltaRows = Sequence[tuple[Ids, int]]

# A name that no predicate of a user can have.
DELTA = "delta rows"
# A program that read or derived more rows is not kept: its tables are large, and clearing them costs much.
_MOST_ROWS = 20_000
# The most programs of one query that are kept, for different sets of overlays.
_MOST_PROGRAMS = 8
# A plan is made again once a relation has grown or shrunk by this factor.
_OUTGROWN = 8


class DeltaQuery:
    """A body, the arguments to return of its bindings, and the position of the delta rows."""

    def __init__(
        self,
        head: Sequence[Argument],
        body: tuple[Conjunct, ...],
        position: int | None,
        aggregate: tuple[str, Aggregate] | None = None,
    ) -> None:
        """Describe a delta query.

        Args:
            head: The arguments that each row of the result has.
            body: The conjuncts; the atom of the delta rows is called `DELTA`.
            position: The position of the delta rows, where the plan starts; None if there are none.
            aggregate: The key of the rule whose aggregate is in the body, and the aggregate, if there is one.
        """
        self.head = tuple(head)
        self.body = body
        self.position = position
        self.aggregate = aggregate
        self.wanted = frozenset(a for a in head if isinstance(a, Variable))
        self.programs: list[AssembledQuery] = []
        self._planned: tuple[tuple[int, ...], tuple[Step, ...]] | None = None
        self._relations: tuple[Relation, ...] | None = None

    def steps(self, statistics: Statistics, sizes: tuple[int, ...]) -> tuple[Step, ...]:
        """Return the plan; it is made again once a table has grown or shrunk much."""
        if self._planned is None or not _are_near(sizes, self._planned[0]):
            self._planned = sizes, arrange(self.body, (), self.position, statistics, self.wanted)
        return self._planned[1]

    def relations(self, draft: Draft) -> tuple[Relation, ...] | None:
        """Return the relations that the body reads, or None if these are all classes."""
        if self._relations is None:
            atoms = [c.atom if isinstance(c, Negation) else c for c in self.body]
            read = [a for a in atoms if isinstance(a, Atom) and a.relation != DELTA]
            if any(map(is_any_class, read)):
                return None
            self._relations = tuple(dict.fromkeys(r for atom in read for r in draft.store.relations(atom)))
        return self._relations

    def program(self, tables: _Tables) -> AssembledQuery | None:
        """Return the program that reads these tables, unless a table has grown or shrunk much since."""
        for program in self.programs:
            if program.tables == tables:
                if _are_near(tables.sizes(), program.sizes):
                    return program
                self.programs.remove(program)
                return None
        return None

    def programs_for(self, *versions: tuple[Table, ...]) -> list[AssembledQuery]:
        """Return the programs that read the tables of one of these versions."""
        return [program for program in self.programs if program.tables.bases in versions]

    def retain(self, draft: Draft, *, old: bool) -> None:
        """Drop the programs for tables that the version in force does not have."""
        self.programs = self.programs_for(draft.bases_of(self._relations or (), old=old))


class _Tables(NamedTuple):
    # The tables and overlays that a program reads, in which version, and the class of its delta rows.
    member_of: int
    old: bool
    bases: tuple[Table, ...]
    overlays: tuple[Overlay, ...]
    aggregate: tuple[Table, ...]

    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, (*self.bases, *self.aggregate)))


@dataclass(slots=True, eq=False)
class AssembledQuery:
    """A delta query, planned and assembled for certain tables."""

    tables: _Tables
    sizes: tuple[int, ...]
    delta: Table
    target: Table
    assembly: Assembly
    frame: Frame

    def run(self, draft: Draft, rows: Ids) -> Ids:
        """Evaluate the query for delta rows."""
        assembly, frame, count = self.assembly, self.frame, len(rows)
        budget = step_budget(draft.clock.left())
        if not self.delta.is_plain(count):
            self.delta.refill(rows)
            count = -1
        flat = np.ascontiguousarray(rows, np.int32).ravel()
        reason = rerun(
            frame.at,
            frame.state_at,
            budget,
            self.delta.at,
            MEMORY.address(flat),
            count,
            self.target.at,
            *assembly.store.terms.buffers(OUT_WORDS),
        )
        if reason != L.DONE:
            resume(assembly, frame, draft.registry, draft.watch, budget, reason)
        draft.derivations += frame.state.item(L.M_DERIVED)
        draft.errors = draft.errors or assembly.has_errors
        return self.target.rows.copy()


def evaluate_delta(
    draft: Draft, query: DeltaQuery, delta_rows: DeltaRows, own: Segment | None, *, old: bool
) -> Ids:
    """Evaluate a delta query; return the rows of its head, each once.

    Args:
        draft: The change under way.
        query: The query.
        delta_rows: Arrays of delta rows, each with its class.
        own: The segment whose aggregate rows the query reads.
        old: Whether the query reads the old version, or the next.
    """
    relations = query.relations(draft) if len(delta_rows) == 1 else None
    if relations is None:
        return _evaluate_once(draft, query, delta_rows, own, old=old)
    ((rows, member_of),) = delta_rows
    bases = draft.bases_of(relations, old=old)
    overlays = () if old else draft.overlays_of(relations)
    aggregate: tuple[Table, ...] = ()
    if query.aggregate and own is not None:
        key = query.aggregate[0]
        aggregate = (own.aggregate_rows[key],)
        if not old:
            overlays = (*overlays, *draft.aggregate_overlays_of(own, key))
    tables = _Tables(member_of, old, bases, overlays, aggregate)
    program = query.program(tables)
    if program is None:
        program = _program(draft, query, rows.shape[1], tables, own)
        current = query.programs_for(draft.bases_of(relations), draft.bases_of(relations, old=False))
        query.programs = [program, *current[: _MOST_PROGRAMS - 1]]
        draft.add_reader(query, relations)
    heads = program.run(draft, rows)
    if max(len(heads), len(rows)) > _MOST_ROWS:
        query.programs.remove(program)
    return heads


def prepare_delta(draft: Draft, query: DeltaQuery, delta: tuple[int, int], own: Segment) -> None:
    """Build the indexes of the next version that a query reads; its delta rows have a width and a class."""
    width, member_of = delta
    reads = _reads(draft, query, [(Table(width), member_of)], own, old=False, lasting=True)
    _assembled(draft, query, reads, arrange(query.body, (), query.position, reads, query.wanted))


def _are_near(now: tuple[int, ...], then: tuple[int, ...]) -> bool:
    return now == then or (
        len(now) == len(then)
        and all(
            b <= _OUTGROWN * (a + _OUTGROWN) and a <= _OUTGROWN * (b + _OUTGROWN)
            for a, b in zip(now, then, strict=True)
        )
    )


def _program(
    draft: Draft, query: DeltaQuery, width: int, tables: _Tables, own: Segment | None
) -> AssembledQuery:
    delta = Table(width)
    reads = _reads(draft, query, [(delta, tables.member_of)], own, old=tables.old, lasting=True)
    sizes = tables.sizes()
    target, assembly, frame = _assembled(draft, query, reads, query.steps(reads, sizes))
    return AssembledQuery(tables, sizes, delta, target, assembly, frame)


def _evaluate_once(
    draft: Draft, query: DeltaQuery, delta_rows: DeltaRows, own: Segment | None, *, old: bool
) -> Ids:
    parts = [(Table.of(rows), member_of) for rows, member_of in delta_rows]
    reads = _reads(draft, query, parts, own, old=old, lasting=False)
    steps = arrange(query.body, (), query.position, reads, query.wanted)
    target, assembly, frame = _assembled(draft, query, reads, steps)
    execute(assembly, frame, draft.registry, draft.watch, draft.clock.left())
    draft.derivations += frame.state.item(L.M_DERIVED)
    draft.errors = draft.errors or assembly.has_errors
    return target.rows


def _assembled(
    draft: Draft, query: DeltaQuery, reads: VersionReads, steps: tuple[Step, ...]
) -> tuple[Table, Assembly, Frame]:
    target = Table(len(query.head))
    target.ensure_hash_set()
    assembly = Assembly(draft.store, reads, draft.registry)
    assembly.add(steps, query.head, target, later=False, rule=0)
    return target, assembly, assembly.frame([], 1)


def _reads(
    draft: Draft,
    query: DeltaQuery,
    parts: Iterable[tuple[Table, int]],
    own: Segment | None,
    *,
    old: bool,
    lasting: bool,
) -> VersionReads:
    aggregate = query.aggregate

    def rows() -> Sequence[OverlayTable]:
        return draft.aggregate_rows(own, aggregate[0], old=old) if aggregate and own is not None else ()

    pieces = draft.old if old else draft.new
    return VersionReads(draft, lambda relation: pieces(relation, empty=lasting), tuple(parts), rows)


@dataclass(slots=True)
class VersionReads:
    """The tables that the steps of a plan read while a change is under way."""

    draft: Draft
    pieces: Callable[[Relation], Sequence[OverlayTable]]
    delta: tuple[tuple[Table, int], ...]
    aggregate_rows: Callable[[], Sequence[OverlayTable]]
    _sizes: dict[Atom, int] = field(default_factory=dict)

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return the tables that an atom reads."""
        del read, exact, distinct_rows
        if atom.relation == DELTA:
            return [
                TableSource(TableView(table, member_of), RelationVersion.NEW)
                for table, member_of in self.delta
            ]
        return [
            source_of(piece, relation.member_of)
            for relation in self.draft.relations(atom)
            for piece in self.pieces(relation)
        ]

    def absent(self, atom: Atom) -> list[TableSource]:
        """Return the tables in which a negated atom must have no match."""
        return self.sources(atom, RelationVersion.NEW, exact=False, distinct_rows=False)

    def rows(self, aggregate: Aggregate) -> list[TableSource]:
        """Return the tables of an aggregate's rows."""
        del aggregate
        return [source_of(piece, NO_CLASS) for piece in self.aggregate_rows()]

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return the expected number of rows that match an atom."""
        size = self._sizes.get(atom)
        if size is None:
            sources = self.sources(atom, RelationVersion.NEW, exact=False, distinct_rows=False)
            size = self._sizes[atom] = sum(len(source.view.table) for source in sources)
        return expected(size, atom, bound)


def source_of(piece: OverlayTable, member_of: int) -> TableSource:
    """Return one table of a version as the source of an atom."""
    excluded = (TableView(piece.without, member_of),) if piece.without is not None else ()
    return TableSource(TableView(piece.table, member_of), RelationVersion.NEW, excluded)
