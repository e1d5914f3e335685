"""States of the embedded engine as partitions of a store, and back."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from zodiacedge.engine.embedded.maintain.windows import filled
from zodiacedge.engine.embedded.persistence.columns import all_rows, batches_of, rows_of, table_of
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, by_class, in_pairs, members_of
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.persistence import BadPartitionError, PartitionKey
from zodiacedge.language.ast import body_atoms
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch, EmbeddedFactDelta
    from zodiacedge.engine.embedded.state import EmbeddedUncommitted
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.persistence import Kind, Partitions, PartitionWriter, RestoreInfo
    from zodiacedge.language.ast import Rule

    Signature = frozenset[tuple[Relation, int]]
    Tables = Iterator[tuple[PartitionKey, pa.Table]]

_EXPLICIT: frozenset[str] = frozenset()


class EmbeddedPersistence:
    """Persistence of embedded states; all tables are made in this process."""

    captures = True

    def restored(self, empty: EmbeddedState, partitions: Partitions, info: RestoreInfo) -> EmbeddedState:
        """Return a state with the facts of partitions, from an empty state, without evaluation."""
        store, rules = empty.store, info.rules
        # Changes find the readers of a class by the classes that rules mention; evaluation would record them.
        for rule in rules.values():
            for atom in (rule.head, *body_atoms(rule.body)):
                store.relations(atom)
        nodes = [frozenset(node.rules) for node in info.graph.nodes.values()]
        segments = {keys: Segment(seconds=info.seconds.get(keys, 0.0)) for keys in nodes}
        typed = {keys for keys in nodes if in_pairs(rules[key].head for key in keys)}
        classes: dict[frozenset[str], set[int]] = {keys: set() for keys in typed}
        for key, rows in all_rows(store.dictionary, partitions):
            segment = store.explicit if key.kind == "explicit" else segments[key.owner]
            if key.kind == "aggregate":
                _fill(segment.aggregate_rows.setdefault(key.predicate, Table(key.arity)), rows)
            elif key.kind == "derived" and key.owner in typed and _is_class(key):
                pairs = _pairs(store, key, rows)
                _fill(segment.table(TYPED), pairs)
                numbers = pairs[:1, 1] if key.arity == 1 else pairs[:, 1]
                classes[key.owner].update(numbers.tolist())
            else:
                for relation, members in _relations(store, key, rows):
                    _fill(segment.table(relation), members)
        store.tracked = True
        store.show(store.explicit)
        for keys, segment in segments.items():
            segment.revisions.set_classes(classes.get(keys, ()))
            _add_empty_tables(store, segment, {key: rules[key] for key in keys}, pairs=keys in typed)
            store.add_segment(keys, segment)
        windows = filled(store, rules, info.graph)
        store.reclamation.loaded()
        return EmbeddedState(
            store,
            dropped=info.dropped,
            registry=info.registry,
            policy=empty.policy,
            graph=info.graph,
            windows=windows,
            rows=sum(map(len, segments.values())),
            seconds=sum(segment.seconds for segment in segments.values()),
        )

    def add_partition(self, batch: EmbeddedBatch, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a partition to a batch."""
        for relation, rows in _relations(batch.store, key, rows_of(batch.store.dictionary, key, table)):
            batch.add_rows(relation, rows)

    def add_partitions(self, batch: EmbeddedBatch, partitions: Partitions) -> None:
        """Add the facts of partitions to a batch."""
        for key, table in partitions:
            self.add_partition(batch, key, table)

    def counts(self, state: EmbeddedState) -> tuple[int, int]:
        """Return the number of explicit facts, and the number of facts in all segments."""
        return len(state.store.explicit), state.rows

    def counts_after(
        self, fact_delta: EmbeddedFactDelta, uncommitted: EmbeddedUncommitted
    ) -> tuple[int, int]:
        """Return the same numbers for the state after a change."""
        return len(fact_delta.store.explicit) + fact_delta.added - fact_delta.removed, uncommitted.facts

    def seconds(self, state: EmbeddedState) -> dict[frozenset[str], float]:
        """Return the seconds that evaluating each node from scratch took."""
        return {keys: segment.seconds for keys, segment in state.store.segments.items()}

    def explicit_delta(
        self, fact_delta: EmbeddedFactDelta, write: PartitionWriter
    ) -> tuple[list[tuple[PartitionKey, pa.Table]], ...]:
        """Return the inserted and the deleted explicit facts."""
        del write  # the facts are in this process: no file is written
        store = fact_delta.store
        return tuple(
            [
                (_key(store, "explicit", _EXPLICIT, relation), table_of(store, relation, rows))
                for relation, rows in side.items()
                if len(rows)
            ]
            for side in (fact_delta.inserted, fact_delta.deleted)
        )

    def signatures(self, state: EmbeddedState, rules: Mapping[str, Rule]) -> dict[PartitionKey, Signature]:
        """Return the revisions of the tables of each partition that has rows; no row is read."""
        del rules
        signatures: dict[PartitionKey, Signature] = {}
        for stored in _stored_tables(state):
            revision = {(stored.relation, stored.revision)}
            signatures[stored.key] = signatures.get(stored.key, frozenset()) | revision
        return signatures

    def changed_partitions(
        self,
        state: EmbeddedState,
        now: Mapping[PartitionKey, Signature],
        before: Mapping[PartitionKey, Signature | None],
        write: PartitionWriter,
        engine_lock: AbstractContextManager[object],
    ) -> Tables:
        """Capture the partitions whose signatures changed, and yield them as tables."""
        del write
        return self.tables(state, {key for key in now if before.get(key) != now[key]}, engine_lock)

    def tables(
        self,
        state: EmbeddedState,
        keys: set[PartitionKey],
        engine_lock: AbstractContextManager[object] | None = None,
    ) -> Tables:
        """Capture partitions, and yield them as tables; later changes of the state do not matter.

        The lock is held for a batch of rows at a time, to read the dictionary.
        """
        captured = _Captured()
        for stored in _stored_tables(state):
            if stored.key in keys:
                captured.tables.setdefault(stored.key, []).append((stored.relation, stored.rows.copy()))
        state.store.terms.add_holder(captured)
        return _tables(state.store, captured, engine_lock or nullcontext())


@dataclass(eq=False)
class _Captured:
    """Copies of the rows of partitions, whose terms are kept until the rows are written."""

    tables: dict[PartitionKey, list[tuple[Relation, Ids]]] = field(default_factory=dict)

    def held_ids(self) -> Iterator[Ids]:
        """Yield the ids of the rows."""
        for tables in self.tables.values():
            for relation, rows in tables:
                yield np.array([relation.member_of], np.int32)
                yield rows


class _StoredTable(NamedTuple):
    """The rows of a table that belong to a partition; a partition may have rows of several tables."""

    key: PartitionKey
    relation: Relation
    table: Table
    revision: int

    @property
    def rows(self) -> Ids:
        rows = self.table.rows
        return rows if self.table.arity == self.relation.arity else members_of(self.relation, rows)


def _stored_tables(state: EmbeddedState) -> Iterator[_StoredTable]:
    """Yield the tables of partitions without reading rows; a table of all classes is yielded per class."""
    store = state.store
    for owner, segment in ((_EXPLICIT, store.explicit), *store.segments.items()):
        kind: Kind = "derived" if owner else "explicit"
        revisions = segment.revisions
        for relation, table in segment.tables.items():
            if not len(table):
                continue
            if relation != TYPED:
                yield _StoredTable(_key(store, kind, owner, relation), relation, table, revisions[relation])
                continue
            for number in revisions.classes(table):
                members = Relation.of_class(number)
                yield _StoredTable(_key(store, kind, owner, members), members, table, revisions[number])
        for rule, table in segment.aggregate_rows.items():
            if len(table):
                key = PartitionKey("aggregate", owner, rule, table.arity)
                yield _StoredTable(key, Relation(rule, table.arity), table, revisions[rule])


def _tables(store: Database, captured: _Captured, engine_lock: AbstractContextManager[object]) -> Tables:
    for key, tables in captured.tables.items():
        batches = [
            batch for relation, rows in tables for batch in batches_of(store, relation, rows, engine_lock)
        ]
        yield key, pa.concat_tables(batches)


def _key(store: Database, kind: Kind, owner: frozenset[str], relation: Relation) -> PartitionKey:
    name, arity = store.predicate(relation)
    return PartitionKey(kind, owner, name, arity)


def _add_empty_tables(store: Database, segment: Segment, rules: Mapping[str, Rule], *, pairs: bool) -> None:
    """Add the tables of a node that have no rows, as evaluation would."""
    for key, rule in rules.items():
        segment.table(store.filled_by(rule.head, pairs=pairs))
        if rule.aggregate and key not in segment.aggregate_rows:
            width = len(rule.aggregate.groups) + len(rule.aggregate.folds)
            segment.aggregate_rows[key] = Table(width)


def _is_class(key: PartitionKey) -> bool:
    return key.arity == 1 or (key.arity == 2 and key.predicate == RDF_TYPE)


def _pairs(store: Database, key: PartitionKey, rows: Ids) -> Ids:
    """Return members with their classes."""
    if key.arity == 2:
        return rows
    return np.insert(rows, 1, store.dictionary.encode(IRI(key.predicate)), axis=1)


def _relations(store: Database, key: PartitionKey, rows: Ids) -> Iterator[tuple[Relation, Ids]]:
    if key.arity == 1:
        yield Relation.of_class(store.dictionary.encode(IRI(key.predicate))), rows
    else:
        yield from by_class(Relation(key.predicate, key.arity), rows)


def _fill(table: Table, rows: Ids) -> None:
    # Kernels require distinct rows, and another program may have written the store.
    if table.insert(np.ascontiguousarray(rows)) != len(rows):
        raise BadPartitionError("a row occurs twice")
