"""`zodiac tick`: the clock of a store moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import changing
from zodiacedge.cli.options import CommitOptions, commit_options, ignore_option, store_argument
from zodiacedge.cli.show import counts

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("tick")
@store_argument
@click.argument("moment", default="", metavar="[TIME]")
@commit_options
@common
@ignore_option
def command(
    console: Console,
    *,
    store: str,
    moment: str,
    commit: CommitOptions,
) -> None:
    r"""Move the clock of a store to a time, or to the time of the system.

    Rules with windows are brought up to date: readings leave `within 10 min`, silence becomes true. The clock
    does not go back.

    \b
    Example:
      zodiac tick farm.zodiac 2026-01-01T12:10:00Z
    """
    with console.progress(), changing(console, store, commit) as kb:
        report = kb.tick(moment or None, message=commit.message)
    console.text(report.summary())
    if console.as_json:
        console.json(counts(kb) | report.to_dict())
