"""`zodiac export`: the facts of a store as files, or a slice of it as a store for a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import (
    FILE,
    EngineOptions,
    at_option,
    engine_options,
    files_options,
    store_argument,
)
from zodiacedge.cli.output import check_folder, export, export_document
from zodiacedge.errors import counted
from zodiacedge.language.parser import parse_fact
from zodiacedge.language.printer import format_predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.cli.console import Console
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.terms import Term


@click.command("export")
@store_argument
@click.option("--out", required=True, type=FILE, metavar="DIR", help="A folder; for a slice, a new store.")
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="Q",
    help="A store with the facts of this query or atom, and the rules that concern them.",
)
@click.option("--given", multiple=True, metavar="V=TERM", help="The value of a variable of the slice.")
@at_option
@files_options
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    out: str,
    slices: tuple[str, ...],
    given: tuple[str, ...],
    at: int | None,
    form: str | None,
    what: str | None,
    on: EngineOptions,
) -> None:
    r"""Write the facts of a store to files, one per predicate; or the part that one device needs.

    That part, a slice, is a new store for the embedded engine. It is given as a query, for the facts that its
    atoms match, or as about(X) :- body, for the explicit facts that mention its answers. The slice holds
    the rules that read these facts, too.

    \b
    Example:
      zodiac export farm.zodiac --out facts --format nt
      zodiac export farm.zodiac --out wt1.zodiac --slice '?- near(T, N), reading(N, V) .' --given T=wt1
    """
    if slices and (form or what):
        raise click.UsageError("--format and --what describe files: a slice is a store.")
    if given and not slices:
        raise click.UsageError("--given is for the variables of a slice: add --slice.")
    if slices:
        with reading(console, store, at, on) as kb:
            _slice(console, kb, out, slices, _values(given, kb.prefixes))
        return
    if "://" in out:
        raise click.UsageError(
            f"--out {out} is a URI; files are written to this machine: name a local folder."
        )
    check_folder(Path(out))
    with reading(console, store, at, on) as kb, console.progress("exporting facts"):
        written = export(kb, out, form or "csv", everything=what == "all")
    console.text(f"wrote {counted(written.rows, 'fact')} to {counted(len(written.files), 'file')} in {out}")
    if console.as_json:
        console.json({"version": kb.version} | export_document(written))


def _slice(
    console: Console, kb: KnowledgeBase, out: str, slices: Iterable[str], values: Mapping[str, Term]
) -> None:
    with console.progress("cutting the slice"):
        part = kb.export_slice(out, *slices, **values)
    console.findings(part.warnings)
    console.text(
        f"wrote {counted(len(part.facts), 'fact')} and {counted(len(part.rules), 'rule')} to {out}, "
        f"{counted(part.left_behind, 'rule')} left behind"
    )
    if console.as_json:
        console.json(
            {
                "version": kb.version,
                "store": out,
                "facts": len(part.facts),
                "rules": len(part.rules),
                "left_behind": part.left_behind,
                "given": [f"{format_predicate(name)}/{arity}" for name, arity in part.given],
                "warnings": [warning.to_dict() for warning in part.warnings],
            }
        )


def _values(given: Iterable[str], prefixes: Mapping[str, str]) -> dict[str, Term]:
    values: dict[str, Term] = {}
    for option in given:
        name, equals, text = option.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise click.UsageError(f"--given takes the name of a variable and a term, T=wt1, not {option!r}.")
        # A term is parsed as an argument of a fact: names are IRIs, strings have quotes.
        term, *others = parse_fact(f"<given>({text.strip()}, 0)", "<given>", prefixes).args
        variable = name.strip().removeprefix("?")
        if len(others) > 1 or variable in values:
            raise click.UsageError(f"--given takes one term for each variable: {option!r} is another.")
        values[variable] = term
    return values
