"""Reads a predicate of one version of a store; filters on its columns are applied before rows are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource

from zodiacedge.datasource.rows import as_rows, pieces, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql.types import StructType

    from zodiacedge.datasource.options import SourceOptions

_COMPARISONS = {
    datasource.EqualTo: pc.equal,
    datasource.GreaterThan: pc.greater,
    datasource.GreaterThanOrEqual: pc.greater_equal,
    datasource.LessThan: pc.less,
    datasource.LessThanOrEqual: pc.less_equal,
}
_TEXT_SEARCHES = {
    datasource.StringStartsWith: pc.starts_with,
    datasource.StringEndsWith: pc.ends_with,
    datasource.StringContains: pc.match_substring,
}


class BatchReader(datasource.DataSourceReader):
    """A batch read: planned in one process, which opens the store."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Take the options and the schema that rows are to have."""
        self._options = options
        self._schema = schema
        self._filters: list[datasource.Filter] = []

    def partitions(self) -> Sequence[datasource.InputPartition]:
        """Return the rows in pieces, one for each task."""
        options = self._options
        with options.reading(options.version) as kb:
            table = kb.arrow_table(options.predicate, **options.named_columns())
        rows = as_rows(table, self._schema)
        for each in self._filters:
            rows = rows.filter(_condition(rows, each))
        return [datasource.InputPartition(piece) for piece in pieces(rows)]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece."""
        yield from unpacked(partition.value).to_batches()


class FilteringReader(BatchReader):
    """A batch read that takes filters; Spark refuses it unless its setting for filters is on."""

    def pushFilters(self, filters: list[datasource.Filter]) -> Iterable[datasource.Filter]:  # noqa: N802 - Spark's
        """Take the filters that can be applied here, and return the others."""
        for each in filters:
            if len(_column_of(each)) == 1:
                self._filters.append(each)
            else:
                yield each


def _column_of(each: Any) -> tuple[str, ...]:  # noqa: ANN401 - filters have no common attributes
    """Return the column that a filter is on; empty if it cannot be applied here."""
    if isinstance(each, datasource.Not):
        return _column_of(each.child)
    known = type(each) in {*_COMPARISONS, *_TEXT_SEARCHES, datasource.In, datasource.IsNotNull}
    return tuple(each.attribute) if known else ()


def _condition(rows: pa.Table, each: Any) -> pa.ChunkedArray:  # noqa: ANN401 - as above
    if isinstance(each, datasource.Not):
        return pc.invert(_condition(rows, each.child))
    column = rows.column(each.attribute[0])
    if isinstance(each, datasource.IsNotNull):
        return column.is_valid()
    if isinstance(each, datasource.In):
        return pc.is_in(column, pa.array(each.value, column.type))
    if type(each) in _TEXT_SEARCHES:
        return _TEXT_SEARCHES[type(each)](column, each.value)
    return _COMPARISONS[type(each)](column, pa.scalar(each.value, column.type))
