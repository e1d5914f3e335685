"""`zodiac log`: who changed what."""

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
    for one in reversed(entries):
        console.text(
            _on_one_line(f"version {one.version}  {one.moment}  {one.author}  {one.message}".rstrip())
        )
        console.text(
            f"  rules +{len(one.rules_added):,} -{len(one.rules_removed):,}, "
            f"facts +{one.facts_added:,} -{one.facts_removed:,}, then {many(one.explicit, 'explicit fact')}"
        )
        for sign, rules in (("+", one.rules_added), ("-", one.rules_removed)):
            for rule in rules:
                console.text(_on_one_line(f"  {sign} {rule}"))
    if console.as_json:
        console.json({"version": kb.version, "versions": [one.to_dict() for one in entries]})


def _on_one_line(text: str) -> str:
    """Return what somebody wrote as it may be shown: nothing in it ends a line or steers a terminal."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
