"""Facts from tables in memory: Arrow tables, and data frames of pandas, Polars and others.

Columns are the arguments of a relation, by position. Any object with Arrow's stream interface is a table;
converting its columns to terms is left to `formats.arrow`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from zodiacedge.io.problems import problem

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.errors import LoadProblem
    from zodiacedge.language.ast import Fact


_SPARK_TYPES = {
    "int64": "long",
    "double": "double",
    "bool": "boolean",
    "date32[day]": "date",
    "string": "string",
}


def is_table(value: object) -> bool:
    """Whether a value is an Arrow table or batch, or a data frame."""
    # Asked of the type: a lazy frame would have to compute its schema.
    return _is_pandas(value) or any(hasattr(type(value), name) for name in ("__arrow_c_stream__", "schema"))


def is_spark_frame(value: object) -> bool:
    """Whether a value is a DataFrame of Spark, classic or of Spark Connect."""
    # By name, so that Spark need not be loaded.
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def spark_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame of a Spark session."""
    if table.num_rows:
        return session.createDataFrame(table)
    # Spark Connect takes no table without rows.
    return session.createDataFrame([], spark_schema(table))


def spark_schema(table: pa.Table) -> str:
    """Return the columns of a table of terms in Spark's notation."""
    kinds = ((field.name, _SPARK_TYPES.get(str(field.type), "timestamp")) for field in table.schema)
    return ", ".join(f"`{name}` {kind}" for name, kind in kinds)


def refuse_stream(frame: object) -> None:
    """Raise if a DataFrame of Spark is a stream, which has no end."""
    if getattr(frame, "isStreaming", False):
        hint = "follow it with kb.stream(df, 'reading', …), or apply its batches by foreachBatch"
        raise problem("I011", "the DataFrame is a stream, and a change takes facts that are there", hint)


def facts_of_table(table: pa.Table, relation: str) -> list[Fact]:
    """Return the facts of an Arrow table, of a relation given by its full name; raise if a row is no fact."""
    from zodiacedge.io.formats import arrow  # noqa: PLC0415 - loads pyarrow

    return arrow.facts_of_table(table, relation) if table.num_rows else []


def columns_of_table(table: pa.Table, relation: str) -> list[list[Fact] | pa.RecordBatch]:
    """Return the same rows in batches of plain columns, as `formats.columns` makes them."""
    from zodiacedge.io.formats import arrow  # noqa: PLC0415 - loads pyarrow

    return arrow.columns_of_table(table, relation) if table.num_rows else []


def arrow_table(table: object) -> pa.Table:
    """Return a table as an Arrow table, without the index of pandas; raise if its columns are unfit."""
    converted = _converted(table)
    twice = [str(name) for name, count in Counter(converted.column_names).items() if count > 1]
    if twice:
        raise _two_columns(twice[0])
    return converted


def _converted(table: object) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - takes time to load

    if _is_pandas(table):
        _check_frame(table)
    try:
        if is_spark_frame(table):
            refuse_stream(table)
            return table.toArrow()  # type: ignore[attr-defined] # a DataFrame has it
        if _is_pandas(table):
            return pa.Table.from_pandas(table, preserve_index=False)
        return pa.table(table)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        reason = " ".join(str(part) for part in error.args) or type(error).__name__
        note = "give each column one type: str, int, float, bool, datetime, date"
        # Lazy frames and series are tables after one more call.
        further = next((name for name in ("collect", "to_frame") if hasattr(type(table), name)), "")
        raise problem(
            "I011",
            f"a {type(table).__name__} cannot be read as an Arrow table: {reason.splitlines()[0]}",
            f"make it a table first: {further}()" if further else note,
        ) from error


def no_relation(table: object) -> LoadProblem:
    """Return the problem of a table without the name of its relation."""
    note = "name it: add_facts(table, relation='reading'); the columns are its arguments, in order"
    return problem("I023", f"a {type(table).__name__} does not say which relation its rows belong to", note)


def _is_pandas(value: object) -> bool:
    # By name, so that pandas need not be loaded.
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def _check_frame(frame: object) -> None:
    columns = [str(name) for name in getattr(frame, "columns", ())]
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise _two_columns(twice[0])
    names = [str(name) for name in getattr(getattr(frame, "index", None), "names", ()) if name is not None]
    if names:
        raise problem(
            "I011",
            f"the index {', '.join(names)} of the data frame is no column, so it would be lost",
            "make it a column, df.reset_index(), or leave it out, df.reset_index(drop=True)",
        )


def _two_columns(name: str) -> LoadProblem:
    return problem("I011", f"two columns of the table are called {name}", "rename or leave out one of them")
