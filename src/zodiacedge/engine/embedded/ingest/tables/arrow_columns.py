"""Columns of Arrow tables as columns of term ids; the values of a dictionary are read once.

The columns are those of `io.formats.columns`: no nulls, and few types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zodiacedge.engine.embedded.ingest.tables.cells import intern_cells
from zodiacedge.engine.embedded.ingest.tables.tabular import number_state
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.io.formats.cells import read_cell

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids


def rows_of_batch(dictionary: Dictionary, batch: pa.RecordBatch) -> Ids:
    """Return the rows of a batch; its terms are added to the dictionary."""
    rows = np.empty((len(batch), batch.num_columns), np.int32)
    for n, column in enumerate(batch.columns):
        rows[:, n] = _ids(dictionary, column)
    return rows


def _ids(dictionary: Dictionary, column: pa.Array) -> Ids:
    kind = column.type
    if not len(column):
        return np.zeros(0, np.int32)
    if pa.types.is_dictionary(kind):
        ids = _ids(dictionary, column.dictionary)
        found: Ids = ids[column.indices.to_numpy(zero_copy_only=False)]
        return found
    if pa.types.is_string(kind):
        return _cells(dictionary, column)
    if pa.types.is_int64(kind):
        return dictionary.encode_integers(column.to_numpy())
    if pa.types.is_floating(kind):
        # Zero has one sign.
        return dictionary.encode_numbers(L.K_DOUBLE, (column.to_numpy() + 0.0).view(np.int64))
    if pa.types.is_boolean(kind):
        return dictionary.encode_numbers(L.K_BOOLEAN, column.to_numpy(zero_copy_only=False).astype(np.int64))
    if pa.types.is_timestamp(kind):
        return dictionary.encode_numbers(L.K_MOMENT, column.cast(pa.int64()).to_numpy())
    if pa.types.is_duration(kind):
        micros = column.cast(pa.duration("us")).cast(pa.int64())
        return dictionary.encode_numbers(L.K_DURATION, micros.to_numpy())
    if pa.types.is_date32(kind):
        return dictionary.encode_numbers(L.K_DATE, column.cast(pa.int32()).to_numpy().astype(np.int64))
    return dictionary.encode_all(map(read_cell, column.to_pylist()))


def _cells(dictionary: Dictionary, column: pa.StringArray) -> Ids:
    _, offsets, text = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(1, np.uint8)
    ids = np.empty(len(column), np.int32)
    dictionary.reserve(len(column))
    dictionary.reserve_text(int(ends[-1] - ends[0]))
    numbers = number_state()
    state, base, places = (MEMORY.address(array) for array in (numbers, data, ends))
    if intern_cells(dictionary.address, state, base, places, len(column), MEMORY.address(ids)):
        left = np.flatnonzero(ids < 0)
        coded = column.take(pa.array(left)).dictionary_encode()
        found = dictionary.encode_all(map(read_cell, coded.dictionary.to_pylist()))
        ids[left] = found[coded.indices.to_numpy()]
    return ids
