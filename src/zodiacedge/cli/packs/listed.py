"""`zodiac pack list`: the packs in force in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, at_option, functions_option, store_argument
from zodiacedge.cli.packs.install import packs_document

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console

_COLUMNS = ("pack", "version", "rules", "checks", "digest")
_DIGITS = 16


@click.command("list")
@store_argument
@at_option
@functions_option
@common
def listed(console: Console, *, store: str, at: int | None, functions: tuple[str, ...]) -> None:
    r"""List the packs in force in a store, and whether their checks hold.

    \b
    Example:
      zodiac pack list farm.zodiac
    """
    with reading(console, store, at, EngineOptions(functions=functions)) as kb:
        failing = kb.failing_checks()
    bad = {manifest.name for manifest, _ in failing}
    rows = [
        (
            name,
            str(pack.manifest.version),
            f"{len(pack.labels):,}",
            "fail" if name in bad else "hold" if pack.manifest.checks else "none",
            pack.manifest.digest[:_DIGITS],
        )
        for name, pack in kb.installed.installed.items()
    ]
    if rows:
        console.table(_COLUMNS, rows)
    else:
        console.text("no pack is installed")
    for manifest, check in failing:
        console.note(f"a check of the pack {manifest} fails: there must be {check}")
    if console.as_json:
        failed = [{"pack": manifest.name, "check": str(check)} for manifest, check in failing]
        console.json({"version": kb.version} | packs_document(kb) | {"failing": failed})
