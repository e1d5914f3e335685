"""`zodiac vacuum`: flush the log, and remove unused files."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import writing
from zodiacedge.cli.options import Amount, EngineOptions, engine_options, store_argument, wait_option
from zodiacedge.errors import counted
from zodiacedge.kb.arguments import LONGEST

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("vacuum")
@store_argument
@click.option(
    "--keep-days",
    type=Amount(0, LONGEST.days),
    metavar="DAYS",
    help="Versions younger than this are kept; those of the store's retention time if not given.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed; remove nothing.")
@wait_option
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console, *, store: str, keep_days: float | None, dry_run: bool, wait: float, on: EngineOptions
) -> None:
    r"""Flush the log, remove old versions, and remove files that no version needs.

    The last version is always kept.

    \b
    Example:
      zodiac vacuum farm.zodiac --keep-days 30
    """
    with writing(console, store, on, wait=wait) as kb:
        time = None if keep_days is None else timedelta(days=keep_days)
        removed = kb.vacuum(time, dry_run=dry_run)
    verb, kept = ("would remove", "would be kept") if dry_run else ("removed", "are kept")
    console.text(
        f"{verb} {counted(removed.files, 'file')}, {removed.bytes:,} bytes; "
        f"versions {removed.first_version} to {kb.version} {kept}"
    )
    if console.as_json:
        console.json(
            {
                "version": kb.version,
                "first_version": removed.first_version,
                "files": removed.files,
                "bytes": removed.bytes,
                "dry_run": dry_run,
            }
        )
