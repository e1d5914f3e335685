"""`zodiac log`: the versions of a store, who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, functions_option, store_argument
from zodiacedge.errors import counted
from zodiacedge.util.one_line import on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.store.log.record import Entry

_COLUMNS = ("version", "time", "author", "rules", "facts", "explicit", "message")


@click.command("log")
@store_argument
@click.option("-n", "--last", type=click.IntRange(min=1), metavar="N", help="Only the last N versions.")
@click.option("--full", is_flag=True, help="List the rules and prefixes of each change, too.")
@functions_option
@common
def command(
    console: Console, *, store: str, last: int | None, full: bool, functions: tuple[str, ...]
) -> None:
    r"""List the versions of a store: when, by whom, what changed, and the message.

    Each version is one line, the newest first: rules and explicit facts added and removed, and the number of
    explicit facts after the change.

    \b
    Example:
      zodiac log farm.zodiac --last 10
      zodiac log farm.zodiac --last 1 --full
    """
    with reading(console, store, on=EngineOptions(functions=functions)) as kb:
        entries = kb.log()[-last if last else None :]
    if full:
        for entry in entries[::-1]:
            _show_in_full(console, entry)
    else:
        show_log(console, entries)
    if console.as_json:
        console.json({"version": kb.version, "versions": [_document(entry) for entry in entries]})


def show_log(console: Console, entries: Sequence[Entry]) -> None:
    """Print a line for each version, the newest first."""
    console.table(_COLUMNS, map(_row, entries[::-1]))


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        str(entry.version),
        entry.moment[:19].replace("T", " "),
        on_one_line(entry.author),
        f"+{len(entry.rules_added):,} -{len(entry.rules_removed):,}",
        f"+{entry.facts_added:,} -{entry.facts_removed:,}",
        f"{entry.explicit:,}",
        on_one_line(entry.message),
    )


def _show_in_full(console: Console, entry: Entry) -> None:
    console.text(
        on_one_line(f"version {entry.version}  {entry.moment}  {entry.author}  {entry.message}".rstrip())
    )
    console.text(
        f"  rules +{len(entry.rules_added):,} -{len(entry.rules_removed):,}, "
        f"facts +{entry.facts_added:,} -{entry.facts_removed:,}, "
        f"then {counted(entry.explicit, 'explicit fact')}"
    )
    for prefix, base in entry.prefixes.items():
        console.text(on_one_line(f"  @prefix {prefix}: <{base}> ."))
    for sign, rules in (("+", entry.rules_added), ("-", entry.rules_removed)):
        for rule in rules:
            console.text(on_one_line(f"  {sign} {rule}"))


def _document(entry: Entry) -> dict[str, object]:
    """Return an entry for JSON; `derived` in other commands counts a fact of several segments once."""
    document = entry.to_dict()
    document["segment_facts"] = document.pop("derived")
    return document
