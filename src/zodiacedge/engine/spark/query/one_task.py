"""Answers a query by the embedded engine: whole in one task, or the rest of its body on bindings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import Answer, Settings
from zodiacedge.engine.embedded.evaluate.query import EmbeddedQuery
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import Relation as TableName
from zodiacedge.engine.embedded.storage.segment import Segment as Tables
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.storage.embedded_tables import (
    SignedFileReader,
    Translation,
    needs_values,
    segment_of,
)
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, refuse_clash
from zodiacedge.language.ast import Atom
from zodiacedge.terms import order_key, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.evaluate.inputs import Input
    from zodiacedge.engine.spark.query.bindings import Bindings
    from zodiacedge.language.ast import Query, Variable
    from zodiacedge.terms import Literal, Term

# A name that no predicate of a user can have.
_BINDINGS = "bindings of a query"


@dataclass(frozen=True)
class QueryTask:
    """A task: a resolved query, values for its parameters, and its inputs."""

    query: Query
    values: Mapping[Variable, Term]
    keys: Mapping[Term, int]
    inputs: tuple[Input, ...]
    terms: TermFiles
    hashing: Hashing = field(default_factory=Hashing)
    registry: Registry = field(default_factory=Registry)
    limits: Limits = field(default_factory=Limits)


def run(task: QueryTask) -> Answer:
    """Answer a query."""
    refuse_clash(task.keys, task.terms)
    return _answered(task, SignedFileReader())


def checked(task: QueryTask, reader: SignedFileReader, bindings: Bindings) -> Answer:
    """Answer a query whose body is left to check on bindings, given the rows that its atoms may match."""
    body = (Atom(_BINDINGS, bindings.variables), *task.query.body)
    return _answered(replace(task, query=replace(task.query, body=body)), reader, bindings.rows)


def _answered(task: QueryTask, reader: SignedFileReader, bindings: Keys | None = None) -> Answer:
    translation = Translation(task.keys, task.hashing)
    reads = [reader.read(i.relation, i.before, i.classes) for i in task.inputs]
    columns = [] if bindings is None else list(np.ascontiguousarray(bindings.T))
    real = bool(task.values) or needs_values(task.query.body)
    if real:
        translation.load_values([*columns, *reader.seen()], task.terms)
    tables = {read.relation: read.table(translation) for read in reads}
    store = Database(translation.terms, segment_of(tables, translation))
    if bindings is not None:
        rows = translation.rows(columns, len(columns)) if columns else np.zeros((len(bindings), 0), np.int32)
        store.show(Tables({TableName(_BINDINGS, len(columns)): Table.of(rows)}))
    settings = Settings(task.registry, task.limits)
    query = EmbeddedQuery(store, task.query, tuple(task.values), settings)
    answer = query(task.values)
    return Answer(tuple(answer.rows), answer.dropped) if real else _named(task, answer)


def _named(task: QueryTask, answer: Answer) -> Answer:
    """Decode the fingerprints in the answers of a query that was evaluated without values."""
    rows = [tuple(_key(term) for term in row) for row in answer.rows]
    keys = np.array([key for row in rows for key in row], np.int64)
    terms = task.terms.decode(keys) | {key: term for term, key in task.keys.items()}
    named = [tuple(terms[key] for key in row) for row in rows]
    return Answer(tuple(sorted(named, key=lambda row: tuple(map(order_key, row)))), answer.dropped)


def _key(term: Term) -> int:
    number: Literal = term  # type: ignore[assignment] # without values, a term is its fingerprint
    value = value_of(number)
    if not isinstance(value, int):
        raise TypeError(term)
    return value
