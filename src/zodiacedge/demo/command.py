"""`zodiac demo`: the wind farm of the paper, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import FILE
from zodiacedge.demo.story import play
from zodiacedge.engine.select import STORE_ENGINES
from zodiacedge.extras import need

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console

_TURBINES = 30


@click.command("demo")
@click.option("--turbines", default=_TURBINES, show_default=True, type=click.IntRange(12, 300))
@click.option(
    "--engine",
    type=click.Choice(STORE_ENGINES),
    default="spark",
    show_default=True,
    help="The engine of the farm's centre.",
)
@click.option(
    "--out",
    default="out/demo",
    show_default=True,
    type=FILE,
    metavar="DIR",
    help="A folder for stores and pictures.",
)
@click.option("--fleet", is_flag=True, help="Play rules that travel: a hub and three agents as processes.")
@common
def command(console: Console, *, turbines: int, engine: str, out: str, fleet: bool) -> None:
    r"""Play the wind-farm scenario: a farm at the centre, a slice of it on each turbine, and live rules.

    Two turbines read an odd temperature. Diagnosis rules are inserted, find that one turbine is in a cold
    front and that the sensor of the other is broken, and are deleted again. Stores and pictures stay in DIR.

    \b
    Example:
      zodiac demo
      zodiac demo --turbines 60 --engine embedded --json
      zodiac demo --fleet
    """
    if fleet:
        need("fleet", "zodiac demo --fleet")
        from zodiacedge.demo.fleet import play_fleet  # noqa: PLC0415 - of an extra

        found = play_fleet(console, Path(f"{out}-fleet"))
        if console.as_json:
            console.json(found)
        return
    document = play(console, Path(out), turbines, engine)
    if console.as_json:
        console.json(document)
