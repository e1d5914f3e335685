"""Checks queries, prepares them for repeated use, and holds their answers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from zodiacedge.errors import CheckProblem, Diagnostic, UsageProblem, nearest
from zodiacedge.language.ast import Aggregate, Variable, variables
from zodiacedge.language.checks import check_query
from zodiacedge.language.parser import parse_query
from zodiacedge.language.printer import format_argument
from zodiacedge.terms import Term, Value, from_python, to_python

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import ModuleType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from zodiacedge.engine.api import Answer, Dropped, Settings, State
    from zodiacedge.language.ast import Query
    from zodiacedge.language.checks import Host


@dataclass(frozen=True, slots=True)
class Answers:
    """The rows of a query, distinct and in the total order, with the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Term, ...], ...]
    warnings: tuple[Diagnostic, ...] = ()
    dropped: Dropped | None = None

    def __iter__(self) -> Iterator[tuple[Value | Term, ...]]:
        """Yield rows as Python values; terms without a value, IRIs among them, stay terms."""
        for row in self.rows:
            yield tuple(map(to_python, row))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __bool__(self) -> bool:
        """Return whether there is an answer: the truth of a ground query."""
        return bool(self.rows)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, with a type for a column of one type, else as cells.

        A repeated column gets a distinct name, `X` and `X_2`, because data frames require it. A table without
        columns has no rows either: use the truth value of a ground query.
        """
        from zodiacedge import io  # noqa: PLC0415 - loads pyarrow

        return io.table_of(self.rows, _distinct_names(self.columns))

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame."""
        return cast("pl.DataFrame", library("polars").from_arrow(self.to_arrow()))

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        library("pandas")
        return cast("pd.DataFrame", self.to_arrow().to_pandas())


class Prepared:
    """A checked and planned query: call it with values for its parameters, as often as needed.

    The first call after a change of the knowledge base plans it again.
    """

    def __init__(
        self,
        query: Query,
        parameters: Mapping[str, Variable],
        read: Callable[[], AbstractContextManager[State]],
        settings: Callable[[], Settings],
    ) -> None:
        """Use `KnowledgeBase.prepare` instead."""
        self._read = read
        self._settings = settings
        self._query = query
        self._parameters = parameters
        self.columns = columns_of(query)
        self._planned: tuple[State, Settings, Callable[[Mapping[Variable, Term]], Answer]] | None = None

    def __call__(self, /, **values: object) -> Answers:
        """Answer the query; a string is a literal, an IRI is made with `zodiacedge.iri`."""
        if values.keys() != self._parameters.keys():
            expected = ", ".join(self._parameters) or "no values"
            raise UsageProblem(Diagnostic("U009", f"this query takes {expected}", "give each by its name"))
        given = {self._parameters[name]: from_python(value) for name, value in values.items()}
        with self._read() as state:
            settings = self._settings()
            if self._planned is None or self._planned[0] is not state or self._planned[1] is not settings:
                parameters = tuple(self._parameters.values())
                self._planned = (state, settings, state.prepare(self._query, parameters, settings))
            answer = self._planned[2](given)
        return Answers(self.columns, answer.rows, (), answer.dropped)


def columns_of(query: Query) -> tuple[str, ...]:
    """Return the names of a query's columns."""
    return tuple(format_argument(c).removeprefix("?") for c in query.columns)


class CheckedQuery(NamedTuple):
    """A parsed and checked query, with the warnings of both."""

    query: Query
    warnings: tuple[Diagnostic, ...]


def checked_query(
    text: str,
    prefixes: Mapping[str, str],
    host: Host,
    given: Collection[Variable] = (),
    name: str = "<query>",
) -> CheckedQuery:
    """Parse and check a query, or raise; variables in `given` are parameters."""
    query = parse_query(text, name, prefixes, given)
    problems = list(_bad_parameters(query, given))
    if problems:
        raise UsageProblem(problems)
    diagnostics = check_query(query, host, given)
    errors = [d for d in diagnostics if d.severity == "error"]
    if errors:
        raise CheckProblem(errors)
    return CheckedQuery(query, tuple(d for d in diagnostics if d.severity != "error"))


def _bad_parameters(query: Query, given: Iterable[Variable]) -> Iterator[Diagnostic]:
    """Yield errors for parameters that the query lacks or that are local to an aggregate."""
    columns = (c for c in query.columns if isinstance(c, Variable))
    candidates = dict.fromkeys((*columns, *(v for c in query.body for v in variables(c))))
    named = [v.name for v in candidates if not v.anonymous]
    for v in given:
        if v.name not in named:
            near = nearest(v.name, named)
            hint = f"did you mean {near}?" if near else f"its variables are: {', '.join(named) or 'none'}"
            yield Diagnostic("U009", f"the query has no variable {v.name}", hint)
        for aggregate in (c for c in query.body if isinstance(c, Aggregate)):
            if v not in aggregate.groups and any(v in variables(c) for c in aggregate.body):
                yield Diagnostic(
                    "U010",
                    f"{v.name} is a variable inside the AGGREGATE, where a parameter is not seen",
                    f"group by it, ON {v.name}, or keep what it says outside the AGGREGATE",
                    aggregate.span,
                )


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
