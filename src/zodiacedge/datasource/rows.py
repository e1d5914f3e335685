"""Facts as rows of a schema of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.datasource.options import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType

_ARROW_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
# Rows that one task of Spark gets.
_TOGETHER = 1 << 17


def as_rows(table: pa.Table, schema: StructType) -> pa.Table:
    """Return a table with the columns of a schema; raise if a value does not fit its type."""
    if len(schema.fields) != table.num_columns:
        message = f"the schema has {len(schema.fields)} columns, and the facts have {table.num_columns}"
        raise wrong(message, "leave the schema out, or name a column for each argument")
    columns = []
    for field, column in zip(schema.fields, table.columns, strict=True):
        kind = _ARROW_TYPES.get(field.dataType.simpleString())
        if kind is None:
            raise wrong(f"the column {field.name} is of a type that no term has", "take string for it")
        try:
            columns.append(column.cast(kind))
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise wrong(
                f"a value of {field.name} does not fit its type: {reason}", "take string for it"
            ) from error
    return pa.table(columns, [field.name for field in schema.fields])


def packed(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    data: bytes = stream.getvalue().to_pybytes()
    return data


def unpacked(data: bytes) -> pa.Table:
    """Return the table of `packed`."""
    return pa.ipc.open_stream(data).read_all()


def pieces(table: pa.Table) -> Iterator[bytes]:
    """Yield the rows of a table in pieces for tasks; at least one, without rows."""
    for start in range(0, max(len(table), 1), _TOGETHER):
        yield packed(table.slice(start, _TOGETHER))
