"""The queries of a command: given in place, in files, or on standard input. A file holds one query."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.options import FILE, as_argument
from zodiacedge.cli.rule_files import TextFile, standard_input_text
from zodiacedge.cli.standard_input import STANDARD_INPUT
from zodiacedge.io.text import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_file_option = click.option(
    "--query-file",
    "query_files",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="A file with a query; - for standard input.",
)


def _queries(queries: Sequence[str], query_files: Sequence[str]) -> tuple[TextFile, ...]:
    return tuple(_texts(queries, query_files))


def _one_query(query: str | None, query_files: Sequence[str]) -> TextFile:
    if len(query_files) + (query is not None) != 1:
        raise click.UsageError("Give one query: QUERY, or --query-file FILE.")
    (text,) = _texts([] if query is None else [query], query_files)
    return text


# `--query` and `--query-file` as the argument `queries`; place it below `common`.
queries_options = as_argument(
    "queries",
    _queries,
    click.option(
        "--query", "queries", multiple=True, metavar="Q", help="A query, such as 'p(X)'; - for stdin."
    ),
    _file_option,
)
# The argument `query`, or `--query-file` in its place; place it below `common`.
query_argument = as_argument(
    "query", _one_query, click.argument("query", metavar="[QUERY]", required=False), _file_option
)


def _texts(queries: Sequence[str], files: Sequence[str]) -> Iterator[TextFile]:
    """Yield the queries, then those of files, each with a name for diagnostics; `-` is standard input."""
    for number, query in enumerate(queries, 1):
        name = f"<query {number}>" if len(queries) > 1 else "<query>"
        yield _read(query) if query == STANDARD_INPUT else TextFile(name, query)
    yield from map(_read, files)


def _read(file: str) -> TextFile:
    found = standard_input_text() if file == STANDARD_INPUT else TextFile(file, read_text(file))
    return replace(found, text=found.text.rstrip())
