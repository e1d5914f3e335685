"""Explicit rows in the order of a moment: those older than a bound cost what they are, not what is kept.

No row of a table has an earlier moment than its mark, so only the moments from the mark up to the bound are
looked up, in the ordered moments of the dictionary and then in an index of the table. Rows that come with an
earlier moment lower the mark. Small tables, and members of classes, are scanned.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.maintain.delta_query import DELTA, DeltaQuery, evaluate_delta
from zodiacedge.engine.embedded.storage.relation import NO_CLASS
from zodiacedge.engine.embedded.versions.draft import Draft
from zodiacedge.language.ast import Atom, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.registry import Registry

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The rows of a table that are scanned as quickly as looked up.
_FEW = 4096


class MomentQueues:
    """The marks of the columns that were asked for, in the version in force."""

    def __init__(self) -> None:
        """Start without marks."""
        self._marks: dict[tuple[Relation, int], int] = {}
        self._queries: dict[tuple[Relation, int], DeltaQuery] = {}

    def older(
        self, store: Database, registry: Registry, relation: Relation, column: int, bound: datetime
    ) -> Ids:
        """Return the explicit rows of a relation with an earlier moment in a column."""
        table = store.explicit.tables[relation]
        micros = (bound - _EPOCH) // timedelta(microseconds=1)
        if len(table) < _FEW or relation.is_class:
            self._marks.pop((relation, column), None)
            rows = table.rows
            return rows[store.terms.are_earlier(rows[:, column], bound)]
        mark = self._marks.get((relation, column))
        if mark is None:
            rows, mark = table.rows, _earliest(store, table.rows[:, column])
            older = rows[store.terms.are_earlier(rows[:, column], bound)]
            store.terms.moments.want()
        elif mark < micros:
            moments = store.terms.moments.known_between(mark - 1, micros - 1)
            older = self._with(store, registry, relation, column, moments) if len(moments) else table.rows[:0]
            # They are removed, or asked for again.
            mark = min(_earliest(store, older[:, column]), micros)
        else:
            return table.rows[:0]
        self._marks[relation, column] = mark
        return older

    def inserted(self, store: Database, inserted: Mapping[Relation, Ids]) -> None:
        """Lower the marks of tables that get rows with earlier moments."""
        for (relation, column), mark in self._marks.items():
            if relation in inserted:
                first = _earliest(store, inserted[relation][:, column])
                self._marks[relation, column] = min(mark, first)

    def _with(
        self, store: Database, registry: Registry, relation: Relation, column: int, moments: Ids
    ) -> Ids:
        args = tuple(Variable(f"V{n}") for n in range(relation.arity))
        query = self._queries.get((relation, column))
        if query is None:
            body = (Atom(DELTA, (args[column],)), Atom(relation.name, args))
            query = self._queries[relation, column] = DeltaQuery(args, body, 0)
        draft = Draft(store, registry, lambda _: None, lambda _, __: None)
        rows = evaluate_delta(draft, query, [(moments.reshape(-1, 1), NO_CLASS)], None, old=True)
        # Rules may derive facts of the relation too.
        return rows[store.explicit.tables[relation].mask(rows)]


def _earliest(store: Database, ids: Ids) -> int:
    """Return the microseconds of the first moment among terms, the greatest word if there is none."""
    dictionary = store.dictionary
    micros = dictionary.payloads[ids][dictionary.kinds[ids] == L.K_MOMENT]
    return int(micros.min()) if len(micros) else int(np.iinfo(np.int64).max)
