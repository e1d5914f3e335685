"""`zodiac vacuum`: flush the log, and remove files that no version needs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.console import many
from zodiacedge.cli.open_store import writing
from zodiacedge.cli.options import Amount, Chosen, engine_options, store_argument
from zodiacedge.kb.arguments import LONGEST

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("vacuum")
@store_argument
@click.option(
    "--keep-days",
    type=Amount(0, LONGEST.days),
    default=7.0,
    show_default=True,
    metavar="DAYS",
    help="Versions of this time stay.",
)
@click.option("--dry-run", is_flag=True, help="Tell what there is to remove; remove nothing.")
@engine_options
@common
def command(console: Console, *, store: str, keep_days: float, dry_run: bool, on: Chosen) -> None:
    r"""Remove files that no version needs, and versions that are older than wanted.

    The last version always stays.

    \b
    Example:
      zodiac vacuum farm.zodiac --keep-days 30
    """
    with writing(console, store, on=on) as kb:
        report = kb.vacuum(timedelta(days=keep_days), dry_run=dry_run)
    done, left = ("would remove", "would be kept") if dry_run else ("removed", "are kept")
    console.text(
        f"{done} {many(report.files, 'file')}, {report.bytes:,} bytes; "
        f"versions {report.first_version} to {kb.version} {left}"
    )
    if console.as_json:
        console.json(
            {
                "version": kb.version,
                "first_version": report.first_version,
                "files": report.files,
                "bytes": report.bytes,
                "dry_run": dry_run,
            }
        )
