"""Queries: prepared once, answered as often as asked.

A parameter is a variable that gets a value later. The values stand in a table of one row that the query
joins with, so a prepared query is planned as any other, and its plan starts from them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import Answer, Settings
from zodiacedge.engine.embedded.evaluate.seminaive import NodeEvaluation
from zodiacedge.engine.embedded.storage.relation import Relation
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.limits import Meter
from zodiacedge.language.ast import Atom, Query, Rule
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.language.ast import Variable
    from zodiacedge.terms import Term

# Names that no predicate of a user can have.
_ANSWERS = "answers to a query"
_GIVEN = "values given to a query"
# Terms of earlier answers that are kept for the next.
_MOST_TERMS = 10_000


class _EnoughRowsError(Exception):
    """The rule machine has derived as many rows as the query asks for."""


class EmbeddedQuery:
    """A resolved query on one state."""

    def __init__(
        self, store: Database, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> None:
        """Plan and assemble."""
        self._store = store
        self._settings = settings
        self._parameters = parameters
        self._span = query.span
        self._limit = query.limit
        self._meter = Meter(settings.limits)
        body = query.body
        if parameters:
            self._given = Table(len(parameters))
            # Planning sees the one row that there will be.
            self._given.append_distinct(np.zeros((1, len(parameters)), np.int32))
            store = store.with_segment(Segment({Relation(_GIVEN, len(parameters)): self._given}))
            body = (Atom(_GIVEN, parameters, query.span), *body)
        rule = Rule(Atom(_ANSWERS, query.columns, query.span), body, span=query.span)
        # A plan that starts from the values only scans them, so nothing else has to know of new ones.
        starts = 0 if parameters else None
        self._run = NodeEvaluation(store, {"": rule}, settings.registry, self._watch, starts=starts)
        self._run.assemble(bits=not parameters)
        self._fresh = True
        self._terms: dict[int, Term] = {}

    def __call__(self, values: Mapping[Variable, Term]) -> Answer:
        """Answer the query, given a value for each parameter."""
        self._meter = Meter(self._settings.limits)
        if not self._fresh:
            self._run.reset()
        self._fresh = False
        encode = self._store.dictionary.encode
        if self._parameters:
            self._given.rows[0] = [encode(values[v]) for v in self._parameters]
        with suppress(_EnoughRowsError):
            self._run.run()
        found = self._rows()
        if len(found) > 1:
            found.sort(key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(found), self._run.dropped().get(""))

    def _rows(self) -> list[tuple[Term, ...]]:
        decode, terms = self._store.dictionary.decode, self._terms
        (table,) = self._run.segment.tables.values()
        rows: list[list[int]] = table.rows[: self._limit].tolist()
        for row in rows:
            for number in row:
                if number not in terms:
                    terms[number] = decode(number)
        found = [tuple([terms[number] for number in row]) for row in rows]
        if len(terms) > _MOST_TERMS:
            terms.clear()
        return found

    def _watch(self, rounds: int, facts: int) -> None:
        self._meter.look("", self._span)
        self._meter.count(facts, rounds, "", self._span)
        if self._limit is not None and facts >= self._limit:
            raise _EnoughRowsError
