"""`zodiac pack`: the group of commands on packs."""

from __future__ import annotations

import click

from zodiacedge.cli.packs.build import build
from zodiacedge.cli.packs.diff import diff
from zodiacedge.cli.packs.install import install, remove
from zodiacedge.cli.packs.listed import listed
from zodiacedge.cli.packs.show import show


@click.group("pack", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Make packs of rules, and install, upgrade and remove them in stores.

    \b
    Example:
      zodiac pack build diagnosis/
      zodiac pack install farm.zodiac diagnosis-8.zpack --dry-run
    """  # noqa: D301 - \b is click's mark for text that it must not wrap


for each in (build, show, diff, install, remove, listed):
    command.add_command(each)
