"""The facts of the embedded engine as parts for a store, and back, a column at a time.

Texts go from the dictionary's arena into Arrow arrays and back without a Python object per fact; only terms
with a language or a datatype of their own become objects, once per distinct term.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.embedded.engine import EmbeddedState, EmbeddedUncommitted
from zodiacedge.engine.embedded.expressions.text_vectorised import encode_strings, strings
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.storage.relation import TYPED, Relation, as_pairs, by_class, in_pairs
from zodiacedge.engine.embedded.storage.row_algebra import row_hashes
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.parts import PartitionKey
from zodiacedge.engine.persistence import BadPartitionError
from zodiacedge.language.checks import body_atoms
from zodiacedge.terms import IRI, RDF_TYPE, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from zodiacedge.engine.api import Dropped
    from zodiacedge.engine.embedded.ingest.batch import EmbeddedBatch, EmbeddedFactDelta
    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.parts import Kind
    from zodiacedge.engine.registry import Registry
    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Rule

    Captured = dict[PartitionKey, list[tuple[Relation, Ids]]]
    Codes = NDArray[np.int32]

NAMES = {
    L.K_IRI: "iri",
    L.K_BLANK: "blank",
    L.K_STRING: "string",
    L.K_INTEGER: "integer",
    L.K_DECIMAL: "decimal",
    L.K_DOUBLE: "double",
    L.K_FLOAT: "float",
    L.K_BOOLEAN: "boolean",
    L.K_MOMENT: "dateTime",
}
_KINDS = {name: kind for kind, name in NAMES.items()}
_REALS = (L.K_DECIMAL, L.K_DOUBLE, L.K_FLOAT)
# So many rows become one Arrow array: their texts must fit 32-bit offsets.
_TOGETHER = 1 << 18
# So many are written while somebody may wait for their turn: a few hundredths of a second.
_WRITTEN_TOGETHER = 1 << 16
# Parts of fewer rows are read together.
_SMALL = 1 << 10
_NOBODY: frozenset[str] = frozenset()


# From tables to parts


def pieces(state: EmbeddedState) -> Iterator[tuple[PartitionKey, Relation, Ids]]:
    """Yield the rows of all tables with the part that each belongs to; a part may come more than once."""
    store = state.store
    yield from _owned(store, "explicit", _NOBODY, store.explicit)
    for keys, segment in store.segments.items():
        yield from _owned(store, "derived", keys, segment)
        for rule, table in segment.aggregate_rows.items():
            relation = Relation(rule, table.arity)
            yield PartitionKey("aggregate", keys, rule, table.arity), relation, table.rows


def effect_pieces(effect: EmbeddedFactDelta) -> tuple[list[tuple[PartitionKey, pa.Table]], ...]:
    """Return the facts that come and those that go."""
    return tuple(
        [
            (_key(effect.store, "explicit", _NOBODY, relation), table_of(effect.store, relation, rows))
            for relation, rows in side.items()
            if len(rows)
        ]
        for side in (effect.new, effect.old)
    )


def signatures(state: EmbeddedState) -> dict[PartitionKey, tuple[int, int]]:
    """Return the size of each part and a sum over its rows, which tell whether it changed in this process."""
    found: dict[PartitionKey, tuple[int, int]] = {}
    for key, relation, rows in pieces(state):
        count, total = found.get(key, (0, 0))
        if len(rows):
            total += int(row_hashes(rows.T, len(rows), relation.member_of + 2).sum(dtype=np.uint64))
            found[key] = count + len(rows), total % 2**64
    return found


def explicit_after(effect: EmbeddedFactDelta) -> int:
    """Return how many explicit facts there will be."""
    return len(effect.store.explicit) + effect.added - effect.removed


def rows_after(attempt: EmbeddedUncommitted) -> int:
    """Return how many facts all segments will have together."""
    return attempt.work.total


def tables(state: EmbeddedState, wanted: Iterable[PartitionKey]) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield some parts as Arrow tables."""
    return tables_of(state.store, captured(state, wanted), nullcontext())


def captured(state: EmbeddedState, wanted: Iterable[PartitionKey]) -> Captured:
    """Return the rows of some parts as they are now, whatever becomes of the state."""
    asked = set(wanted)
    found: Captured = {}
    for key, relation, rows in pieces(state):
        if key in asked:
            found.setdefault(key, []).append((relation, rows.copy()))
    return found


def tables_of(
    store: Database, parts: Captured, turn: AbstractContextManager[object]
) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield captured parts as Arrow tables; the dictionary is asked for some rows at a time, in turn."""
    for key, pieces_of_it in parts.items():
        batches = [one for piece in pieces_of_it for one in _batches(store, *piece, turn)]
        yield key, pa.concat_tables(batches)


def table_of(store: Database, relation: Relation, rows: Ids) -> pa.Table:
    """Return rows of a relation as an Arrow table of readable terms, its class included if that is no IRI."""
    return pa.concat_tables(list(_batches(store, relation, rows, nullcontext())))


def _batches(
    store: Database, relation: Relation, rows: Ids, turn: AbstractContextManager[object]
) -> Iterator[pa.Table]:
    for n in range(0, max(len(rows), 1), _WRITTEN_TOGETHER):
        some = rows[n : n + _WRITTEN_TOGETHER]
        with turn:
            if relation.is_class and not isinstance(store.dictionary.decode(relation.member_of), IRI):
                some = as_pairs(relation, some)
            batch = _batch(store.dictionary, some)
        yield batch


def _owned(
    store: Database, kind: Kind, owner: frozenset[str], segment: Segment
) -> Iterator[tuple[PartitionKey, Relation, Ids]]:
    for relation, table in segment.tables.items():
        for one, rows in by_class(relation, table.rows):
            yield _key(store, kind, owner, one), one, rows


def _key(store: Database, kind: Kind, owner: frozenset[str], relation: Relation) -> PartitionKey:
    name, arity = store.predicate(relation)
    return PartitionKey(kind, owner, name, arity)


def _batch(dictionary: Dictionary, rows: Ids) -> pa.Table:
    columns: dict[str, pa.Array] = {"row": pa.nulls(len(rows))}
    for n, ids in enumerate(rows.T):
        columns[f"a{n}"], columns[f"a{n}_type"] = _written(dictionary, np.ascontiguousarray(ids))
    return pa.table(columns).drop_columns("row") if rows.shape[1] else pa.table(columns)


def _written(dictionary: Dictionary, ids: Ids) -> tuple[pa.Array, pa.Array]:
    kinds = dictionary.kinds[ids]
    if len(ids) and (kinds == kinds[0]).all():
        return _texts(dictionary, int(kinds[0]), ids)
    texts: list[pa.Array] = []
    types: list[pa.Array] = []
    order: list[NDArray[np.int64]] = []
    for kind in np.unique(kinds).tolist():
        places = np.flatnonzero(kinds == kind)
        order.append(places)
        text, name = _texts(dictionary, kind, ids[places])
        texts.append(text)
        types.append(name)
    if not order:
        return pa.array([], pa.string()), pa.array([], pa.string())
    text, name = pa.concat_arrays(texts), pa.concat_arrays(types)
    back = pa.array(np.argsort(np.concatenate(order), kind="stable"))
    return text.take(back), name.take(back)


def _texts(dictionary: Dictionary, kind: int, ids: Ids) -> tuple[pa.Array, pa.Array]:
    if kind in {L.K_TAGGED, L.K_OTHER}:
        return _own_types(dictionary, ids)
    payloads = dictionary.payloads
    if kind <= L.K_OTHER:
        text = strings(dictionary, ids)
    elif kind == L.K_INTEGER:
        text = pa.array(payloads[ids]).cast(pa.string())
    elif kind in _REALS:
        text = pa.array(payloads[ids].view(np.float64)).cast(pa.string())
    elif kind == L.K_BOOLEAN:
        text = pa.array(payloads[ids] != 0).cast(pa.string())
    else:
        moments = pa.array(payloads[ids]).view(pa.timestamp("us")).cast(pa.string())
        text = pc.binary_join_element_wise(pc.replace_substring(moments, " ", "T"), "Z", "")
    return text, pa.repeat(NAMES[kind], len(ids))


def _own_types(dictionary: Dictionary, ids: Ids) -> tuple[pa.Array, pa.Array]:
    distinct, places = np.unique(ids, return_inverse=True)
    terms = [term for term in map(dictionary.decode, distinct.tolist()) if isinstance(term, Literal)]
    texts = pa.array([term.lexical for term in terms], pa.string())
    types = [f"@{term.language}" if term.language else f"<{term.datatype}>" for term in terms]
    where = pa.array(places.ravel())
    return texts.take(where), pa.array(types, pa.string()).take(where)


# From parts to tables


def add_part(batch: EmbeddedBatch, key: PartitionKey, table: pa.Table) -> None:
    """Add the facts of a part to a batch."""
    for relation, rows in _relations(batch.store, key, rows_of(batch.store.dictionary, key, table)):
        batch.add_rows(relation, rows)


def restored(
    empty: EmbeddedState,
    parts: Iterable[tuple[PartitionKey, pa.Table]],
    rules: Mapping[str, Rule],
    graph: HyperGraph,
    *,
    seconds: Mapping[frozenset[str], float],
    dropped: Mapping[str, Dropped],
    registry: Registry,
) -> EmbeddedState:
    """Return a state with the facts of some parts, on an empty one; nothing is evaluated."""
    store = empty.store
    # Changes find the readers of a class by the classes that rules mention; evaluating would note them.
    for rule in rules.values():
        for atom in (rule.head, *body_atoms(rule.body)):
            store.relations(atom)
    segments = {
        frozenset(node.rules): Segment(seconds=seconds.get(frozenset(node.rules), 0.0))
        for node in graph.nodes.values()
    }
    typed = {keys for keys in segments if in_pairs(rules[key].head for key in keys)}
    for key, rows in _all_rows(store.dictionary, parts):
        if key.kind == "aggregate":
            hidden = segments[key.owner].aggregate_rows
            _filled(hidden.setdefault(key.predicate, Table(key.arity)), rows)
            continue
        segment = store.explicit if key.kind == "explicit" else segments[key.owner]
        if key.kind == "derived" and key.owner in typed and _is_class(key):
            _filled(segment.table(TYPED), _in_pairs(store, key, rows))
            continue
        for relation, some in _relations(store, key, rows):
            _filled(segment.table(relation), some)
    store.show(store.explicit)
    for keys, segment in segments.items():
        for one in keys:
            # As evaluating would leave it: there is a table for what has no facts, too.
            segment.table(store.filled_by(rules[one].head, pairs=keys in typed))
        for one in keys - segment.aggregate_rows.keys():
            aggregate = rules[one].aggregate
            if aggregate:
                segment.aggregate_rows[one] = Table(len(aggregate.groups) + len(aggregate.folds))
        store.add_segment(keys, segment)
    return EmbeddedState(
        store,
        dropped=dropped,
        registry=registry,
        policy=empty.policy,
        graph=graph,
        rows=sum(map(len, segments.values())),
        seconds=sum(segment.seconds for segment in segments.values()),
    )


def _is_class(key: PartitionKey) -> bool:
    return key.arity == 1 or (key.arity == 2 and key.predicate == RDF_TYPE)


def _in_pairs(store: Database, key: PartitionKey, rows: Ids) -> Ids:
    if key.arity == 2:
        return rows
    return np.insert(rows, 1, store.dictionary.encode(IRI(key.predicate)), axis=1)


def _relations(store: Database, key: PartitionKey, rows: Ids) -> Iterator[tuple[Relation, Ids]]:
    if key.arity == 1:
        yield Relation.of_class(store.dictionary.encode(IRI(key.predicate))), rows
    else:
        yield from by_class(Relation(key.predicate, key.arity), rows)


def _filled(table: Table, rows: Ids) -> Table:
    # Kernels count on distinct rows, and a store may come from elsewhere.
    if table.insert(np.ascontiguousarray(rows)) != len(rows):
        raise BadPartitionError("a row stands there twice")
    return table


def _all_rows(
    dictionary: Dictionary, parts: Iterable[tuple[PartitionKey, pa.Table]]
) -> Iterator[tuple[PartitionKey, Ids]]:
    """Yield the rows of parts, many small ones at once: that takes about as long as one of them."""
    small: list[tuple[PartitionKey, pa.Table]] = []
    waiting = 0
    for key, table in parts:
        if len(table) > _SMALL:
            yield key, rows_of(dictionary, key, table)
            continue
        small.append((key, table))
        waiting += len(table)
        if waiting > _WRITTEN_TOGETHER:
            yield from _rows_together(dictionary, small)
            small, waiting = [], 0
    yield from _rows_together(dictionary, small)


def _rows_together(
    dictionary: Dictionary, parts: Sequence[tuple[PartitionKey, pa.Table]]
) -> Iterator[tuple[PartitionKey, Ids]]:
    found = [np.zeros((len(table), key.arity), np.int32) for key, table in parts]
    for n in range(max((key.arity for key, _ in parts), default=0)):
        having = [place for place, (key, _) in enumerate(parts) if key.arity > n]
        columns = [
            pa.concat_arrays(
                [chunk.cast(pa.string()) for place in having for chunk in parts[place][1].column(name).chunks]
            )
            for name in (f"a{n}", f"a{n}_type")
        ]
        batch = pa.record_batch(columns, ["text", "type"])
        batch.validate(full=True)
        numbers = _read(dictionary, *batch.columns)
        start = 0
        for place in having:
            rows = found[place]
            rows[:, n] = numbers[start : start + len(rows)]
            start += len(rows)
    yield from zip((key for key, _ in parts), found, strict=True)


def rows_of(dictionary: Dictionary, key: PartitionKey, table: pa.Table) -> Ids:
    """Return the rows of a part; its terms go into a dictionary."""
    rows = np.zeros((len(table), key.arity), np.int32)
    for n in range(key.arity):
        start = 0
        named = table.select([f"a{n}", f"a{n}_type"])
        for batch in named.combine_chunks().to_batches(max_chunksize=_TOGETHER):
            batch.validate(full=True)
            rows[start : start + len(batch), n] = _read(dictionary, *batch.columns)
            start += len(batch)
    return rows


def _read(dictionary: Dictionary, texts: pa.Array, types: pa.Array) -> Ids:
    if texts.null_count or types.null_count:
        raise BadPartitionError("an argument is missing")
    coded = types if pa.types.is_dictionary(types.type) else types.dictionary_encode()
    codes: Codes = coded.indices.to_numpy(zero_copy_only=False)
    names = coded.dictionary.to_pylist()
    if len(names) == 1:
        return _encoded(dictionary, str(names[0]), texts)
    found = np.zeros(len(texts), np.int32)
    for code, name in enumerate(names):
        places = np.flatnonzero(codes == code)
        if len(places):
            found[places] = _encoded(dictionary, str(name), texts.take(pa.array(places)))
    return found


def _encoded(dictionary: Dictionary, name: str, texts: pa.Array) -> Ids:
    texts = texts.cast(pa.string())
    kind = _KINDS.get(name)
    if kind is None:
        return _encoded_own_type(dictionary, name, texts)
    if kind <= L.K_OTHER:
        return encode_strings(dictionary, texts, kind)
    if kind == L.K_INTEGER:
        bits = texts.cast(pa.int64()).to_numpy()
    elif kind in _REALS:
        # Zero has one sign.
        bits = (texts.cast(pa.float64()).to_numpy() + 0.0).view(np.int64)
        if not np.isfinite(bits.view(np.float64)).all():
            raise BadPartitionError("a number is not finite")
    elif kind == L.K_BOOLEAN:
        bits = texts.cast(pa.bool_()).cast(pa.int64()).to_numpy()
    else:
        bits = pc.replace_substring(texts, "Z", "").cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    return dictionary.encode_numbers(kind, bits)


def _encoded_own_type(dictionary: Dictionary, name: str, texts: pa.Array) -> Ids:
    if name.startswith("@") and "\0" not in name and len(name) > 1:
        prefix, kind = name[1:], L.K_TAGGED
    elif name.startswith("<") and name.endswith(">") and "\0" not in name:
        prefix, kind = name[1:-1], L.K_OTHER
    else:
        raise BadPartitionError(f"there is no type {name!r}")
    return encode_strings(dictionary, pc.binary_join_element_wise(f"{prefix}\0", texts, ""), kind)
