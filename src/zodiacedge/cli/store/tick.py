"""`zodiac tick`: the clock of a store moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import writing
from zodiacedge.cli.options import (
    EngineOptions,
    engine_options,
    ignore_option,
    limit_options,
    message_option,
    store_argument,
    wait_option,
)
from zodiacedge.cli.show import counts

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.engine.limits import Limits


@click.command("tick")
@store_argument
@click.argument("moment", default="", metavar="[TIME]")
@message_option
@wait_option
@limit_options
@engine_options
@common
@ignore_option
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    moment: str,
    message: str,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Move the clock of a store to a time, or to the time of the system.

    Rules with windows are brought up to date: readings leave `within 10 min`, silence becomes true. The clock
    does not go back.

    \b
    Example:
      zodiac tick farm.zodiac 2026-01-01T12:10:00Z
    """
    with console.progress(), writing(console, store, on, wait=wait, limits=limits) as kb:
        report = kb.tick(moment or None, message=message)
    console.text(report.summary())
    if console.as_json:
        console.json(counts(kb) | report.to_dict())
