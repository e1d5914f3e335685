"""Lookups by key in one version, or in the next version of a change that is not committed.

A lookup is a delta query whose delta rows are the values of its parameters: planned and assembled once, run
for many rows at a time. An atom whose relation is named by `explicit_relation` reads explicit facts only.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import EXPLICIT_FACTS
from zodiacedge.engine.embedded.machine.assemble import Assembly
from zodiacedge.engine.embedded.machine.execute import execute
from zodiacedge.engine.embedded.maintain.delta_query import DELTA, VersionReads, source_of
from zodiacedge.engine.embedded.storage.overlay import OverlayTable
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, Relation
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.versions.draft import Draft
from zodiacedge.engine.limits import Meter
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.plan.order import arrange
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Settings
    from zodiacedge.engine.embedded.machine.sources import TableSource
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.language.ast import Fact, Query
    from zodiacedge.plan.algebra import RelationVersion
    from zodiacedge.terms import Term

    Row = tuple[Term, ...]

# The most decoded terms that are kept for later lookups.
_MOST_TERMS = 100_000


class _EnoughRowsError(Exception):
    """A lookup has as many rows as it may return."""


class EmbeddedLookups:
    """Lookups in the next version of a draft; an empty draft has the facts of the version in force."""

    joins_explicit = True

    def __init__(
        self, draft: Draft, settings: Settings, new_explicit: Mapping[Relation, Table] | None = None
    ) -> None:
        """Read a draft; `new_explicit` are its explicit facts of relations that had none before."""
        self.draft = draft
        self.new_explicit = new_explicit or {}
        self.settings = settings
        self.terms: dict[int, Term] = {}
        self.numbers: dict[Term, int] = {}

    @classmethod
    def of(cls, store: Database, settings: Settings) -> EmbeddedLookups:
        """Return lookups in the version in force."""
        return cls(Draft(store, settings.registry, lambda _: None, lambda _, __: None), settings)

    def prepare(self, query: Query, parameters: tuple[Variable, ...]) -> EmbeddedLookup:
        """Plan a resolved query without aggregates, whose parameters get values later."""
        return EmbeddedLookup(self, query, parameters)

    def explicit_among(self, facts: Collection[Fact]) -> frozenset[Fact]:
        """Return those of some facts that are explicit."""
        explicit = self.draft.store.explicit
        groups: dict[Relation, list[tuple[Fact, list[int]]]] = {}
        for fact in facts:
            ids = [self._find(term) for term in fact.args]
            if -1 in ids:
                continue
            relation = Relation(fact.relation, len(ids))
            if fact.relation == RDF_TYPE and len(ids) == 2:
                relation = Relation.of_class(ids.pop())
            groups.setdefault(relation, []).append((fact, ids))
        found: list[Fact] = []
        for relation, group in groups.items():
            rows = np.array([ids for _, ids in group], np.int32).reshape(len(group), relation.arity)
            held = self.draft.held(relation, rows, explicit)
            if relation in self.new_explicit:
                held |= self.new_explicit[relation].mask(rows)
            found += [fact for (fact, _), is_held in zip(group, held.tolist(), strict=True) if is_held]
        return frozenset(found)

    def _find(self, term: Term) -> int:
        number = self.numbers.get(term)
        if number is None:
            number = self.draft.store.dictionary.find(term)
            if number >= 0:
                self._remember(number, term)
        return number

    def number(self, term: Term) -> int:
        """Return the id of a term; append the term if it is new."""
        number = self.numbers.get(term)
        if number is None:
            number = self.draft.store.dictionary.encode(term)
            self._remember(number, term)
        return number

    def term(self, number: int) -> Term:
        """Return the term of an id."""
        term = self.terms.get(number)
        if term is None:
            term = self.draft.store.dictionary.decode(number)
            self._remember(number, term)
        return term

    def _remember(self, number: int, term: Term) -> None:
        if len(self.terms) >= _MOST_TERMS:
            self.terms.clear()
            self.numbers.clear()
        self.terms[number] = term
        self.numbers[term] = number

    @contextmanager
    def watching(self, target: Table, most: int) -> Iterator[None]:
        """Stop a lookup that has more rows than it may return; limits and waiting threads have their say."""
        meter = Meter(self.settings.limits, self.settings.yield_point)

        def look(rounds: int) -> None:
            del rounds
            meter.look("", None)
            if len(target) > most:
                raise _EnoughRowsError

        before, self.draft.look = self.draft.look, look
        try:
            yield
        finally:
            self.draft.look = before


class EmbeddedLookup:
    """A planned lookup."""

    def __init__(self, lookups: EmbeddedLookups, query: Query, parameters: tuple[Variable, ...]) -> None:
        """Plan and assemble."""
        self._lookups = lookups
        draft = lookups.draft
        self._given = Table(len(parameters))
        self._target = Table(len(query.columns))
        self._target.ensure_hash_set()
        body = (Atom(DELTA, parameters), *query.body) if parameters else query.body
        reads = _Reads(draft, draft.new, ((self._given, NO_CLASS),), lambda: ())
        reads.new_explicit = lookups.new_explicit
        wanted = frozenset(column for column in query.columns if isinstance(column, Variable))
        steps = arrange(body, (), 0 if parameters else None, reads, wanted)
        self._assembly = Assembly(draft.store, reads, draft.registry)
        self._assembly.add(steps, query.columns, self._target, later=False, rule=0)
        self._frame = self._assembly.frame([], 1)

    def __call__(self, given: Sequence[Row], most: int) -> tuple[Sequence[Row], bool]:
        """Return distinct rows of the columns, in any order, and whether these are all."""
        lookups, target = self._lookups, self._target
        if not given:
            return [], True
        number = lookups.number
        if self._given.arity:
            rows = np.array([[number(term) for term in row] for row in given], np.int32)
            self._given.refill(rows)
            self._given.settle()
        target.clear()
        with lookups.watching(target, most), suppress(_EnoughRowsError):
            execute(self._assembly, self._frame, lookups.draft.registry, lookups.draft.look)
        term = lookups.term
        found = target.rows[: most + 1].tolist()
        return [tuple([term(n) for n in row]) for row in found[:most]], len(found) <= most


class _Reads(VersionReads):
    """The tables that a lookup reads: those of the next version, or of explicit facts only."""

    new_explicit: Mapping[Relation, Table] = MappingProxyType({})

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return the tables that an atom reads."""
        if not atom.relation.startswith(EXPLICIT_FACTS):
            return super().sources(atom, read, exact=exact, distinct_rows=distinct_rows)
        relation = Relation(atom.relation.removeprefix(EXPLICIT_FACTS), len(atom.args))
        explicit = self.draft.store.explicit
        overlay = self.draft.gains(explicit)[0].get(relation)
        if overlay is not None:
            pieces = overlay.pieces()
        else:
            pieces = [OverlayTable(explicit.tables[relation])] if explicit.tables.get(relation) else []
        if relation in self.new_explicit:
            pieces.append(OverlayTable(self.new_explicit[relation]))
        return [source_of(piece, relation.member_of) for piece in pieces]
