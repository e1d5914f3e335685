"""`zodiac log`: the versions of a store, who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.console import many
from zodiacedge.cli.open_store import reading
from zodiacedge.cli.options import store_argument

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("log")
@store_argument
@click.option("-n", "--last", type=click.IntRange(min=1), metavar="N", help="Only the last N versions.")
@common
def command(console: Console, *, store: str, last: int | None) -> None:
    r"""List the versions of a store: when, by whom, what changed, and the message.

    \b
    Example:
      zodiac log farm.zodiac --last 10
    """
    with reading(console, store) as kb:
        entries = kb.log()[-last if last else None :]
    for entry in reversed(entries):
        console.text(
            _on_one_line(f"version {entry.version}  {entry.moment}  {entry.author}  {entry.message}".rstrip())
        )
        console.text(
            f"  rules +{len(entry.rules_added):,} -{len(entry.rules_removed):,}, "
            f"facts +{entry.facts_added:,} -{entry.facts_removed:,}, "
            f"then {many(entry.explicit, 'explicit fact')}"
        )
        for sign, rules in (("+", entry.rules_added), ("-", entry.rules_removed)):
            for rule in rules:
                console.text(_on_one_line(f"  {sign} {rule}"))
    if console.as_json:
        console.json({"version": kb.version, "versions": [entry.to_dict() for entry in entries]})


def _on_one_line(text: str) -> str:
    """Return a text with escapes for newlines and control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
