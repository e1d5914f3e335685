"""Bodies that are asked again and again while changes are worked out: planned and assembled once.

A question has one place that gets its rows from outside: what changed, candidates, groups. Its program stays
valid as long as the same tables hold the relations that it reads. What a change adds to and takes from
tables stands in overlays, which live as long as their segments, so the program of one change serves the next
one that alters the same relations.
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

    Given = Sequence[tuple[Ids, int]]

# A name that no predicate of a user can have.
DELTA = "what is given"
# A program that gave more rows than this is not kept: emptying its target would cost too much.
_MOST_ROWS = 20_000
# More programs of one question, for other sets of altered tables, are not kept.
_MOST_PROGRAMS = 8
# A plan is made anew once some relation has grown or shrunk so many times.
_OUTGROWN = 8


class DeltaQuery:
    """A body, what to return of its bindings, and the place that gets rows from outside."""

    def __init__(
        self,
        head: Sequence[Argument],
        body: tuple[Conjunct, ...],
        place: int | None,
        hidden: tuple[str, Aggregate] | None = None,
    ) -> None:
        """Describe a question.

        Args:
            head: What each row of the answer holds.
            body: The conjuncts; the atom of the place is called `DELTA`.
            place: The place that gets its rows from outside, where the plan starts; None if there is none.
            hidden: The rule whose aggregate stands in the body, if there is one.
        """
        self.head = tuple(head)
        self.body = body
        self.place = place
        self.aggregate_rows = hidden
        self.wanted = frozenset(a for a in head if isinstance(a, Variable))
        self.programs: list[AssembledQuery] = []
        self._planned: tuple[tuple[int, ...], tuple[Step, ...]] | None = None
        self._relations: tuple[Relation, ...] | None = None

    def steps(self, statistics: Statistics, sizes: tuple[int, ...]) -> tuple[Step, ...]:
        """Return the plan, that of the last time unless some table has grown or shrunk much since."""
        if self._planned is None or not _are_near(sizes, self._planned[0]):
            self._planned = sizes, arrange(self.body, (), self.place, statistics, self.wanted)
        return self._planned[1]

    def relations(self, draft: Draft) -> tuple[Relation, ...] | None:
        """Return the relations whose tables the body reads, or None where new ones may come at any time."""
        if self._relations is None:
            atoms = [c.atom if isinstance(c, Negation) else c for c in self.body]
            read = [a for a in atoms if isinstance(a, Atom) and a.relation != DELTA]
            if any(map(is_any_class, read)):
                return None
            self._relations = tuple(dict.fromkeys(r for atom in read for r in draft.store.relations(atom)))
        return self._relations

    def program(self, tables: _Tables) -> AssembledQuery | None:
        """Return the program that reads these tables, unless one has grown or shrunk much since."""
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
    # The tables and overlays that a program reads, in which version, and the class of the rows it is given.
    member_of: int
    old: bool
    bases: tuple[Table, ...]
    overlays: tuple[Overlay, ...]
    aggregate: tuple[Table, ...]

    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, (*self.bases, *self.aggregate)))


@dataclass(slots=True, eq=False)
class AssembledQuery:
    """A question, planned and assembled for certain tables."""

    tables: _Tables
    sizes: tuple[int, ...]
    given: Table
    target: Table
    assembly: Assembly
    frame: Frame

    def run(self, draft: Draft, rows: Ids) -> Ids:
        """Answer for some rows."""
        assembly, frame, count = self.assembly, self.frame, len(rows)
        budget = step_budget(draft.clock.left())
        if not self.given.is_plain(count):
            self.given.refill(rows)
            count = -1
        flat = np.ascontiguousarray(rows, np.int32)
        reason = rerun(
            frame.at,
            frame.state_at,
            budget,
            self.given.at,
            MEMORY.address(flat),
            count,
            self.target.at,
            *assembly.store.terms.buffers(OUT_WORDS),
        )
        if reason != L.DONE:
            resume(assembly, frame, draft.registry, draft.watch, budget, reason)
        draft.derivations += frame.state.item(L.M_DERIVED)
        draft.errors = draft.errors or assembly.errors(0)[0] > 0
        return self.target.rows.copy()


def evaluate_delta(
    draft: Draft, question: DeltaQuery, given: Given, own: Segment | None, *, old: bool
) -> Ids:
    """Return what a question's body binds its head to, each row once.

    Args:
        draft: The change under way.
        question: The question.
        given: Rows for its place, with the class of each group of them.
        own: The segment whose aggregates are meant.
        old: Whether the old version is asked, or the next one.
    """
    relations = question.relations(draft) if len(given) == 1 else None
    if relations is None:
        return _ask_once(draft, question, given, own, old=old)
    ((rows, member_of),) = given
    bases = draft.bases_of(relations, old=old)
    overlays = () if old else draft.overlays_of(relations)
    aggregate: tuple[Table, ...] = ()
    if question.aggregate_rows and own is not None:
        key = question.aggregate_rows[0]
        aggregate = (own.aggregate_rows[key],)
        if not old:
            overlays = (*overlays, *draft.hidden_overlay(own, key))
    tables = _Tables(member_of, old, bases, overlays, aggregate)
    program = question.program(tables)
    if program is None:
        program = _program(draft, question, rows.shape[1], tables, own)
        current = question.programs_for(draft.bases_of(relations), draft.bases_of(relations, old=False))
        question.programs = [program, *current[: _MOST_PROGRAMS - 1]]
        draft.add_reader(question, relations)
    found = program.run(draft, rows)
    if len(found) > _MOST_ROWS:
        question.programs.remove(program)
    return found


def _are_near(now: tuple[int, ...], then: tuple[int, ...]) -> bool:
    return len(now) == len(then) and all(
        b <= _OUTGROWN * (a + _OUTGROWN) and a <= _OUTGROWN * (b + _OUTGROWN)
        for a, b in zip(now, then, strict=True)
    )


def _program(
    draft: Draft, question: DeltaQuery, width: int, tables: _Tables, own: Segment | None
) -> AssembledQuery:
    given = Table(width)
    reads = _reads(draft, question, [(given, tables.member_of)], own, old=tables.old, lasting=True)
    sizes = tables.sizes()
    target, assembly, frame = _assembled(draft, question, reads, question.steps(reads, sizes))
    return AssembledQuery(tables, sizes, given, target, assembly, frame)


def _ask_once(draft: Draft, question: DeltaQuery, given: Given, own: Segment | None, *, old: bool) -> Ids:
    parts = [(Table.of(rows), member_of) for rows, member_of in given]
    reads = _reads(draft, question, parts, own, old=old, lasting=False)
    steps = arrange(question.body, (), question.place, reads, question.wanted)
    target, assembly, frame = _assembled(draft, question, reads, steps)
    execute(assembly, frame, draft.registry, draft.watch, draft.clock.left())
    draft.derivations += frame.state.item(L.M_DERIVED)
    draft.errors = draft.errors or assembly.errors(0)[0] > 0
    return target.rows


def _assembled(
    draft: Draft, question: DeltaQuery, reads: VersionReads, steps: tuple[Step, ...]
) -> tuple[Table, Assembly, Frame]:
    target = Table(len(question.head))
    target.ensure_hash_set()
    assembly = Assembly(draft.store, reads, draft.registry)
    assembly.add(steps, question.head, target, later=False, rule=0)
    return target, assembly, assembly.frame([], 1)


def _reads(
    draft: Draft,
    question: DeltaQuery,
    parts: Iterable[tuple[Table, int]],
    own: Segment | None,
    *,
    old: bool,
    lasting: bool,
) -> VersionReads:
    hidden = question.aggregate_rows

    def rows() -> Sequence[OverlayTable]:
        return draft.hidden_pieces(own, hidden[0], old=old) if hidden and own is not None else ()

    pieces = draft.old if old else draft.new
    return VersionReads(draft, lambda one: pieces(one, empty=lasting), tuple(parts), rows)


@dataclass(slots=True)
class VersionReads:
    """Where the steps of a plan find their rows while a change is worked out."""

    draft: Draft
    pieces: Callable[[Relation], Sequence[OverlayTable]]
    given: tuple[tuple[Table, int], ...]
    aggregate_rows: Callable[[], Sequence[OverlayTable]]
    _sizes: dict[Atom, int] = field(default_factory=dict)

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return what an atom reads."""
        del read, exact, distinct_rows
        if atom.relation == DELTA:
            return [
                TableSource(TableView(table, member_of), RelationVersion.NEW)
                for table, member_of in self.given
            ]
        return [
            _source(piece, relation.member_of)
            for relation in self.draft.relations(atom)
            for piece in self.pieces(relation)
        ]

    def absent(self, atom: Atom) -> list[TableSource]:
        """Return where a negated atom must have no match."""
        return self.sources(atom, RelationVersion.NEW, exact=False, distinct_rows=False)

    def rows(self, aggregate: Aggregate) -> list[TableSource]:
        """Return the rows of an aggregate."""
        del aggregate
        return [_source(piece, NO_CLASS) for piece in self.aggregate_rows()]

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return how many rows are expected to match an atom."""
        size = self._sizes.get(atom)
        if size is None:
            sources = self.sources(atom, RelationVersion.NEW, exact=False, distinct_rows=False)
            size = self._sizes[atom] = sum(len(source.view.table) for source in sources)
        return expected(size, atom, bound)


def _source(piece: OverlayTable, member_of: int) -> TableSource:
    excluded = (TableView(piece.without, member_of),) if piece.without is not None else ()
    return TableSource(TableView(piece.table, member_of), RelationVersion.NEW, excluded)
