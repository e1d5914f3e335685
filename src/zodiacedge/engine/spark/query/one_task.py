"""Answers a query in one task, by the embedded engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import Answer, Settings
from zodiacedge.engine.embedded.evaluate.query import EmbeddedQuery
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.storage.embedded_tables import (
    SignedFileReader,
    Translation,
    needs_values,
    segment_of,
)
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles, refuse_clash
from zodiacedge.terms import order_key, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.spark.evaluate.inputs import Input
    from zodiacedge.language.ast import Query, Variable
    from zodiacedge.terms import Literal, Term


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
    reader, translation = SignedFileReader(), Translation(task.keys, task.hashing)
    reads = [reader.read(i.relation, i.before, i.classes) for i in task.inputs]
    real = bool(task.values) or needs_values(task.query.body)
    if real:
        translation.load_values(reader.seen(), task.terms)
    tables = {read.relation: read.table(translation) for read in reads}
    store = Database(translation.terms, segment_of(tables, translation))
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
