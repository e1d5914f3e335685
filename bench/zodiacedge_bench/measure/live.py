"""A knowledge base with a task's rules and facts, on which changes are timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, Relation
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge_bench.measure.embedded import Loaded
    from zodiacedge_bench.measure.task import Task


def knowledge_base(task: Task, *, modules: bool) -> KnowledgeBase:
    """Open a knowledge base and commit the task's rules and facts to it, as one change.

    The facts are given as rows, not as millions of objects.
    """
    kb = KnowledgeBase(EmbeddedEngine(modules=modules), Settings())
    batch = EmbeddedBatch(store_of(kb))
    _fill(batch, task.loaded)
    kb.apply(Change(add_rules=tuple(task.program), loaded=(batch,)))
    return kb


def store_of(kb: KnowledgeBase) -> Database:
    """Return the tables of a knowledge base in the embedded engine."""
    state = kb.state
    if not isinstance(state, EmbeddedState):
        raise TypeError(state)
    return state.store


def _fill(batch: EmbeddedBatch, loaded: Loaded) -> None:
    numbers = batch.store.dictionary.encode_all(loaded.terms)
    for relation, rows in loaded.rows.items():
        member_of = relation.member_of
        if member_of != NO_CLASS:
            member_of = int(numbers[member_of])
        batch.add_rows(Relation(relation.name, relation.arity, member_of), numbers[rows])
