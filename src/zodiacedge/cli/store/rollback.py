"""`zodiac rollback`: a new version that equals an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_store import counts, writing
from zodiacedge.cli.options import EngineOptions, engine_options, message_option, store_argument

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("rollback")
@store_argument
@click.argument("version", type=int, metavar="VERSION")
@message_option
@engine_options
@common
def command(console: Console, *, store: str, version: int, message: str, on: EngineOptions) -> None:
    r"""Create a new version with the rules and explicit facts of an earlier one.

    The versions in between stay in the log.

    \b
    Example:
      zodiac rollback farm.zodiac 3 -m "the new sensor lies"
    """
    with console.progress(), writing(console, store, on=on) as kb:
        report = kb.rollback(version, message)
    console.text(str(report))
    if console.as_json:
        console.json(counts(kb) | report.to_dict())
