"""`zodiac keys`: makes the keys of a fleet, and replaces them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.fleet.usable import can_use
from zodiacedge.cli.options import FILE
from zodiacedge.extras import need

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console

_repo_option = click.option(
    "--repo", required=True, type=FILE, metavar="DIR", help="The repository that trusts the keys."
)


@click.group("keys", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Make the keys of a fleet, and replace them.

    \b
    Example:
      zodiac keys init keys --repo repository
    """  # noqa: D301 - \b is click's mark for text that it must not wrap


@command.command("init")
@click.argument("folder", type=FILE, metavar="KEYS")
@_repo_option
@common
def init(console: Console, *, folder: str, repo: str) -> None:
    r"""Make the keys root, packs and online in a new folder, and a repository that trusts them.

    Keep root and packs offline: whoever has them says what devices run. The hub needs online only.

    \b
    Example:
      zodiac keys init keys --repo repository
    """
    need("fleet", "zodiac keys")
    from zodiacedge.fleet.trust.keys import make_keys  # noqa: PLC0415 - of an extra
    from zodiacedge.fleet.trust.repository import Repository  # noqa: PLC0415 - of an extra

    repository = Repository(repo)
    repository.refuse_if_there()
    with can_use(repo):
        repository.path.mkdir(parents=True, exist_ok=True)
    with can_use(folder):
        make_keys(folder)
        repository.create(folder)
    console.text(f"wrote the keys root, packs and online to {folder}, and the repository {repo}")
    if console.as_json:
        console.json({"keys": folder, "repository": repo})


@command.command("rotate")
@click.argument("folder", type=FILE, metavar="KEYS")
@click.argument("names", nargs=-1, required=True, type=click.Choice(("root", "packs", "online")))
@_repo_option
@common
def rotate(console: Console, *, folder: str, names: tuple[str, ...], repo: str) -> None:
    r"""Replace keys: the folder gets new ones, and the repository trusts these instead.

    Devices follow from one root to the next. After a theft of online, assignments are signed again.

    \b
    Example:
      zodiac keys rotate keys --repo repository online
    """
    need("fleet", "zodiac keys")
    from zodiacedge.fleet.trust.repository import Repository  # noqa: PLC0415 - of an extra

    chosen = tuple(dict.fromkeys(names))
    with can_use(repo):
        Repository(repo).rotate(folder, *chosen)
    for name in chosen:
        console.text(f"replaced the key {name}")
    if console.as_json:
        console.json({"replaced": list(chosen)})
