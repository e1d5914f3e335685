"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from zodiacedge.cli.standard_input import facts_from
from zodiacedge.engine.select import ALL_ENGINES, STORE_ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Command = Callable[..., None]

FORMATS = ("csv", "tsv", "nt", "ttl", "jsonl", "parquet", "arrow")


class Amount(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click has it
        """Return the number, or fail."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


store_argument = click.argument("store", metavar="STORE")
at_option = click.option(
    "--at", type=int, metavar="VERSION", help="The version to read; the last if not given."
)
message_option = click.option("-m", "--message", default="", help="A message for the log.")
header_option = click.option("--header", is_flag=True, help="CSV and TSV files start with a line of names.")
delimiter_option = click.option(
    "--delimiter",
    default="",
    metavar="C",
    callback=lambda _context, _parameter, given: "\t" if given == "\\t" else given,
    help="The character between cells of CSV and TSV files, such as ';' or '\\t'.",
)
base_option = click.option(
    "--base", default="", metavar="IRI", help="The base of relative IRIs in Turtle and other RDF files."
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N rows of a query, any of them; evaluation stops then.",
)
strict_option = click.option("--strict", is_flag=True, help="Fail on bad lines and evaluation errors.")
facts_option = click.option(
    "--facts",
    multiple=True,
    metavar="FILE",
    callback=facts_from,
    help="Data: files, folders, globs, URIs, p=FILE, p=- for standard input.",
)


def show_facts_option(default: int) -> Callable[[Command], Command]:
    """Return a decorator that adds `--show-facts N`."""
    return click.option(
        "--show-facts",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="N",
        help="List up to N inserted and up to N deleted facts.",
    )


def files_options(function: Command) -> Command:
    """Add `--what` and `--format`, the contents and the format of exported files."""
    what = click.option(
        "--what",
        type=click.Choice(("derived", "all")),
        help="Export predicates that have a rule, or all.  [default: derived]",
    )
    form = click.option("--format", "form", type=click.Choice(FORMATS), help="Of the export.  [default: csv]")
    return form(what(function))


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The engine options of a command."""

    engine: str = "embedded"
    master: str = ""
    scratch: str = ""
    seed: int = 0


def _choice_of(engines: Sequence[str]) -> Callable[[Command], Command]:
    """Return a decorator that adds `--engine`, `--master`, `--scratch` and `--seed` as the argument `on`."""

    def decorated(function: Command) -> Command:
        @click.option("--engine", type=click.Choice(engines), default="embedded", show_default=True)
        @click.option("--master", default="", metavar="URL", help="Where Spark runs.  [default: local[*]]")
        @click.option(
            "--scratch",
            default="",
            metavar="URI",
            help="A folder that the whole cluster sees.",
        )
        @click.option(
            "--seed",
            type=int,
            default=0,
            metavar="N",
            help="Seed of Spark's fingerprints, if two collide.",
        )
        @functools.wraps(function)
        def call(*args: object, engine: str, master: str, scratch: str, seed: int, **options: object) -> None:
            function(*args, on=EngineOptions(engine, master, scratch, seed), **options)

        return call

    return decorated


engine_options = _choice_of(STORE_ENGINES)
all_engines_options = _choice_of(ALL_ENGINES)
