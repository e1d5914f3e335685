"""The answers to a query: rows of terms, for Python, data frames, terminals and notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, cast, overload

from zodiacedge.errors import Diagnostic, UsageProblem, counted, nearest
from zodiacedge.language.printer import abbreviated, format_term
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.terms import Term, Value, to_python
from zodiacedge.util.html import html_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.api import Dropped
    from zodiacedge.io.formats.arrow_rows import ArrowRows

# A notebook and a terminal show so many rows.
_MOST_SHOWN = 50

Row = tuple[Value | Term, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Answers:
    """The rows of a query, distinct and in the total order, with the names of their columns.

    A row is a tuple of Python values; terms without a value, IRIs among them, stay terms. `answers[0]` is a
    row, `answers[:5]` a list of rows, and `answers["T"]` the list of the values of a column. `rows` has all
    values as terms.
    """

    columns: tuple[str, ...]
    held: Sequence[tuple[Term, ...]]
    """The rows as the engine made them: a tuple, or an `ArrowRows`."""
    warnings: tuple[Diagnostic, ...] = ()
    dropped: Dropped | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Prefixes that abbreviate IRIs for people."""
    session: Callable[[], SparkSession] | None = field(default=None, compare=False)
    """The Spark session of the knowledge base, if it has one."""

    @property
    def rows(self) -> tuple[tuple[Term, ...], ...]:
        """The rows, with all values as terms."""
        return self.held if isinstance(self.held, tuple) else _arrow_rows(self.held).all()

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows."""
        return map(_row, self.held)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.held)

    def __bool__(self) -> bool:
        """Return whether there is an answer: the truth of a ground query."""
        return bool(self.held)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> list[Row]: ...
    @overload
    def __getitem__(self, key: str) -> list[Value | Term]: ...

    def __getitem__(self, key: int | slice | str) -> Row | list[Row] | list[Value | Term]:
        """Return a row by its number, several rows by a slice, or a column by its name."""
        match key:
            case str():
                column = self._column(key)
                return [to_python(row[column]) for row in self.held]
            case slice():
                return list(map(_row, self.held[key]))
            case _:
                return _row(self.held[key])

    def _column(self, name: str) -> int:
        if name in self.columns:
            return self.columns.index(name)
        near = nearest(name, self.columns)
        hint = f"did you mean {near}?" if near else f"its columns are: {', '.join(self.columns) or 'none'}"
        raise UsageProblem(Diagnostic("U009", f"the answers have no column {name}", hint))

    def texts(self, most: int | None = None) -> Iterator[tuple[str, ...]]:
        """Yield rows in the syntax of the language, with prefixes; all, or the first `most`."""
        prefixes = {**DEFAULT_PREFIXES, **self.prefixes}
        for row in self.held[:most]:
            yield tuple(format_term(term, prefixes) for term in row)

    def __repr__(self) -> str:
        """Return the columns and the number of rows."""
        return f"<Answers {len(self)} × ({', '.join(self.columns)})>"

    def __str__(self) -> str:
        """Return a table of the first rows, or yes or no for a query without columns; then the warnings."""
        return "\n".join((*self._lines(), *self._notes()))

    def _lines(self) -> Iterator[str]:
        if not self.columns:
            yield "yes" if self else "no"
            return
        shown = [self.columns, *self.texts(_MOST_SHOWN)]
        widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
        for row in shown:
            yield "  ".join(map(str.ljust, row, widths)).rstrip()
        more = len(self) - _MOST_SHOWN
        if more > 0:
            yield f"… and {more:,} more"
        if not self:
            yield "0 rows"

    def _notes(self) -> Iterator[str]:
        """Yield the warnings, and the bindings that evaluation errors dropped."""
        prefixes = {**DEFAULT_PREFIXES, **self.prefixes}
        for warning in self.warnings:
            yield abbreviated(warning, prefixes).render()
        if self.dropped:
            yield f"dropped {counted(self.dropped.count, 'binding')}: {self.dropped.example}"

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        notes = "".join(f"<pre>{escape(note)}</pre>" for note in self._notes())
        if not self.columns:
            return f"<p>{'yes' if self else 'no'}</p>{notes}"
        caption = f"{len(self):,} rows" if len(self) != 1 else "1 row"
        if len(self) > _MOST_SHOWN:
            caption = f"the first {_MOST_SHOWN} of {caption}"
        return html_table(self.columns, self.texts(_MOST_SHOWN), caption) + notes

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, with a type for a column of one type, else as cells.

        A repeated column gets a distinct name, `X` and `X_2`, because data frames require it. A table without
        columns has no rows either: use the truth value of a ground query.
        """
        from zodiacedge import io  # noqa: PLC0415 - loads pyarrow

        names = _distinct_names(self.columns)
        if isinstance(self.held, tuple):
            return io.table_of(self.held, names)
        return _arrow_rows(self.held).table.rename_columns(list(names))

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame."""
        return cast("pl.DataFrame", library("polars").from_arrow(self.to_arrow()))

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        library("pandas")
        return cast("pd.DataFrame", self.to_arrow().to_pandas())

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows as a DataFrame of Spark.

        Args:
            spark: The session; that of the knowledge base if not given, or the active one.
        """
        from zodiacedge import io  # noqa: PLC0415 - loads pyarrow

        return io.spark_frame(session_for(spark, self.session), self.to_arrow())


def session_for(given: SparkSession | None, own: Callable[[], SparkSession] | None = None) -> SparkSession:
    """Return a given session, or that of a knowledge base, or the active one; raise if there is none."""
    from zodiacedge.engine.spark.cluster.session import (  # noqa: PLC0415 - needed only for Spark
        active_session,
        refuse_other_than_session,
    )

    if given is not None:
        refuse_other_than_session(given)
        return given
    if own is not None:
        return own()
    active = active_session()
    if active is None:
        hint = "give one: to_spark(spark), or open the knowledge base on it: ze.open(spark=spark)"
        raise UsageProblem(Diagnostic("U030", "there is no Spark session for a DataFrame", hint))
    return active


def _arrow_rows(rows: Sequence[tuple[Term, ...]]) -> ArrowRows:
    return cast("ArrowRows", rows)


def _row(terms: tuple[Term, ...]) -> Row:
    return tuple(map(to_python, terms))


def _distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    distinct: list[str] = []
    for name in names:
        new, number = name, 1
        while new in distinct:
            number += 1
            new = f"{name}_{number}"
        distinct.append(new)
    return tuple(distinct)


def library(name: str) -> ModuleType:
    """Import an optional library, or raise."""
    try:
        return import_module(name)
    except ImportError as problem:
        raise UsageProblem(
            Diagnostic("U007", f"{name} is not installed", f"install it: pip install {name}")
        ) from problem
