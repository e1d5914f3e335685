"""The stream of net changes of a store: rows inserted and deleted between two versions.

An offset is a version. A batch has the net change between two versions, so it is the same whenever it is read
again; versions in between are not distinguished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import datasource

from zodiacedge.datasource.rows import as_rows, pieces, unpacked
from zodiacedge.io import table_of
from zodiacedge.kb.tables.predicates import columns_for, predicate_of
from zodiacedge.language.printer import format_atom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

    from zodiacedge.datasource.options import SourceOptions
    from zodiacedge.language.ast import Fact
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase

VERSION, CHANGE = "version", "change"


class ChangeReader(datasource.DataSourceStreamReader):
    """A stream read, beside the driver: the store stays open, and moves to its newest version."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Take the options and the schema that rows are to have."""
        self._options = options
        self._schema = schema
        self._opened: StoredKnowledgeBase | None = None

    def __getstate__(self) -> dict[str, object]:
        """Return what tasks need: they do not open the store."""
        return {**self.__dict__, "_opened": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's
        """Return the version before the first batch; all facts of a later one came since version 0."""
        return {VERSION: self._options.starting_version}

    def latestOffset(self, start: Mapping[str, int] | None = None, limit: object = None) -> dict[str, int]:  # noqa: N802 - Spark's
        """Return the newest version."""
        del limit
        kb = self._kb()
        kb.refresh()
        return {VERSION: max(kb.version, start[VERSION] if start else 0)}

    def partitions(
        self, start: Mapping[str, int], end: Mapping[str, int]
    ) -> Sequence[datasource.InputPartition]:
        """Return the net change between two versions in pieces, one for each task."""
        first, last = start[VERSION], end[VERSION]
        if first == last:
            return []
        change = self._kb().diff(first, last)
        columns = self._options.named_columns()
        tables = []
        for kind, facts in (("insert", change.inserted), ("delete", change.deleted)):
            rows = self._rows(facts, columns)
            changed = pa.table(
                [
                    pa.repeat(pa.scalar(last, pa.int64()), len(rows)),
                    pa.repeat(kind, len(rows)),
                    *rows.columns,
                ],
                [VERSION, CHANGE, *rows.column_names],
            )
            tables.append(as_rows(changed, self._schema))
        return [datasource.InputPartition(piece) for piece in pieces(pa.concat_tables(tables))]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece."""
        yield from unpacked(partition.value).to_batches()

    def commit(self, end: Mapping[str, int]) -> None:
        """Do nothing: the store keeps its versions."""
        del end

    def stop(self) -> None:
        """Close the store."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _kb(self) -> StoredKnowledgeBase:
        if self._opened is None:
            self._opened = self._options.reading()
        return self._opened

    def _rows(self, facts: frozenset[Fact], columns: Mapping[str, object]) -> pa.Table:
        kb = self._kb()
        width = len(columns) or len(self._schema.fields) - 2
        known = {fact.predicate for fact in facts} | kb.state.predicates()
        predicate = predicate_of(self._options.predicate, known, kb.prefixes, width)
        mapping = columns_for(predicate, columns)
        wanted = sorted((fact for fact in facts if fact.predicate == predicate), key=format_atom)
        names = [argument.name for argument in mapping.arguments]
        return mapping.inverse(table_of([fact.args for fact in wanted], names))
