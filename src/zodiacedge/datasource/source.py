"""The data source `zodiac`, which users register: `spark.dataSource.register(ze.DataSource)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.datasource.options import SourceOptions, wrong
from zodiacedge.errors import Diagnostic, UsageProblem

try:
    from pyspark.sql import datasource
except ImportError as error:
    raise UsageProblem(
        Diagnostic("U007", "pyspark is not installed", "install it: pip install 'zodiacedge[spark]'")
    ) from error

from zodiacedge.datasource.feed import CHANGE, VERSION, ChangeReader
from zodiacedge.datasource.read import BatchReader, FilteringReader
from zodiacedge.datasource.sink import BatchWriter, StreamWriter
from zodiacedge.io import spark_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DataSource(datasource.DataSource):
    """The predicates of a store as tables and streams of Spark.

        spark.dataSource.register(ze.DataSource)
        spark.read.format("zodiac").option("predicate", "alarm").load("farm.zodiac")

    Options: `predicate`; `columns`, as `sensor=<http://farm/{sensor}>, value, at=time`; `version` of a read,
    and `pushdown` of its filters; `startingVersion` of a stream of changes; `stream`, the name of a stream
    into the store, or else its checkpoint; `create`; `wait`, the seconds to wait for another writer.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "zodiac"

    def schema(self) -> str:
        """Return the columns of the predicate, each with a type if all its terms have one."""
        options = self._asked()
        with options.reading(options.version) as kb:
            return spark_schema(kb.arrow_table(options.predicate, **options.named_columns()))

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of a version."""
        options = self._asked()
        return FilteringReader(options, schema) if options.pushdown else BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> ChangeReader:  # noqa: N802 - Spark's
        """Return the reader of net changes, whose rows begin with a version and a kind of change."""
        if [field.name for field in schema.fields[:2]] != [VERSION, CHANGE]:
            hint = 'give the schema: .schema("version long, change string, sensor string, value double")'
            raise wrong("the rows of a stream of changes begin with version and change", hint)
        return ChangeReader(self._asked(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:  # noqa: FBT001 - Spark's
        """Return the writer of a DataFrame."""
        del schema
        _refuse_overwrite(overwrite=overwrite)
        return BatchWriter(self._asked())

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: FBT001, N802 - Spark's
        """Return the writer of a stream."""
        del schema
        _refuse_overwrite(overwrite=overwrite)
        return StreamWriter(self._asked())

    def _asked(self) -> SourceOptions:
        return SourceOptions.of(self.options)


def _refuse_overwrite(*, overwrite: bool) -> None:
    if overwrite:
        hint = 'append: .mode("append"); facts are removed by a change of the store'
        raise wrong("a store cannot be overwritten", hint)
