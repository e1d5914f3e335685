"""The embedded engine from facts that are already encoded, and the memory that its state takes.

Facts are encoded once. Each trial copies terms and rows into a store of its own outside the clock; the
clock sees planning, evaluation and counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.node import NodeRun
from zodiacedge.engine.embedded.store import Relation, Store
from zodiacedge.engine.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.store import Segment
    from zodiacedge.graph import HyperGraph
    from zodiacedge.language.ast import Fact, Predicate, Rule
    from zodiacedge.terms import Term


@dataclass(frozen=True, slots=True)
class Loaded:
    """Explicit facts as a store holds them: terms in the order of their ids, and rows of ids."""

    terms: tuple[Term, ...]
    rows: Mapping[Relation, NDArray[np.int32]]

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Loaded:
        """Encode facts."""
        store = Store()
        store.load(facts)
        terms = tuple(map(store.dictionary.decode, range(len(store.dictionary))))
        return cls(terms, {name: table.rows.copy() for name, table in store.explicit.tables.items()})

    def __len__(self) -> int:
        """Return the number of facts."""
        return sum(map(len, self.rows.values()))

    def store(self) -> Store:
        """Return a new store with these facts, and nothing else."""
        fresh = Store()
        fresh.dictionary.encode_all(self.terms)
        for relation, rows in self.rows.items():
            fresh.table(fresh.explicit, relation).insert(rows)
        return fresh


class EmbeddedTrial:
    """One evaluation from scratch."""

    def __init__(
        self, loaded: Loaded, rules: Mapping[str, Rule], graph: HyperGraph, *, modules: bool
    ) -> None:
        """Copy the facts into a store of their own."""
        self.store = loaded.store()
        self._rules = rules
        self._graph = graph
        self._modules = modules
        self._counts: Mapping[Predicate, int] = {}

    def work(self) -> None:
        """Evaluate node after node, and count."""
        # What EmbeddedEngine.materialise does once its facts are loaded.
        registry = Registry()
        for node in self._graph.order:
            own = {key: self._rules[key] for key in node.rules}
            run = NodeRun(self.store, own, registry, lambda _rounds, _facts: None, modules=self._modules)
            self.store.add_segment(frozenset(own), run.evaluate().segment)
        self._counts = self.store.counts(self.store.segments.values())

    def counts(self) -> dict[str, int]:
        """Return the derived facts per predicate."""
        return {predicate.name: count for predicate, count in self._counts.items()}


@dataclass(frozen=True, slots=True)
class Memory:
    """Allocated bytes of a materialisation, as its arrays tell them."""

    workload: str
    explicit_rows: int
    explicit_row_bytes: int
    explicit_index_bytes: int
    segment_rows: int
    segment_row_bytes: int
    segment_index_bytes: int
    complete_index_bytes: int
    """The same once every row-set is there; evaluation leaves out those that nobody asked for."""
    terms: int
    dictionary_bytes: int

    @property
    def bytes_per_row(self) -> float:
        """Bytes per stored segment row, with its indexes and a row-set."""
        return (self.segment_row_bytes + self.complete_index_bytes) / max(self.segment_rows, 1)


def memory(workload: str, store: Store) -> Memory:
    """Return what a store allocated; its row-sets are built on the way."""
    rows, row_bytes, index_bytes = _allocated(store.segments.values())
    for segment in store.segments.values():
        for table in segment.tables.values():
            table.need_rows()
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
    return sum(map(len, tables)), sum(rows for rows, _ in sizes), sum(finders for _, finders in sizes)
