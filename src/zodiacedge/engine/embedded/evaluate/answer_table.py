"""Many answers as an Arrow table: rows of ids are sorted, and each distinct term is written once.

The table is the one that `io.formats.arrow.table_of` makes of the same rows. Few answers are rows of terms
from the start (`query`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.embedded.expressions.text_vectorised import strings
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.terms.order import in_order
from zodiacedge.errors import LoadProblem
from zodiacedge.io.formats.arrow_rows import ChunkedRows
from zodiacedge.io.formats.cells import write_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids

    Ranks = NDArray[np.int64]

_NOT_IN_IRIS = r'[\x00-\x20<>"{}|^`\\]'
# Other texts are cells as they are, but for the booleans.
_FIRST_BYTES = np.isin(np.arange(256), np.frombuffer(b'0123456789+-<_"', np.uint8))
_FEW = 8
_BOOLEANS = pa.array(["true", "false"])


def table_of_ids(dictionary: Dictionary, rows: Ids) -> pa.Table | None:
    """Return rows in the total order as a table; None if a term cannot be written as a cell."""
    try:
        (table,) = _tables(dictionary, rows, max(len(rows), 1))
    except LoadProblem:
        return None
    return table


def chunked_rows(dictionary: Dictionary, rows: Ids) -> ChunkedRows:
    """Return distinct rows as tables in the total order; they are sorted when they are asked for."""
    return ChunkedRows(len(rows), lambda most: _tables(dictionary, rows, most))


def columns_of_ids(
    dictionary: Dictionary, columns: Sequence[Ids], kinds: Sequence[int | None]
) -> list[pa.Array]:
    """Return columns of ids as columns of values of one kind each, in no order; cells for None."""
    made = []
    for ids, kind in zip(columns, kinds, strict=True):
        if kind is None:
            distinct, places = np.unique(ids, return_inverse=True)
            made.append(cells_of_ids(dictionary, distinct).take(pa.array(places.ravel())))
        else:
            made.append(_typed(kind, dictionary.payloads[ids]))
    return made


def _tables(dictionary: Dictionary, rows: Ids, most: int) -> Iterator[pa.Table]:
    terms, ranks = _sorted(dictionary, rows)
    kinds, payloads = dictionary.kinds[terms], dictionary.payloads[terms]
    types = [_type(kinds, codes) for codes in ranks]
    for start in range(0, len(rows), most):
        pieces = [codes[start : start + most] for codes in ranks]
        columns = [
            _cell_column(dictionary, terms, codes) if kind is None else _typed(kind, payloads[codes])
            for kind, codes in zip(types, pieces, strict=True)
        ]
        yield pa.Table.from_arrays(columns, names=[str(n) for n in range(len(columns))])


def _sorted(dictionary: Dictionary, rows: Ids) -> tuple[Ids, list[Ranks]]:
    """Return the distinct terms of rows in order, and the rows in order as columns of places among these."""
    present = np.zeros(len(dictionary), np.bool_)
    present[rows.ravel()] = True
    terms = in_order(dictionary, np.flatnonzero(present).astype(np.int32))
    rank = np.zeros(len(dictionary), np.int64)
    rank[terms] = np.arange(len(terms))
    columns = [rank[column] for column in rows.T]
    if len(columns) == 1:
        return terms, [np.sort(columns[0])]
    if len(columns) == 2:
        keys = np.sort((columns[0] << 32) | columns[1])
        return terms, [keys >> 32, keys & 0xFFFFFFFF]
    order = np.lexsort(columns[::-1])
    return terms, [column[order] for column in columns]


def _type(kinds: NDArray[np.int8], codes: Ranks) -> int | None:
    """Return the kind of a column if all its terms are of one that has a type of its own."""
    kind = int(kinds[codes[0]])
    return kind if kind in TYPED_KINDS and (kinds[codes] == kind).all() else None


def _cell_column(dictionary: Dictionary, terms: Ids, codes: Ranks) -> pa.Array:
    if len(codes) * _FEW < len(terms):
        places, positions = np.unique(codes, return_inverse=True)
    else:
        # Quicker than sorting, unless there are many more terms than rows.
        used = np.zeros(len(terms), np.bool_)
        used[codes] = True
        places = np.flatnonzero(used)
        positions = (np.cumsum(used) - 1)[codes]
    return cells_of_ids(dictionary, terms[places]).take(pa.array(positions.ravel()))


TYPED_KINDS = frozenset({L.K_INTEGER, L.K_DOUBLE, L.K_BOOLEAN, L.K_MOMENT, L.K_DATE, L.K_DURATION})


def _typed(kind: int, payloads: NDArray[np.int64]) -> pa.Array:
    if kind == L.K_INTEGER:
        return pa.array(payloads)
    if kind == L.K_DOUBLE:
        return pa.array(payloads.view(np.float64))
    if kind == L.K_BOOLEAN:
        return pa.array(payloads != 0)
    if kind == L.K_DATE:
        return pa.array(payloads.astype(np.int32)).view(pa.date32())
    if kind == L.K_DURATION:
        return pa.array(payloads).view(pa.duration("us"))
    return pa.array(payloads).view(pa.timestamp("us", tz="UTC"))


def cells_of_ids(dictionary: Dictionary, ids: Ids) -> pa.StringArray:
    """Return terms as cells; raise if one cannot be written."""
    kinds = dictionary.kinds[ids]
    order: list[NDArray[np.int64]] = []
    texts: list[pa.Array] = []
    for kind in np.unique(kinds).tolist():
        positions = np.flatnonzero(kinds == kind)
        order.append(positions)
        texts.append(_cells(dictionary, kind, ids[positions]))
    if len(texts) == 1:
        return texts[0]
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(order), kind="stable")))


def _cells(dictionary: Dictionary, kind: int, ids: Ids) -> pa.StringArray:
    if kind == L.K_IRI:
        texts = strings(dictionary, ids)
        if not pc.any(pc.match_substring_regex(texts, _NOT_IN_IRIS)).as_py():
            return pc.binary_join_element_wise("<", texts, ">", "")
    if kind == L.K_STRING:
        texts = strings(dictionary, ids)
        special = _special(dictionary, ids) | pc.is_in(texts, _BOOLEANS).to_numpy(zero_copy_only=False)
        if not special.any():
            return texts
        written = pa.array(_written(dictionary, ids[special]), pa.string())
        return pc.replace_with_mask(texts, pa.array(special), written)
    if kind == L.K_INTEGER:
        return pa.array(dictionary.payloads[ids]).cast(pa.string())
    return pa.array(_written(dictionary, ids), pa.string())


def _special(dictionary: Dictionary, ids: Ids) -> NDArray[np.bool_]:
    """Return which texts start like a cell that is no plain string."""
    ends, text = dictionary.texts(ids)
    found: NDArray[np.bool_] = _FIRST_BYTES[text[np.minimum(ends[:-1], len(text) - 1)]]
    return found & (np.diff(ends) > 0)


def _written(dictionary: Dictionary, ids: Ids) -> list[str]:
    return [write_cell(dictionary.decode(number)) for number in ids.tolist()]
