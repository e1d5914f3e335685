"""Options and arguments that several commands have, each said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., None]

FORMATS = ("csv", "tsv", "nt", "ttl", "jsonl", "parquet", "arrow")

at_option = click.option(
    "--at", type=int, metavar="VERSION", help="The version to look at; the last if not given."
)
header_option = click.option("--header", is_flag=True, help="CSV and TSV files start with a line of names.")
base_option = click.option(
    "--base", default="", metavar="IRI", help="What relative IRIs in Turtle and so on mean."
)
strict_option = click.option("--strict", is_flag=True, help="Bad lines and evaluation errors fail it.")
facts_option = click.option(
    "--facts", multiple=True, metavar="FILE", help="Data: files, folders, globs, p=FILE."
)


def files_options(function: Command) -> Command:
    """Give a command that exports the options which say what the files hold, and how."""
    what = click.option(
        "--what",
        type=click.Choice(("derived", "all")),
        help="Export predicates that have a rule, or all.  [default: derived]",
    )
    form = click.option("--format", "form", type=click.Choice(FORMATS), help="Of the export.  [default: csv]")
    return form(what(function))
