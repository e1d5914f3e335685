"""Codec of term ids: rows as Arrow columns of readable terms, and back, a column at a time.

Texts are copied between the dictionary's arena and Arrow arrays without a Python object per fact; only terms
with a language tag or another datatype become objects, once per distinct term.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.embedded.expressions.text_vectorised import encode_strings, strings
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.storage.relation import NO_CLASS
from zodiacedge.engine.persistence import BadPartitionError
from zodiacedge.terms import IRI, XSD_DATE, XSD_DAY_TIME_DURATION, Literal, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.storage.database import Database
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids
    from zodiacedge.engine.persistence import PartitionKey

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
    L.K_DATE: "date",
}
# Durations, and dates without a value; earlier versions wrote all dates like this.
_READ_AS_TERMS = (f"<{XSD_DAY_TIME_DURATION}>", f"<{XSD_DATE}>")
_KINDS = {name: kind for kind, name in NAMES.items()}
_REALS = (L.K_DECIMAL, L.K_DOUBLE, L.K_FLOAT)
# The most rows of an Arrow array: their texts must fit 32-bit offsets.
_MOST_ROWS = 1 << 18
# The most rows of a batch, while other threads wait for the lock: a few hundredths of a second.
_BATCH_ROWS = 1 << 16
# Partitions of up to so many rows are read together.
_SMALL = 1 << 10


# From rows to tables


def table_of(store: Database, relation: Relation, rows: Ids) -> pa.Table:
    """Return rows of a relation as an Arrow table of readable terms; a class that is no IRI is a column."""
    return pa.concat_tables(list(batches_of(store, relation, rows, nullcontext())))


def batches_of(
    store: Database, relation: Relation, rows: Ids, engine_lock: AbstractContextManager[object]
) -> Iterator[pa.Table]:
    """Yield rows of a relation as tables, holding the lock for a batch at a time."""
    for n in range(0, max(len(rows), 1), _BATCH_ROWS):
        chunk = rows[n : n + _BATCH_ROWS]
        with engine_lock:
            member_of = relation.member_of
            if member_of != NO_CLASS and not isinstance(store.dictionary.decode(member_of), IRI):
                chunk = np.insert(chunk, 1, member_of, axis=1)
            batch = _batch(store.dictionary, chunk)
        yield batch


def _batch(dictionary: Dictionary, rows: Ids) -> pa.Table:
    columns: dict[str, pa.Array] = {"row": pa.nulls(len(rows))}
    for n, ids in enumerate(rows.T):
        columns[f"a{n}"], columns[f"a{n}_type"] = _decoded(dictionary, np.ascontiguousarray(ids))
    return pa.table(columns).drop_columns("row") if rows.shape[1] else pa.table(columns)


def _decoded(dictionary: Dictionary, ids: Ids) -> tuple[pa.Array, pa.Array]:
    kinds = dictionary.kinds[ids]
    if len(ids) and (kinds == kinds[0]).all():
        return _texts(dictionary, int(kinds[0]), ids)
    texts: list[pa.Array] = []
    types: list[pa.Array] = []
    order: list[NDArray[np.int64]] = []
    for kind in np.unique(kinds).tolist():
        positions = np.flatnonzero(kinds == kind)
        order.append(positions)
        text, name = _texts(dictionary, kind, ids[positions])
        texts.append(text)
        types.append(name)
    if not order:
        return pa.array([], pa.string()), pa.array([], pa.string())
    text, name = pa.concat_arrays(texts), pa.concat_arrays(types)
    inverse = pa.array(np.argsort(np.concatenate(order), kind="stable"))
    return text.take(inverse), name.take(inverse)


def _texts(dictionary: Dictionary, kind: int, ids: Ids) -> tuple[pa.Array, pa.Array]:
    if kind in {L.K_TAGGED, L.K_OTHER, L.K_DURATION}:
        return _typed_texts(dictionary, ids)
    payloads = dictionary.payloads
    if kind <= L.K_OTHER:
        text = strings(dictionary, ids)
    elif kind == L.K_INTEGER:
        text = pa.array(payloads[ids]).cast(pa.string())
    elif kind in _REALS:
        text = pa.array(payloads[ids].view(np.float64)).cast(pa.string())
    elif kind == L.K_BOOLEAN:
        text = pa.array(payloads[ids] != 0).cast(pa.string())
    elif kind == L.K_DATE:
        text = pa.array(payloads[ids].astype(np.int32)).view(pa.date32()).cast(pa.string())
    else:
        moments = pa.array(payloads[ids]).view(pa.timestamp("us")).cast(pa.string())
        text = pc.binary_join_element_wise(pc.replace_substring(moments, " ", "T"), "Z", "")
    return text, pa.repeat(NAMES[kind], len(ids))


def _typed_texts(dictionary: Dictionary, ids: Ids) -> tuple[pa.Array, pa.Array]:
    distinct, positions = np.unique(ids, return_inverse=True)
    terms = [term for term in map(dictionary.decode, distinct.tolist()) if isinstance(term, Literal)]
    texts = pa.array([term.lexical for term in terms], pa.string())
    types = [f"@{term.language}" if term.language else f"<{term.datatype}>" for term in terms]
    indices = pa.array(positions.ravel())
    return texts.take(indices), pa.array(types, pa.string()).take(indices)


# From tables to rows


def all_rows(
    dictionary: Dictionary, partitions: Iterable[tuple[PartitionKey, pa.Table]]
) -> Iterator[tuple[PartitionKey, Ids]]:
    """Yield the rows of partitions; small partitions are read together, which saves a call for each."""
    small: list[tuple[PartitionKey, pa.Table]] = []
    total = 0
    for key, table in partitions:
        if len(table) > _SMALL:
            yield key, rows_of(dictionary, key, table)
            continue
        small.append((key, table))
        total += len(table)
        if total > _BATCH_ROWS:
            yield from _rows_together(dictionary, small)
            small, total = [], 0
    yield from _rows_together(dictionary, small)


def _rows_together(
    dictionary: Dictionary, partitions: Sequence[tuple[PartitionKey, pa.Table]]
) -> Iterator[tuple[PartitionKey, Ids]]:
    rows_of_each = [np.zeros((len(table), key.arity), np.int32) for key, table in partitions]
    for n in range(max((key.arity for key, _ in partitions), default=0)):
        wide = [number for number, (key, _) in enumerate(partitions) if key.arity > n]
        columns = [
            pa.concat_arrays(
                [
                    chunk.cast(pa.string())
                    for number in wide
                    for chunk in partitions[number][1].column(name).chunks
                ]
            )
            for name in (f"a{n}", f"a{n}_type")
        ]
        batch = pa.record_batch(columns, ["text", "type"])
        batch.validate(full=True)
        ids = _read(dictionary, *batch.columns)
        start = 0
        for number in wide:
            rows = rows_of_each[number]
            rows[:, n] = ids[start : start + len(rows)]
            start += len(rows)
    yield from zip((key for key, _ in partitions), rows_of_each, strict=True)


def rows_of(dictionary: Dictionary, key: PartitionKey, table: pa.Table) -> Ids:
    """Return the rows of a partition; its terms are added to the dictionary."""
    rows = np.zeros((len(table), key.arity), np.int32)
    for n in range(key.arity):
        start = 0
        named = table.select([f"a{n}", f"a{n}_type"])
        for batch in named.combine_chunks().to_batches(max_chunksize=_MOST_ROWS):
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
    ids = np.zeros(len(texts), np.int32)
    for code, name in enumerate(names):
        positions = np.flatnonzero(codes == code)
        if len(positions):
            ids[positions] = _encoded(dictionary, str(name), texts.take(pa.array(positions)))
    return ids


def _encoded(dictionary: Dictionary, name: str, texts: pa.Array) -> Ids:
    texts = texts.cast(pa.string())
    kind = _KINDS.get(name)
    if kind is None:
        return _encoded_typed(dictionary, name, texts)
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
    elif kind == L.K_DATE:
        bits = texts.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64)
    else:
        bits = pc.replace_substring(texts, "Z", "").cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    return dictionary.encode_numbers(kind, bits)


def _encoded_typed(dictionary: Dictionary, name: str, texts: pa.Array) -> Ids:
    if name in _READ_AS_TERMS:
        return dictionary.encode_all(literal(text, name[1:-1]) for text in texts.to_pylist())
    if name.startswith("@") and "\0" not in name and len(name) > 1:
        prefix, kind = name[1:], L.K_TAGGED
    elif name.startswith("<") and name.endswith(">") and "\0" not in name:
        prefix, kind = name[1:-1], L.K_OTHER
    else:
        raise BadPartitionError(f"there is no type {name!r}")
    return encode_strings(dictionary, pc.binary_join_element_wise(f"{prefix}\0", texts, ""), kind)
