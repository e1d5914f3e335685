"""`zodiac query`: answer a query on a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, at_option, engine_options, limit_option, store_argument
from zodiacedge.cli.output import csv_lines, json_rows, write_arrow
from zodiacedge.cli.query_texts import query_argument
from zodiacedge.cli.show import refuse_binary_on_a_terminal, show_answers, show_problems
from zodiacedge.io import json_cell, rdf_lines
from zodiacedge.language.ast import Fact, fact
from zodiacedge.language.parser import parse_query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.rule_files import TextFile
    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase


@click.command("query")
@store_argument
@at_option
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "csv", "plain", "json", "jsonl", "arrow", "nt")),
    default="table",
    show_default=True,
    help="The format of the rows; csv and jsonl can be loaded again, plain is CSV for spreadsheets.",
)
@limit_option
@engine_options
@common
@query_argument
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    query: TextFile,
    at: int | None,
    form: str,
    limit: int | None,
    on: EngineOptions,
) -> None:
    r"""Answer a query on the last version of a store, or an earlier one.

    The query is given in place, in a file with --query-file, or on standard input, as -.
    Another process may write to the store. With --format nt, the rows of `p(X, Y) :- body .` are written as
    triples of p; for `?- body .` or the body alone, the facts that its atoms match.

    \b
    Example:
      zodiac query farm.zodiac 'alarm(T)'
      zodiac query farm.zodiac --query-file alarms.query
      zodiac query farm.zodiac 'reading(T, C), C > 80' --limit 10
      zodiac query farm.zodiac '?- alarm(T) .' --at 3 --format csv > alarms.csv
    """
    if form == "arrow":
        refuse_binary_on_a_terminal(form)
    with reading(console, store, at, on) as kb, console.progress("answering the query"):
        answers = kb.query(query.text, limit=limit, name=query.name)
        triples = list(rdf_lines(_facts(kb, query.text, answers))) if form == "nt" else []
    show_problems(console, answers)
    if console.as_json or form == "json":
        console.json(
            {
                "version": kb.version,
                "query": query.text,
                "columns": list(answers.columns),
                "rows": json_rows(answers),
                "warnings": [w.to_dict() for w in answers.warnings],
            }
        )
    elif form in {"csv", "plain"}:
        for lines in csv_lines(answers, plain=form == "plain"):
            click.echo(lines, nl=False)
    elif form == "jsonl":
        for row in answers.rows:
            click.echo(f"[{', '.join(map(json_cell, row))}]")
    elif form == "arrow":
        write_arrow(sys.stdout.buffer, answers)
    elif form == "nt":
        for line in triples:
            click.echo(line)
    else:
        show_answers(console, answers)


def _facts(kb: KnowledgeBase, query: str, answers: Answers) -> Iterable[Fact]:
    """Return the facts of a query's head, or those that its atoms match."""
    head = parse_query(query, prefixes=kb.prefixes).head
    if head is None:
        return kb.matching(query)
    if len(answers.columns) == len(head.args):
        return [Fact(head.relation, row) for row in answers.rows]
    # The head is a class written as a predicate.
    return [fact(head.predicate.name, *row) for row in answers.rows]
