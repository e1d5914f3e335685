"""`zodiac rollback`: a new version that equals an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import changing
from zodiacedge.cli.options import CommitOptions, commit_options, ignore_option, store_argument
from zodiacedge.cli.show import counts

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("rollback")
@store_argument
@click.argument("version", type=int, metavar="VERSION")
@commit_options
@common
@ignore_option
def command(
    console: Console,
    *,
    store: str,
    version: int,
    commit: CommitOptions,
) -> None:
    r"""Create a new version with the rules and explicit facts of an earlier one.

    The versions in between stay in the log.

    \b
    Example:
      zodiac rollback farm.zodiac 3 -m "the new sensor lies"
    """
    with console.progress(), changing(console, store, commit) as kb:
        report = kb.rollback(version, commit.message)
    console.text(report.summary())
    if console.as_json:
        console.json(counts(kb) | report.to_dict())
