"""Queries: prepared once, evaluated often.

A parameter is a variable that gets its value with each call. The values are a table of one row that the query
joins with, so a prepared query is planned as any other query, and its plan starts from them.
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
from zodiacedge.extras import has
from zodiacedge.language.ast import Atom, Query, Rule
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.io.formats.arrow_rows import ArrowRows
    from zodiacedge.language.ast import Variable
    from zodiacedge.terms import Term

# Names that no predicate of a user can have.
_ANSWERS = "answers to a query"
_PARAMETERS = "values given to a query"
# More rows become an Arrow table, which is made by columns.
_MOST_ROWS = 1000
# The most decoded terms that are kept for later answers.
_MOST_TERMS = 10_000


class _EnoughRowsError(Exception):
    """The rule machine has derived as many rows as the limit of the query."""


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
            self._values = Table(len(parameters))
            # The plan is for a table of one row.
            self._values.append_distinct(np.zeros((1, len(parameters)), np.int32))
            store = store.with_segment(Segment({Relation(_PARAMETERS, len(parameters)): self._values}))
            body = (Atom(_PARAMETERS, parameters, query.span), *body)
        rule = Rule(Atom(_ANSWERS, query.columns, query.span), body, span=query.span)
        # A plan that starts from the values only scans them, so new values need no index or hash set.
        starts = 0 if parameters else None
        self._run = NodeEvaluation(store, {"": rule}, settings.registry, self._watch, starts=starts)
        self._run.assemble(bits=not parameters)
        self._fresh = True
        self._terms: dict[int, Term] = {}

    def __call__(self, values: Mapping[Variable, Term]) -> Answer:
        """Evaluate the query with a value for each parameter."""
        self._meter = Meter(self._settings.limits)
        if not self._fresh:
            self._run.reset()
        self._fresh = False
        encode = self._store.dictionary.encode
        if self._parameters:
            self._values.rows[0] = [encode(values[v]) for v in self._parameters]
        with suppress(_EnoughRowsError):
            self._run.run()
        (table,) = self._run.segment.tables.values()
        ids = table.rows[: self._limit]
        dropped = self._run.dropped().get("")
        if len(ids) > _MOST_ROWS and ids.shape[1]:
            by_columns = self._by_columns(ids)
            if by_columns is not None:
                return Answer(by_columns, dropped)
        rows = self._rows(ids)
        if len(rows) > 1:
            rows.sort(key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(rows), dropped)

    def _by_columns(self, ids: Ids) -> ArrowRows | None:
        if not has("tables"):
            return None
        # Both load pyarrow.
        from zodiacedge.engine.embedded.evaluate.answer_table import table_of_ids  # noqa: PLC0415
        from zodiacedge.io.formats.arrow_rows import ArrowRows  # noqa: PLC0415

        table = table_of_ids(self._store.dictionary, ids)
        return None if table is None else ArrowRows(table)

    def _rows(self, ids: Ids) -> list[tuple[Term, ...]]:
        decode, terms = self._store.dictionary.decode, self._terms
        rows: list[list[int]] = ids.tolist()
        for row in rows:
            for number in row:
                if number not in terms:
                    terms[number] = decode(number)
        decoded = [tuple([terms[number] for number in row]) for row in rows]
        if len(terms) > _MOST_TERMS:
            terms.clear()
        return decoded

    def _watch(self, rounds: int, facts: int) -> None:
        self._meter.look("", self._span)
        self._meter.count(facts, rounds, "", self._span)
        if self._limit is not None and facts >= self._limit:
            raise _EnoughRowsError
