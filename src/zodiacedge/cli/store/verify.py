"""`zodiac verify`: compares a store with an evaluation from scratch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, at_option, engine_options, store_argument
from zodiacedge.engine.select import ALL_ENGINES

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("verify")
@store_argument
@at_option
@click.option(
    "--against",
    type=click.Choice(ALL_ENGINES),
    help="The engine that evaluates.  [default: that of --engine]",
)
@engine_options
@common
def command(console: Console, *, store: str, at: int | None, against: str | None, on: EngineOptions) -> None:
    r"""Evaluate the rules of a store from scratch and compare all facts; print their digest.

    The exit code is 1 if there are differences.

    \b
    Example:
      zodiac verify farm.zodiac
    """
    with reading(console, store, at, on) as kb, console.progress("verifying"):
        result = kb.verify(against or "")
    console.text(str(result))
    if console.as_json:
        console.json(result.to_dict())
    if not result.ok:
        sys.exit(1)
