"""States of the embedded engine as partitions of a store, and back."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from zodiacedge.engine.embedded.persistence.columns import all_rows, batches_of, rows_of, table_of
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, by_class, in_pairs
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
    Captured = dict[PartitionKey, list[tuple[Relation, Ids]]]
    Tables = Iterator[tuple[PartitionKey, pa.Table]]

_EXPLICIT: frozenset[str] = frozenset()


class EmbeddedPersistence:
    """Makes tables of partitions in this process."""

    captures = True

    def restored(self, empty: EmbeddedState, partitions: Partitions, info: RestoreInfo) -> EmbeddedState:
        """Return a state with the facts of partitions, from an empty one; nothing is evaluated."""
        store, rules = empty.store, info.rules
        # Changes find the readers of a class by the classes that rules mention; evaluating would note them.
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
        return EmbeddedState(
            store,
            dropped=info.dropped,
            registry=info.registry,
            policy=empty.policy,
            graph=info.graph,
            rows=sum(map(len, segments.values())),
            seconds=sum(segment.seconds for segment in segments.values()),
        )

    def add_partition(self, batch: EmbeddedBatch, key: PartitionKey, table: pa.Table) -> None:
        """Add the facts of a partition to a batch."""
        for relation, rows in _relations(batch.store, key, rows_of(batch.store.dictionary, key, table)):
            batch.add_rows(relation, rows)

    def add_partitions(self, batch: EmbeddedBatch, partitions: Partitions) -> None:
        """Add the facts of files to a batch, a column at a time."""
        for key, table in partitions:
            self.add_partition(batch, key, table)

    def counts(self, state: EmbeddedState) -> tuple[int, int]:
        """Return the number of explicit facts, and that of the facts of all segments together."""
        return len(state.store.explicit), state.rows

    def counts_after(
        self, fact_delta: EmbeddedFactDelta, uncommitted: EmbeddedUncommitted
    ) -> tuple[int, int]:
        """Return the same of the state that a change leads to."""
        return len(fact_delta.store.explicit) + fact_delta.added - fact_delta.removed, uncommitted.facts

    def seconds(self, state: EmbeddedState) -> dict[frozenset[str], float]:
        """Return the seconds of evaluating each node from scratch."""
        return {keys: segment.seconds for keys, segment in state.store.segments.items()}

    def explicit_delta(
        self, fact_delta: EmbeddedFactDelta, write: PartitionWriter
    ) -> tuple[list[tuple[PartitionKey, pa.Table]], ...]:
        """Return the inserted and the deleted explicit facts."""
        del write  # they are in this process, and so may be the record of them
        return tuple(
            [
                (
                    _key(fact_delta.store, "explicit", _EXPLICIT, relation),
                    table_of(fact_delta.store, relation, rows),
                )
                for relation, rows in side.items()
                if len(rows)
            ]
            for side in (fact_delta.inserted, fact_delta.deleted)
        )

    def signatures(self, state: EmbeddedState, rules: Mapping[str, Rule]) -> dict[PartitionKey, Signature]:
        """Return the revisions of the tables of each partition that has rows; no row is read."""
        del rules
        found: dict[PartitionKey, Signature] = {}
        for one in _stored(state):
            found[one.key] = found.get(one.key, frozenset()) | {(one.relation, one.revision)}
        return found

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
        """Capture partitions, and yield them as tables whatever becomes of the state.

        The dictionary is asked for some rows at a time, in turn.
        """
        captured: Captured = {}
        for one in _stored(state):
            if one.key in keys:
                captured.setdefault(one.key, []).append((one.relation, one.rows.copy()))
        return _tables(state.store, captured, engine_lock or nullcontext())


class _Stored(NamedTuple):
    """Rows of a table that belong to a partition; a partition may have rows of several tables."""

    key: PartitionKey
    relation: Relation
    table: Table
    revision: int

    @property
    def rows(self) -> Ids:
        rows = self.table.rows
        if self.table.arity == self.relation.arity:
            return rows
        members: Ids = rows[rows[:, 1] == self.relation.member_of][:, :1]
        return members


def _stored(state: EmbeddedState) -> Iterator[_Stored]:
    """Yield the tables of partitions without reading rows; a table of all classes is yielded per class."""
    store = state.store
    for owner, segment in ((_EXPLICIT, store.explicit), *store.segments.items()):
        kind: Kind = "derived" if owner else "explicit"
        revisions = segment.revisions
        for relation, table in segment.tables.items():
            if not len(table):
                continue
            if relation != TYPED:
                yield _Stored(_key(store, kind, owner, relation), relation, table, revisions[relation])
                continue
            for number in revisions.classes(table):
                members = Relation(RDF_TYPE, 1, number)
                yield _Stored(_key(store, kind, owner, members), members, table, revisions[number])
        for rule, table in segment.aggregate_rows.items():
            if len(table):
                key = PartitionKey("aggregate", owner, rule, table.arity)
                yield _Stored(key, Relation(rule, table.arity), table, revisions[rule])


def _tables(store: Database, captured: Captured, engine_lock: AbstractContextManager[object]) -> Tables:
    for key, pieces in captured.items():
        batches = [batch for piece in pieces for batch in batches_of(store, *piece, engine_lock)]
        yield key, pa.concat_tables(batches)


def _key(store: Database, kind: Kind, owner: frozenset[str], relation: Relation) -> PartitionKey:
    name, arity = store.predicate(relation)
    return PartitionKey(kind, owner, name, arity)


def _add_empty_tables(store: Database, segment: Segment, rules: Mapping[str, Rule], *, pairs: bool) -> None:
    """Add the tables that evaluating a node would leave without rows."""
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
        yield Relation(RDF_TYPE, 1, store.dictionary.encode(IRI(key.predicate))), rows
    else:
        yield from by_class(Relation(key.predicate, key.arity), rows)


def _fill(table: Table, rows: Ids) -> None:
    # Kernels count on distinct rows, and a store may come from elsewhere.
    if table.insert(np.ascontiguousarray(rows)) != len(rows):
        raise BadPartitionError("a row occurs twice")
