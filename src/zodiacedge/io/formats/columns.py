"""Arrow columns as columns of terms, for engines that read a column at a time.

A batch of rows gets columns of few types: strings (cells), int64, float64, booleans, timestamps in
microseconds of UTC, and days, each also dictionary-encoded. Every other column is written as cells. Rows that
are no facts are reported and left out, with the reasons that `arrow` finds when it reads them row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.io.formats.cells import write_cell
from zodiacedge.language.ast import Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from zodiacedge.io.formats.lines import FileReading
    from zodiacedge.terms import Term

    Cells = Callable[[pa.Array], list[Term | str]]

_DAY = 86_400
# The first moment of the year 1, and the first one after 9999, in seconds from 1970.
_FIRST_SECOND = -62_135_596_800
_END_SECOND = 253_402_300_800
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_LARGEST = 2**63 - 1
_MOMENT = pa.timestamp("us")


def column_batches(
    batches: Iterable[pa.RecordBatch], converters: list[Cells], reading: FileReading
) -> Iterator[pa.RecordBatch]:
    """Yield batches with the same rows and plain columns; report bad rows, and leave them out.

    A converter gives the cells of a column row by row: terms, or the reasons why they are missing.
    """
    row = 0
    for batch in batches:
        columns = [_decoded(column, cells) for column, cells in zip(batch.columns, converters, strict=True)]
        good = _all(_good_rows(column) for column, _ in columns)
        if good is not None and pc.sum(good).as_py() != len(batch):
            bad = pc.indices_nonzero(pc.invert(good))
            reasons = zip(*(cells(column.take(bad)) for column, cells in columns), strict=True)
            for number, args in zip(bad.to_pylist(), reasons, strict=True):
                at, reason = next((i, cell) for i, cell in enumerate(args) if isinstance(cell, str))
                name = batch.schema.field(at).name
                reading.report(row + number + 1, None, f"column {name}: {reason}", unit="row")
            columns = [(column.filter(good), cells) for column, cells in columns]
        plain = [_plain(column, cells) for column, cells in columns]
        yield pa.record_batch(plain, [str(n) for n in range(len(plain))])
        row += len(batch)


def true_fact(batches: Iterable[pa.RecordBatch], relation: str) -> list[Fact]:
    """Return the fact of a relation without columns, if it has a row."""
    return [Fact(relation, ()) for batch in batches for _ in range(batch.num_rows)][:1]


def _decoded(column: pa.Array, cells: Cells) -> tuple[pa.Array, Cells]:
    """Return a column that rows can be taken from, without a dictionary that has values that are no terms."""
    if pa.types.is_string_view(column.type):
        return _strings(column.cast(pa.large_string())), cells
    if not pa.types.is_dictionary(column.type):
        return column, cells
    values = column.dictionary
    good = _good_rows(values)
    if good is None or pc.sum(good).as_py() == len(values):
        return column, cells
    return column.dictionary_decode(), _of_values(cells)


def _of_values(cells: Cells) -> Cells:
    """Return the converter of the values of a dictionary, from that of a column with the dictionary."""

    def convert(values: pa.Array) -> list[Term | str]:
        numbers = pa.array(range(len(values)), pa.int32())
        return cells(pa.DictionaryArray.from_arrays(numbers, values))

    return convert


def _all(parts: Iterable[pa.Array | None]) -> pa.Array | None:
    result = None
    for part in parts:
        if part is not None:
            result = part if result is None else pc.and_(result, part)
    return result


def _good_rows(column: pa.Array) -> pa.Array | None:
    """Return which cells are terms; None for all of them."""
    good = column.is_valid() if column.null_count else None
    kind = column.type
    if pa.types.is_floating(kind):
        # NaN and the infinities are not finite; null is neither.
        good = _all((good, pc.fill_null(pc.is_finite(column), fill_value=False)))
    elif pa.types.is_timestamp(kind):
        counts = column.cast(pa.timestamp(kind.unit)).cast(pa.int64())
        low, high = (min(max(second * _PER_SECOND[kind.unit], -_LARGEST), _LARGEST) for second in _SECONDS)
        inside = pc.and_(pc.greater_equal(counts, low), pc.less(counts, high))
        good = _all((good, pc.fill_null(inside, fill_value=False)))
    return good


_SECONDS = (_FIRST_SECOND, _END_SECOND)


def _plain(column: pa.Array, cells: Cells) -> pa.Array:
    """Return a column of terms in a plain type."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        plain = _plain(column.dictionary, _of_values(cells))
        if types.is_dictionary(plain.type):
            plain = plain.dictionary_decode()
        return pa.DictionaryArray.from_arrays(column.indices, plain)
    if types.is_string(kind) or kind in {pa.float64(), pa.int64()} or types.is_boolean(kind):
        return column
    if types.is_large_string(kind):
        return _strings(column)
    if types.is_floating(kind):
        return column.cast(pa.float64())
    if types.is_integer(kind) and (not types.is_uint64(kind) or (pc.max(column).as_py() or 0) <= _LARGEST):
        return column.cast(pa.int64())
    if types.is_timestamp(kind):
        moments = column.cast(pa.timestamp(kind.unit))
        if kind.unit == "ns":
            moments = pc.floor_temporal(moments, unit="microsecond")
        return moments.cast(_MOMENT)
    if types.is_date32(kind) and _are_days(column):
        return column
    return _written(column, cells)


def _strings(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        # Their texts are longer together than 32 bits can count.
        return column


def _are_days(column: pa.Array) -> bool:
    ends = pc.min_max(column.cast(pa.int32())).as_py()
    return not len(column) or (ends["min"] * _DAY >= _FIRST_SECOND and ends["max"] * _DAY < _END_SECOND)


def _written(column: pa.Array, cells: Cells) -> pa.Array:
    """Return a column as cells, each distinct value written once."""
    try:
        coded = column.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        coded = None
    values = column if coded is None else coded.dictionary
    terms = [term for term in cells(values) if not isinstance(term, str)]
    texts = pa.array([write_cell(term) for term in terms], pa.string())
    return texts if coded is None else pa.DictionaryArray.from_arrays(coded.indices, texts)
