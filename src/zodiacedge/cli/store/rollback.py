"""`zodiac rollback`: a new version that equals an earlier one."""

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


@click.command("rollback")
@store_argument
@click.argument("version", type=int, metavar="VERSION")
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
    version: int,
    message: str,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Create a new version with the rules and explicit facts of an earlier one.

    The versions in between stay in the log.

    \b
    Example:
      zodiac rollback farm.zodiac 3 -m "the new sensor lies"
    """
    with console.progress(), writing(console, store, on, wait=wait, limits=limits) as kb:
        report = kb.rollback(version, message)
    console.text(report.summary())
    if console.as_json:
        console.json(counts(kb) | report.to_dict())
