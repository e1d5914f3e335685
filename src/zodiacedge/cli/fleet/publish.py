"""`zodiac publish`: a pack in a repository, signed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.fleet.usable import can_use
from zodiacedge.cli.options import FILE
from zodiacedge.errors import Diagnostic, PackProblem
from zodiacedge.extras import need
from zodiacedge.packs.file import read_pack
from zodiacedge.packs.pack import Pack

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("publish")
@click.argument("file", type=FILE, metavar="PACK")
@click.option("--repo", required=True, type=FILE, metavar="DIR", help="The repository.")
@click.option("--keys", required=True, type=FILE, metavar="KEYS", help="The folder with the key of packs.")
@common
def command(console: Console, *, file: str, repo: str, keys: str) -> None:
    r"""Publish a pack in a repository, with deltas from the versions before.

    \b
    Example:
      zodiac publish diagnosis-8.zpack --repo repository --keys keys
    """
    need("fleet", "zodiac publish")
    from zodiacedge.fleet.trust.repository import Repository  # noqa: PLC0415 - of an extra

    pack = read_pack(file)
    if not isinstance(pack, Pack):
        why = f"{file} is the delta {pack}, not a pack"
        raise PackProblem(Diagnostic("P009", why, "publish the whole pack: deltas are made from it"))
    with can_use(repo):
        paths = Repository(repo).publish(pack, keys)
    for path in paths:
        console.text(f"published {path}")
    if console.as_json:
        console.json({"published": paths, "pack": str(pack)})
