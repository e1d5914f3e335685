"""`zodiac pack install` and `zodiac pack remove`: one transaction on a store, with a preview."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import changing
from zodiacedge.cli.options import FILE, CommitOptions, commit_options, ignore_option, store_argument
from zodiacedge.cli.preview import dry_run_options, show_preview
from zodiacedge.cli.show import counts
from zodiacedge.kb.preview.samples import preview_of

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.preview import DryRun
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase


@click.command("install")
@store_argument
@click.argument("files", type=FILE, metavar="FILE...", nargs=-1, required=True)
@click.option("--remove", multiple=True, metavar="NAME", help="A pack to remove in the same transaction.")
@click.option("--older", is_flag=True, help="Let a version replace a later one.")
@dry_run_options
@commit_options
@common
@ignore_option
def install(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    files: tuple[str, ...],
    remove: tuple[str, ...],
    older: bool,
    dry_run: DryRun,
    commit: CommitOptions,
) -> None:
    r"""Install packs in a store, or upgrade them, as one transaction.

    A file is a pack, or a delta of a pack that is installed. What the packs demand is checked first: other
    packs, functions, namespaces, and their checks on the facts of the store.

    \b
    Example:
      zodiac pack install farm.zodiac diagnosis-8.zpack --dry-run
      zodiac pack install farm.zodiac diagnosis-8-9.zdelta
    """
    with console.progress(), changing(console, store, commit) as kb:
        report = kb.install(
            *files, remove=remove, message=commit.message, older=older, dry_run=dry_run.chosen
        )
        _show(console, kb, report, dry_run)


@click.command("remove")
@store_argument
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@dry_run_options
@commit_options
@common
@ignore_option
def remove(
    console: Console,
    *,
    store: str,
    names: tuple[str, ...],
    dry_run: DryRun,
    commit: CommitOptions,
) -> None:
    r"""Remove packs from a store as one transaction: their rules go, unless something else owns them.

    \b
    Example:
      zodiac pack remove farm.zodiac diagnosis
    """
    with console.progress(), changing(console, store, commit) as kb:
        report = kb.install(remove=names, message=commit.message, dry_run=dry_run.chosen)
        _show(console, kb, report, dry_run)


def _show(console: Console, kb: StoredKnowledgeBase, report: ChangeReport, dry_run: DryRun) -> None:
    console.text(report.summary())
    shown: dict[str, object] = {}
    if report.dry_run:
        shown = show_preview(console, preview_of(kb, report, dry_run.samples), dry_run)
    if console.as_json:
        console.json(counts(kb) | report.to_dict() | packs_document(kb) | shown)


def packs_document(kb: KnowledgeBase) -> dict[str, object]:
    """Return the JSON of the packs in force."""
    return {"installed": [manifest.to_dict() for manifest in kb.packs()]}
