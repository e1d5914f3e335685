"""The facts of a predicate as a DataFrame of the user's session.

Few rows are read by the driver. More are read when Spark needs them, by tasks that decode terms; one job
finds the types of the columns before. The files that such a DataFrame reads live as long as the workspace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.engine.embedded.evaluate.answer_table import TYPED_KINDS, columns_of_ids
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.lookup.row_filter import ALL, RowFilter
from zodiacedge.engine.spark.storage.files import TYPED, Relation
from zodiacedge.engine.spark.storage.terms import enter_rows
from zodiacedge.io import spark_frame, table_of
from zodiacedge.language.printer import format_atom
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.spark.storage.files import SignedFiles
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.io.formats.column_mapping import ColumnMapping
    from zodiacedge.language.ast import Predicate

_SPARK_TYPES = {
    L.K_INTEGER: "long",
    L.K_DOUBLE: "double",
    L.K_BOOLEAN: "boolean",
    L.K_MOMENT: "timestamp",
    L.K_DATE: "date",
}


@dataclass(frozen=True)
class Selection:
    """The rows of a predicate: its relation, and for a class the filter of its members."""

    relation: Relation
    row_filter: RowFilter = ALL
    arity: int = 0

    @classmethod
    def of(cls, version: SparkVersion, predicate: Predicate) -> Selection:
        """Return the rows of a predicate."""
        if predicate.arity == 1:
            key = version.workspace.hashing.key(IRI(predicate.name))
            return cls(TYPED, RowFilter(frozenset((key,))), 1)
        return cls(Relation(*predicate), arity=predicate.arity)


def frame_of(
    version: SparkVersion,
    selection: Selection,
    contents: Iterable[SignedFiles],
    mapping: ColumnMapping,
    session: SparkSession,
) -> DataFrame:
    """Return the distinct rows of a selection in some files, with the columns of a mapping."""
    workspace, lookup = version.workspace, Decoder(version.workspace, version.terms)
    relation, row_filter = selection.relation, selection.row_filter
    matching = [content for content in contents if row_filter.held(content)]
    names = [argument.name for argument in mapping.arguments]
    if sum(map(row_filter.stored, matching)) <= workspace.options.driver_rows:
        facts = sorted(lookup.facts(relation, matching, row_filter), key=format_atom)
        rows = table_of([fact.args[: selection.arity] for fact in facts], names)
        return spark_frame(session, mapping.inverse(rows))
    workspace.keep(matching, version.terms)
    readable = lookup.readable(relation, matching, row_filter, session)
    kinds = _kinds(version, readable, selection.arity)
    chosen = [
        _SPARK_TYPES[kind] if kind is not None and argument.template is None else "string"
        for kind, argument in zip(kinds, mapping.arguments, strict=True)
    ]
    schema = ", ".join(f"`{name}` {kind}" for name, kind in zip(names, chosen, strict=True))
    return readable.mapInArrow(_Decoding(relation.arity, tuple(kinds), mapping), schema)


def _kinds(version: SparkVersion, readable: DataFrame, arity: int) -> Sequence[int | None]:
    """Return the kind of each column whose terms are of one that Spark has a type for."""
    from pyspark.sql import functions  # noqa: PLC0415 - heavy

    ends = [end(f"k{n}") for n in range(arity) for end in (functions.min, functions.max)]
    (row,) = version.workspace.jobs.run(
        readable.agg(*ends).collect, "finding the types of columns", frame=readable
    )
    pairs = [(row[2 * n], row[2 * n + 1]) for n in range(arity)]
    return [low if low == high and low in TYPED_KINDS else None for low, high in pairs]


@dataclass(frozen=True)
class _Decoding:
    """A task that turns rows of terms into columns of values and cells."""

    arity: int
    kinds: tuple[int | None, ...]
    mapping: ColumnMapping

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            dictionary = Dictionary()
            columns = enter_rows(batch, self.arity, dictionary)[: len(self.kinds)]
            made = columns_of_ids(dictionary, columns, self.kinds)
            table = pa.table(made, [str(n) for n in range(len(made))])
            yield from self.mapping.inverse(table).to_batches()
