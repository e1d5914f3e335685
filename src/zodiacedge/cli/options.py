"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import inspect
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from zodiacedge.cli.standard_input import facts_from
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.select import ALL_ENGINES, STORE_ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.standard_input import Source

    Command = Callable[..., None]
    Decorator = Callable[[Command], Command]

FORMATS = ("csv", "tsv", "nt", "ttl", "jsonl", "parquet", "arrow")


class Amount(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click has it
        """Return the number, or fail."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class FileName(click.types.StringParamType):
    """The name of a file, folder or store, a pattern or a URI: shells complete it as a file name."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse an empty name: a path would take it for the current folder."""
        text: str = super().convert(value, param, ctx)
        if not text and getattr(param, "default", None) != "":
            self.fail("the name is empty; write . for the current folder", param, ctx)
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Leave the completion to the shell."""
        del ctx, param
        return [CompletionItem(incomplete, type=self.name)]


class LocalName(FileName):
    """The name of a file or folder of this machine."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse a URI: files are written to local folders only."""
        text = super().convert(value, param, ctx)
        if "://" in text:
            self.fail(f"{text} is a URI; files are written to this machine: name a local path", param, ctx)
        return text


FILE = FileName()
LOCAL_FILE = LocalName()
store_argument = click.argument("store", type=FILE, metavar="STORE")
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
_base_option = click.option(
    "--base", default="", metavar="IRI", help="The base of relative IRIs in Turtle and other RDF files."
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N rows of a query, any of them; evaluation stops then.",
)
_strict_option = click.option("--strict", is_flag=True, help="Fail on bad lines and evaluation errors.")
_facts_option = click.option(
    "--facts",
    "files",
    multiple=True,
    type=FILE,
    metavar="FILE",
    callback=facts_from,
    help="Data: files, folders, globs, URIs, p=FILE, p=- for standard input.",
)


wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    is_flag=False,
    flag_value=math.inf,
    default=0.0,
    metavar="[SECONDS]",
    help="Wait for another writer, as long as it takes or for some seconds.",
)
quarantine_option = click.option(
    "--quarantine", type=FILE, metavar="DIR", help="A folder for bad lines, with position and reason."
)
functions_option = click.option(
    "--functions",
    multiple=True,
    type=FILE,
    metavar="FILE.py",
    help="Python code to run: its register(kb) registers functions and aggregates.",
)


def as_argument(name: str, make: Callable[..., object], *options: Decorator) -> Decorator:
    """Return a decorator that adds options, whose values a command gets together as one argument.

    Args:
        name: The argument.
        make: Makes it from the values. They are passed by the names of its parameters.
        options: The options, in the order of the help.
    """
    parameters = tuple(inspect.signature(make).parameters)

    def decorated(function: Command) -> Command:
        @functools.wraps(function)
        def call(*args: object, **values: object) -> None:
            given = {parameter: values.pop(parameter) for parameter in parameters if parameter in values}
            function(*args, **{name: make(**given)}, **values)

        command: Command = call
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


@dataclass(frozen=True, slots=True)
class DataOptions:
    """The files of facts of a command, and how to read them."""

    files: tuple[Source, ...] = ()
    header: bool = False
    delimiter: str = ""
    base: str = ""
    quarantine: str | None = None
    strict: bool = False
    """Whether bad lines fail the command, and evaluation errors too."""


_READING = (header_option, delimiter_option, _base_option, quarantine_option, _strict_option)
# For reading files of facts as the argument `data`, which has no files.
reading_options = as_argument("data", DataOptions, *_READING)
# `--facts`, and the options for reading these files, as the argument `data`.
data_options = as_argument("data", DataOptions, _facts_option, *_READING)


def ignore_option(function: Command) -> Command:
    """Add `--ignore CODE`, whose warnings the console leaves out."""

    @click.option(
        "--ignore",
        multiple=True,
        metavar="CODE",
        callback=_warning_codes,
        help="Leave out the warnings with a code, such as W020.",
    )
    @functools.wraps(function)
    def call(console: Console, *args: object, ignore: tuple[str, ...], **options: object) -> None:
        console.ignored = frozenset(ignore)
        function(console, *args, **options)

    return call


def _warning_codes(
    _context: click.Context, _option: click.Parameter, codes: tuple[str, ...]
) -> tuple[str, ...]:
    for code in codes:
        if not re.fullmatch(r"W[0-9]{3}", code):
            raise click.BadParameter(f"{code} is not the code of a warning, such as W020.")
    return codes


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


# The limits of an evaluation as the argument `limits`.
limit_options = as_argument(
    "limits",
    Limits,
    click.option(
        "--max-facts",
        "facts",
        type=click.IntRange(min=0),
        default=Limits().facts,
        show_default=True,
        help="Limit of derived facts.",
    ),
    click.option(
        "--max-rounds",
        "rounds",
        type=click.IntRange(min=1),
        default=Limits().rounds,
        help="Limit of rounds of one hyper-node; none if not given.",
    ),
    click.option(
        "--max-seconds",
        "seconds",
        type=click.FloatRange(min=0),
        default=Limits().seconds,
        show_default=True,
        help="Time limit of an evaluation.",
    ),
    click.option(
        "--max-memory",
        "memory",
        type=click.IntRange(min=1),
        default=Limits().memory,
        help="Memory limit of the process in bytes; 80 % of the machine's if not given.",
    ),
)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The engine options of a command."""

    engine: str = "embedded"
    master: str = ""
    scratch: str = ""
    seed: int = 0
    functions: tuple[str, ...] = ()
    """Python files that register functions and aggregates."""
    spark: tuple[str, ...] = ()
    """Options of Spark, as texts `name=value`."""


def _choice_of(engines: Sequence[str]) -> Decorator:
    """Return a decorator that adds the options of the engine and `--functions` as the argument `on`."""
    return as_argument(
        "on",
        EngineOptions,
        click.option("--engine", type=click.Choice(engines), default="embedded", show_default=True),
        click.option("--master", default="", metavar="URL", help="Where Spark runs.  [default: local[*]]"),
        click.option(
            "--scratch",
            default="",
            type=FILE,
            metavar="URI",
            help="A folder that the whole cluster sees.",
        ),
        click.option(
            "--seed",
            type=int,
            default=0,
            metavar="N",
            help="Seed of Spark's fingerprints, if two collide.",
        ),
        click.option(
            "--spark-option",
            "spark",
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the engine spark, such as gather_rows=1000000, or a setting of Spark.",
        ),
        functions_option,
    )


engine_options = _choice_of(STORE_ENGINES)
all_engines_options = _choice_of(ALL_ENGINES)


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """The options of a command that commits a change to a store."""

    message: str
    wait: float
    limits: Limits
    on: EngineOptions


# The message, `--wait`, the limits and the engine as the argument `commit`.
commit_options = as_argument(
    "commit", CommitOptions, message_option, wait_option, limit_options, engine_options
)
