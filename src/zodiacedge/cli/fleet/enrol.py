"""`zodiac enrol`: a code that enrols a device once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.fleet.usable import can_use
from zodiacedge.cli.options import FILE
from zodiacedge.extras import need

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("enrol")
@click.argument("folder", type=FILE, metavar="DIR")
@click.argument("device")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group that the device is in.")
@common
def command(console: Console, *, folder: str, device: str, groups: tuple[str, ...]) -> None:
    r"""Print a code that enrols a device at the hub of a folder, once, within a day.

    The code also says which root the device is to trust. The hub may run meanwhile, or not.

    \b
    Example:
      zodiac enrol hub wt1 --group north
    """
    need("fleet", "zodiac enrol")
    from zodiacedge.fleet.hub.codes import Codes  # noqa: PLC0415 - of an extra
    from zodiacedge.fleet.trust.repository import Repository  # noqa: PLC0415 - of an extra

    root = Repository(Path(folder) / "repository").root()
    try:
        with can_use(folder):
            code = Codes(Path(folder) / "codes").make(device, list(groups), root)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    console.text(code)
    if console.as_json:
        console.json({"device": device, "code": code})
