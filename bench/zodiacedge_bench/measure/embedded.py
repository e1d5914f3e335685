"""The embedded engine on encoded facts, and the memory of its state.

Facts are encoded once. Each trial gets a store of its own, with copies of their rows, before the clock
starts; the clock measures planning, evaluation and counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch, EmbeddedFactDelta
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.terms.term_space import TermSpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.graph import HyperGraph
    from zodiacedge.language.ast import Fact, Predicate, Rule
    from zodiacedge.terms import Term

OURS = "zodiac"
NO_MODULES = "zodiac, no modules"
ON_ONE_CORE = {OURS: f"{OURS}, one core", NO_MODULES: f"{NO_MODULES}, one core"}
_WORD = 2**64


@dataclass(frozen=True)
class Loaded:
    """Encoded explicit facts: terms in the order of their ids, and distinct rows of ids."""

    terms: tuple[Term, ...]
    rows: Mapping[Relation, NDArray[np.int32]]

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Loaded:
        """Encode facts."""
        batch = EmbeddedBatch(Database())
        batch.add(facts)
        store = Database(batch.store.terms, batch.distinct())
        terms = tuple(map(store.dictionary.decode, range(len(store.dictionary))))
        return cls(terms, {name: table.rows.copy() for name, table in store.explicit.tables.items()})

    def __len__(self) -> int:
        """Return the number of facts."""
        return sum(map(len, self.rows.values()))

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """The hashes of the terms."""
        return term_hashes(self.terms)

    def store(self) -> Database:
        """Return a new store with only these facts."""
        terms, explicit = TermSpace(), Segment()
        terms.dictionary.encode_all(self.terms)
        for relation, rows in self.rows.items():
            explicit.table(relation).insert(rows)
        return Database(terms, explicit)


def copied(store: Database) -> Database:
    """Return a new store with the explicit facts of another, and the same terms."""
    explicit = Segment()
    for relation, table in store.explicit.tables.items():
        explicit.table(relation).insert(table.rows)
    return Database(store.terms, explicit)


def term_hashes(terms: Iterable[Term]) -> NDArray[np.uint64]:
    """Return the Python hashes of terms, valid in this process."""
    return np.fromiter((hash(term) % _WORD for term in terms), np.uint64)


class EmbeddedTrial:
    """One evaluation from scratch."""

    def __init__(
        self, store: Database, rules: Mapping[str, Rule], graph: HyperGraph, *, modules: bool
    ) -> None:
        """Take a store with facts only, which the trial changes."""
        self._state = EmbeddedState(store, policy=Policy(modules))
        self._rules = rules
        self._graph = graph
        self._counts: Mapping[Predicate, int] = {}

    @property
    def store(self) -> Database:
        """The tables, complete after the evaluation."""
        return self._state.store

    def evaluate(self) -> None:
        """Evaluate all nodes, and count."""
        nothing = EmbeddedFactDelta(self.store, Segment(), Segment())
        self._state = self._state.maintain(self._rules, self._graph, nothing, Settings()).commit()
        self._counts = self._state.derived_counts()

    def counts(self) -> dict[str, int]:
        """Return the derived facts per predicate."""
        return {predicate.name: count for predicate, count in self._counts.items()}


@dataclass(frozen=True, slots=True)
class Memory:
    """Allocated bytes of the arrays of a materialisation."""

    workload: str
    explicit_rows: int
    explicit_row_bytes: int
    explicit_index_bytes: int
    segment_rows: int
    segment_row_bytes: int
    segment_index_bytes: int
    complete_index_bytes: int
    """The same with all row-sets; evaluation builds only those that it needs."""
    terms: int
    dictionary_bytes: int

    @property
    def bytes_per_row(self) -> float:
        """Bytes per stored segment row, with its indexes and a row-set."""
        return (self.segment_row_bytes + self.complete_index_bytes) / max(self.segment_rows, 1)

    @property
    def bytes_per_term(self) -> float:
        """Bytes of the dictionary per term."""
        return self.dictionary_bytes / max(self.terms, 1)


def memory(workload: str, store: Database) -> Memory:
    """Return the memory of a store; this builds its row-sets."""
    rows, row_bytes, index_bytes = _allocated(store.segments.values())
    for segment in store.segments.values():
        for table in segment.tables.values():
            table.ensure_hash_set()
    complete_index_bytes = _allocated(store.segments.values())[-1]
    explicit_rows, explicit_row_bytes, explicit_index_bytes = _allocated([store.explicit])
    return Memory(
        workload,
        explicit_rows=explicit_rows,
        explicit_row_bytes=explicit_row_bytes,
        explicit_index_bytes=explicit_index_bytes,
        segment_rows=rows,
        segment_row_bytes=row_bytes,
        segment_index_bytes=index_bytes,
        complete_index_bytes=complete_index_bytes,
        terms=len(store.dictionary),
        dictionary_bytes=store.dictionary.nbytes,
    )


def _allocated(segments: Iterable[Segment]) -> tuple[int, int, int]:
    tables = [table for segment in segments for table in segment.tables.values()]
    sizes = [table.nbytes for table in tables]
    return sum(map(len, tables)), sum(rows for rows, _ in sizes), sum(indexes for _, indexes in sizes)
