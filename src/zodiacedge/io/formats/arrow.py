"""Parquet files, Arrow files and Arrow tables. Only this module and `paths` import pyarrow.

A column of strings has cells as in `cells`; a column of another type has literals: integers of all
widths, floats (xsd:double), decimals, booleans, timestamps (without a time zone: UTC) and dates, each
also dictionary-encoded. A row with a null, or with a number that is not finite, is reported and skipped; a
column of another type is refused. A column is written with the type that holds it exactly, or as strings.
"""

from __future__ import annotations

import math
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from zodiacedge.io.formats.cells import read_cell, write_cell
from zodiacedge.io.formats.columns import column_batches, true_fact
from zodiacedge.io.formats.lines import FileReading, ReadOptions
from zodiacedge.io.problems import problem
from zodiacedge.io.sources import Format, SourceFile
from zodiacedge.io.streams import BLOCK
from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import (
    INTEGER_MAX,
    INTEGER_MIN,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DAY_TIME_DURATION,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Literal,
    Term,
    boolean,
    calendar_date,
    date_time,
    double,
    duration,
    literal,
    value_of,
)

_Batch = TypeVar("_Batch")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from decimal import Decimal

    _Convert = Callable[[pa.Schema, Iterable[pa.RecordBatch], FileReading], Iterator[_Batch]]

# Rows that are read together, column by column.
COLUMN_ROWS = 1 << 16
_ARITY = b"zodiacedge.arity"
_MAGIC = b"ARROW1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {
    XSD_INTEGER: pa.int64(),
    XSD_DOUBLE: pa.float64(),
    XSD_BOOLEAN: pa.bool_(),
    XSD_DATETIME: pa.timestamp("us", tz="UTC"),
    XSD_DATE: pa.date32(),
    XSD_DAY_TIME_DURATION: pa.duration("us"),
}
# The codecs of the formats by compression of the command line.
PARQUET_CODECS = {"": "snappy", "gz": "gzip", "zst": "zstd"}
ARROW_CODECS = {"": None, "zst": "zstd"}


def read_columnar(stream: IO[bytes], reading: FileReading) -> Iterator[list[Fact]]:
    """Yield the facts of a Parquet or Arrow file in batches; report bad rows."""
    return _read(stream, reading, reading.options.batch_size, _facts)


def read_columns(stream: IO[bytes], reading: FileReading) -> Iterator[list[Fact] | pa.RecordBatch]:
    """Yield the rows of a Parquet or Arrow file in batches of plain columns, as `columns` makes them."""
    return _read(stream, reading, max(reading.options.batch_size, COLUMN_ROWS), _columns)


def _read(stream: IO[bytes], reading: FileReading, size: int, convert: _Convert[_Batch]) -> Iterator[_Batch]:
    if not reading.source.compression:
        yield from _read_file(stream, reading, size, convert)
        return
    # Both formats are read from their end, so a compressed stream is unpacked to a file.
    with tempfile.TemporaryFile() as unpacked:
        while block := stream.read(BLOCK):
            unpacked.write(block)
        unpacked.seek(0)
        yield from _read_file(unpacked, reading, size, convert)


def facts_of_table(table: pa.Table, relation: str) -> list[Fact]:
    """Return the facts of an Arrow table; raise if a row is not a fact."""
    return [fact for batch in _of_table(table, relation, _facts) for fact in batch]


def columns_of_table(table: pa.Table, relation: str) -> list[list[Fact] | pa.RecordBatch]:
    """Return the rows of an Arrow table in batches of plain columns; raise if a row is not a fact."""
    return _of_table(table, relation, _columns)


def _of_table(table: pa.Table, relation: str, convert: _Convert[_Batch]) -> list[_Batch]:
    source = SourceFile(Path("the table"), Format.ARROW, relation=relation)
    reading = FileReading(source, ReadOptions())
    batches = (b for b in table.to_batches(max_chunksize=COLUMN_ROWS))
    converted = list(convert(table.schema, batches, reading))
    if reading.bad:
        first, more = reading.findings.kept[0], reading.bad - 1
        also = f" (and {more:,} more rows)" if more else ""
        raise problem(
            "I013",
            f"row {first.line} is no fact: {first.reason}{also}",
            "leave such rows out, df.dropna() in pandas, df.drop_nulls() in Polars, or fill the cells",
        )
    return converted


def table_of(rows: Sequence[Sequence[Term]], names: Sequence[str]) -> pa.Table:
    """Return rows of terms as an Arrow table; a column is typed if one type holds it exactly."""
    columns = [_column([row[at] for row in rows]) for at in range(len(names))]
    return pa.Table.from_arrays(columns, names=list(names))


def rows_of_table(table: pa.Table) -> Iterator[tuple[Term, ...]]:
    """Yield the rows of a table that `table_of` made: its inverse."""
    reading = FileReading(SourceFile(Path("the table"), Format.ARROW), ReadOptions())
    columns = [
        [cell for chunk in column.chunks for cell in convert(chunk) if not isinstance(cell, str)]
        for column, convert in zip(table.columns, _converters(table.schema, reading), strict=True)
    ]
    return zip(*columns, strict=True)


def write_columnar(
    stream: IO[bytes], form: Format, compression: str, arity: int, rows: Sequence[Sequence[Term]]
) -> None:
    """Write a relation as a Parquet or Arrow file, compressed inside the format."""
    if arity:
        table = table_of(rows, [str(n) for n in range(arity)])
    else:
        # No file has rows without columns, so the arity is in the file's metadata.
        table = pa.table({"true": pa.array([True for _ in rows], pa.bool_())})
    write_table(stream, form, compression, arity, table)


def write_table(stream: IO[bytes], form: Format, compression: str, arity: int, table: pa.Table) -> None:
    """Write a table of a relation as a Parquet or Arrow file, compressed inside the format."""
    if arity:
        table = table.rename_columns([f"c{i}" for i in range(1, arity + 1)])
    table = table.replace_schema_metadata({_ARITY: str(arity).encode()})
    if form is Format.PARQUET:
        pq.write_table(table, stream, compression=PARQUET_CODECS[compression])
        return
    options = pa.ipc.IpcWriteOptions(compression=ARROW_CODECS[compression])
    with pa.ipc.new_file(stream, table.schema, options=options) as writer:
        writer.write_table(table)


def _read_file(
    stream: IO[bytes], reading: FileReading, size: int, convert: _Convert[_Batch]
) -> Iterator[_Batch]:
    source = reading.source
    try:
        schema, batches = _open(stream, reading, size)
        yield from convert(schema, batches, reading)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # An error of the operating system has an errno; without one it is an error of the library.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        kind = "a Parquet" if source.format is Format.PARQUET else "an Arrow"
        raise problem(
            "I010",
            f"{source.name} is not {kind} file, or it is damaged: {str(error).splitlines()[0]}",
            "check that the extension says what the file is",
        ) from error


def _open(stream: IO[bytes], reading: FileReading, size: int) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    if reading.source.format is Format.PARQUET:
        parquet = pq.ParquetFile(stream)
        return parquet.schema_arrow, _validated(parquet.iter_batches(batch_size=size))
    head = stream.read(len(_MAGIC))
    stream.seek(0)
    if head == _MAGIC:
        reader = pa.ipc.open_file(stream)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = pa.ipc.open_stream(stream)
        batches = (batch for batch in reader)
    return reader.schema, _sliced(_validated(batches), size)


def _validated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Without validation the library trusts the metadata of a file.
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _sliced(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)


def _facts(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], reading: FileReading
) -> Iterator[list[Fact]]:
    relation = reading.source.relation
    if _has_no_columns(schema):
        yield true_fact(batches, relation)
        return
    converters = _converters(schema, reading)
    row = 0
    for batch in batches:
        columns = [convert(batch.column(i)) for i, convert in enumerate(converters)]
        facts: list[Fact] = []
        for args in zip(*columns, strict=True):
            row += 1
            bad = next((i for i, term in enumerate(args) if isinstance(term, str)), None)
            if bad is None:
                facts.append(fact(relation, *args))
            else:
                reading.report(row, None, f"column {schema.field(bad).name}: {args[bad]}", unit="row")
        yield facts


def _columns(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], reading: FileReading
) -> Iterator[list[Fact] | pa.RecordBatch]:
    if _has_no_columns(schema):
        yield true_fact(batches, reading.source.relation)
    else:
        yield from column_batches(batches, _converters(schema, reading), reading)


def _has_no_columns(schema: pa.Schema) -> bool:
    metadata: dict[bytes, bytes] = schema.metadata or {}
    return metadata.get(_ARITY) == b"0"


def _converters(schema: pa.Schema, reading: FileReading) -> list[Callable[[pa.Array], list[_Cell]]]:
    converters = [_converter(field, reading) for field in schema]
    if not converters:
        raise problem(
            "I011", f"{reading.source.name} has no columns", "a relation of no columns has a `true`"
        )
    return converters


_Cell = Term | str  # a term, or the reason why it is missing


def _converter(field: pa.Field, reading: FileReading) -> Callable[[pa.Array], list[_Cell]]:
    kind = field.type
    types = pa.types
    if types.is_dictionary(kind):
        inner = _converter(pa.field(field.name, kind.value_type), reading)
        return lambda column: _by_dictionary(column, inner)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _strings
    if types.is_timestamp(kind):
        return _timestamps
    if types.is_duration(kind):
        return _durations
    each = _scalar(kind)
    if each is None:
        raise problem(
            "I011",
            f"{reading.source.name}: the column {field.name} is of type {kind}, which holds no terms",
            "columns are cells, integers, floats, decimals, booleans, timestamps, dates or durations",
        )
    convert = each
    return lambda column: ["null" if v is None else convert(v) for v in column.to_pylist()]


def _scalar(kind: pa.DataType) -> Callable[..., _Cell] | None:
    types = pa.types
    if types.is_integer(kind):
        return _integer
    if types.is_floating(kind):
        return _float
    if types.is_boolean(kind):
        return boolean
    if types.is_decimal(kind):
        return _decimal
    return calendar_date if types.is_date(kind) else None


def _integer(value: int) -> Term:
    # An unsigned number beyond a signed 64-bit one is a term without a value.
    return literal(str(value), XSD_INTEGER)


def _float(value: float) -> _Cell:
    number = float(value)
    return double(number) if math.isfinite(number) else f"{number} is not a finite number"


def _decimal(value: Decimal) -> Term:
    return literal(format(value, "f"), XSD_DECIMAL)


def _strings(column: pa.Array) -> list[_Cell]:
    terms: dict[str, Term] = {}
    cells: list[_Cell] = []
    texts: list[str | None] = column.to_pylist()
    for text in texts:
        if text is None:
            cells.append("null")
            continue
        term = terms.get(text)
        if term is None:
            term = terms[text] = read_cell(text)
        cells.append(term)
    return cells


def _timestamps(column: pa.Array) -> list[_Cell]:
    # By numbers, because Python's datetime has microseconds and ends with the year 9999.
    unit = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 0}[column.type.unit]
    counts: list[int | None] = column.cast(pa.timestamp(column.type.unit)).cast(pa.int64()).to_pylist()
    cells: list[_Cell] = []
    for count in counts:
        if count is None:
            cells.append("null")
            continue
        try:
            value = _EPOCH + timedelta(microseconds=count * unit if unit else count // 1000)
            cells.append(date_time(value))
        except OverflowError:
            cells.append("a moment outside the years 1 to 9999")
    return cells


def _durations(column: pa.Array) -> list[_Cell]:
    unit = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 0}[column.type.unit]
    counts: list[int | None] = column.cast(pa.int64()).to_pylist()
    cells: list[_Cell] = []
    for count in counts:
        if count is None:
            cells.append("null")
            continue
        micros = count * unit if unit else count // 1000
        is_long = not INTEGER_MIN <= micros <= INTEGER_MAX
        cells.append("a duration beyond 64 bits" if is_long else duration(timedelta(microseconds=micros)))
    return cells


def _by_dictionary(column: pa.DictionaryArray, inner: Callable[[pa.Array], list[_Cell]]) -> list[_Cell]:
    cells = inner(column.dictionary)
    indexes: list[int | None] = column.indices.to_pylist()
    return ["null" if index is None else cells[index] for index in indexes]


def _column(terms: Sequence[Term]) -> pa.Array:
    kinds = {t.datatype if isinstance(t, Literal) else "" for t in terms}
    kind = _TYPES.get(next(iter(kinds))) if len(kinds) == 1 else None
    if kind is not None:
        values = [value_of(t) for t in terms]
        if None not in values:
            return pa.array(values, kind)
    return pa.array([write_cell(t) for t in terms], pa.string())
