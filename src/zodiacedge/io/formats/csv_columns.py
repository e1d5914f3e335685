"""Lines of CSV from Arrow tables of terms, a column at a time: the lines that `tabular` writes row by row."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.io.formats.arrow import rows_of_table
from zodiacedge.io.formats.cells import write_cell
from zodiacedge.terms import double

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEEDS_QUOTES = '[,"\r\n]|^\ufeff'
_PLAIN_DOUBLE = r"^(?P<sign>-?)0*(?P<whole>[0-9]*)\.?(?P<fraction>[0-9]*)$"
_TOGETHER = 1 << 15


def csv_blocks(table: pa.Table) -> Iterator[bytes]:
    """Yield the rows of a table that `arrow.table_of` could have made, as whole lines of CSV."""
    for batch in table.to_batches(max_chunksize=_TOGETHER):
        columns = [_quoted(_cells(column)) for column in batch.columns]
        if len(columns) == 1:
            # An empty line would be skipped.
            columns = [pc.if_else(pc.equal(columns[0], ""), '""', columns[0])]
        parts = [*chain.from_iterable((",", column) for column in columns), "\n"][1:]
        lines = pc.binary_join_element_wise(*parts, "")
        _, ends, text = lines.buffers()
        # The texts follow each other in memory.
        places = memoryview(ends).cast("i")
        yield bytes(memoryview(text)[places[lines.offset] : places[lines.offset + len(lines)]])


def _cells(column: pa.Array) -> pa.StringArray:
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        return double_texts(column.cast(pa.float64()))
    return pa.array([write_cell(term) for (term,) in rows_of_table(pa.table({"x": column}))], pa.string())


def double_texts(column: pa.DoubleArray) -> pa.StringArray:
    """Return the texts of finite doubles in XSD's canonical form: `terms.double`, a column at a time."""
    # Arrow writes the same digits, mostly without an exponent: 25.5 or 0.03.
    parts = pc.extract_regex(column.cast(pa.string()), _PLAIN_DOUBLE)
    sign, whole, fraction = (parts.field(name) for name in ("sign", "whole", "fraction"))
    digits = pc.binary_join_element_wise(whole, fraction, "")
    known = pc.utf8_ltrim(digits, "0")
    zeros = pc.subtract(pc.utf8_length(digits), pc.utf8_length(known))
    exponent = pc.subtract(pc.subtract(pc.utf8_length(whole), zeros), 1)
    significant = pc.utf8_rtrim(known, "0")
    rest = pc.utf8_slice_codeunits(significant, 1)
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    first = pc.utf8_slice_codeunits(significant, 0, 1)
    texts = pc.binary_join_element_wise(sign, first, ".", rest, "E", exponent.cast(pa.string()), "")
    others = pc.or_(parts.is_null(), pc.equal(column, 0))
    if not pc.any(others).as_py():
        return texts
    written = [double(value).lexical for value in column.filter(others).to_pylist()]
    return pc.replace_with_mask(texts, others, pa.array(written, pa.string()))


def _quoted(cells: pa.StringArray) -> pa.StringArray:
    special = pc.match_substring_regex(cells, _NEEDS_QUOTES)
    if not pc.any(special).as_py():
        return cells
    doubled = pc.replace_substring(cells.filter(special), '"', '""')
    return pc.replace_with_mask(cells, special, pc.binary_join_element_wise('"', doubled, '"', ""))
