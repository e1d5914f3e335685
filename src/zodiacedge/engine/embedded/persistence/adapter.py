"""How the states of the embedded engine are kept: as tables of readable terms, made in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch, EmbeddedFactDelta
from zodiacedge.engine.embedded.persistence import columns
from zodiacedge.engine.embedded.state import EmbeddedState, EmbeddedUncommitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from zodiacedge.engine.api import Batch, FactDelta, State, UncommittedState
    from zodiacedge.engine.parts import PartitionKey
    from zodiacedge.engine.persistence import (
        PartitionFile,
        PartitionFiles,
        Partitions,
        PartitionWriter,
        RestoreInfo,
    )
    from zodiacedge.language.ast import Rule


class EmbeddedPersistence:
    """What the embedded engine offers to a store."""

    def restored(self, empty: State, parts: Partitions, told: RestoreInfo) -> EmbeddedState:
        """Return a state with the facts of some parts, on an empty one; nothing is evaluated."""
        return columns.restored(
            _state(empty),
            parts,
            told.rules,
            told.graph,
            seconds=told.seconds,
            dropped=told.dropped,
            registry=told.registry,
        )

    def add_part(self, batch: Batch, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a part to a batch."""
        columns.add_part(_batch(batch), key, table)

    def add_parts(self, batch: Batch, parts: Partitions) -> None:
        """Add the facts of files to a batch, a column at a time."""
        for key, table in parts:
            columns.add_part(_batch(batch), key, table)

    def counts(self, state: State) -> tuple[int, int]:
        """Return how many explicit facts there are, and how many facts all segments have together."""
        found = _state(state)
        return len(found.store.explicit), found.rows

    def counts_after(self, effect: FactDelta, attempt: UncommittedState) -> tuple[int, int]:
        """Return the same of what a change will come to."""
        if not isinstance(attempt, EmbeddedUncommitted):
            raise TypeError(attempt)
        return columns.explicit_after(_effect(effect)), columns.rows_after(attempt)

    def seconds(self, state: State) -> dict[frozenset[str], float]:
        """Return what evaluating each node from nothing took."""
        return {keys: segment.seconds for keys, segment in _state(state).store.segments.items()}

    def explicit_delta(
        self, effect: FactDelta, write: PartitionWriter
    ) -> tuple[Iterable[tuple[PartitionKey, pa.Table | PartitionFile]], ...]:
        """Return the explicit facts that come and those that go."""
        del write  # they are in this process, and so may be the record of them
        return columns.effect_pieces(_effect(effect))

    def signatures(self, state: State, rules: Mapping[str, Rule]) -> Mapping[PartitionKey, object]:
        """Return of each part what tells whether it changed in this process."""
        del rules
        return columns.signatures(_state(state))

    def changed_partitions(
        self,
        state: State,
        now: Mapping[PartitionKey, object],
        before: Mapping[PartitionKey, object],
        write: PartitionWriter,
    ) -> Iterator[tuple[PartitionKey, pa.Table | PartitionFiles]]:
        """Yield the parts whose signatures are not what they were."""
        del write
        changed = [key for key, signature in now.items() if before.get(key) != signature]
        return columns.tables(_state(state), changed)

    def captured(
        self, state: State, now: Mapping[PartitionKey, object], before: Mapping[PartitionKey, object]
    ) -> Callable[[AbstractContextManager[object]], Iterator[tuple[PartitionKey, pa.Table]]]:
        """Return what yields the parts that changed, as they are now, whatever becomes of the state."""
        found = _state(state)
        rows = columns.captured(found, [key for key, one in now.items() if before.get(key) != one])
        return lambda turn: columns.tables_of(found.store, rows, turn)


def _state(state: State) -> EmbeddedState:
    if not isinstance(state, EmbeddedState):
        raise TypeError(state)
    return state


def _batch(batch: Batch) -> EmbeddedBatch:
    if not isinstance(batch, EmbeddedBatch):
        raise TypeError(batch)
    return batch


def _effect(effect: FactDelta) -> EmbeddedFactDelta:
    if not isinstance(effect, EmbeddedFactDelta):
        raise TypeError(effect)
    return effect
