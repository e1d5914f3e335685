"""`zodiac pack install` and `zodiac pack remove`: one transaction on a store, with a preview."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import writing
from zodiacedge.cli.options import (
    FILE,
    EngineOptions,
    engine_options,
    ignore_option,
    limit_options,
    message_option,
    store_argument,
    wait_option,
)
from zodiacedge.cli.output import write_text
from zodiacedge.cli.show import counts, samples_document, show_net_change, show_samples
from zodiacedge.kb.preview.page import preview_page
from zodiacedge.kb.preview.samples import preview_of
from zodiacedge.language.printer import format_predicate

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.cli.console import Console
    from zodiacedge.engine.limits import Limits
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase

    Command = Callable[..., None]

_dry_run_option = click.option("--dry-run", is_flag=True, help="Print a preview; commit nothing.")
_samples_option = click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="Of a dry run: show N facts that a predicate gains, and N that it loses, with reasons.",
)
_html_option = click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Of a dry run: write the preview as a page, with its graph.",
)


@click.command("install")
@store_argument
@click.argument("files", type=FILE, metavar="FILE...", nargs=-1, required=True)
@click.option("--remove", multiple=True, metavar="NAME", help="A pack to remove in the same transaction.")
@click.option("--older", is_flag=True, help="Let a version replace a later one.")
@_dry_run_option
@_samples_option
@_html_option
@message_option
@wait_option
@limit_options
@engine_options
@common
@ignore_option
def install(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    files: tuple[str, ...],
    remove: tuple[str, ...],
    older: bool,
    dry_run: bool,
    samples: int,
    html: str | None,
    message: str,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Install packs in a store, or upgrade them, as one transaction.

    A file is a pack, or a delta of a pack that is installed. What the packs demand is checked first: other
    packs, functions, namespaces, and their checks on the facts of the store.

    \b
    Example:
      zodiac pack install farm.zodiac diagnosis-8.zpack --dry-run
      zodiac pack install farm.zodiac diagnosis-8-9.zdelta
    """
    _check_options(html, dry_run=dry_run)
    with console.progress(), writing(console, store, on, wait=wait, limits=limits) as kb:
        report = kb.install(*files, remove=remove, message=message, older=older, dry_run=dry_run)
        _show(console, kb, report, samples, html)


@click.command("remove")
@store_argument
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@_dry_run_option
@_samples_option
@_html_option
@message_option
@wait_option
@limit_options
@engine_options
@common
@ignore_option
def remove(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    names: tuple[str, ...],
    dry_run: bool,
    samples: int,
    html: str | None,
    message: str,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Remove packs from a store as one transaction: their rules go, unless something else owns them.

    \b
    Example:
      zodiac pack remove farm.zodiac diagnosis
    """
    _check_options(html, dry_run=dry_run)
    with console.progress(), writing(console, store, on, wait=wait, limits=limits) as kb:
        report = kb.install(remove=names, message=message, dry_run=dry_run)
        _show(console, kb, report, samples, html)


def _check_options(html: str | None, *, dry_run: bool) -> None:
    if html and not dry_run:
        raise click.UsageError("--html is the preview of a dry run: add --dry-run.")


def _show(
    console: Console, kb: StoredKnowledgeBase, report: ChangeReport, samples: int, html: str | None
) -> None:
    console.text(report.summary())
    shown: dict[str, object] = {}
    if report.dry_run:
        preview = preview_of(kb, report, samples)
        rules = report.rules_added, report.rules_removed
        show_net_change(console, rules, report.net_counts(format_predicate))
        show_samples(console, preview)
        shown = samples_document(preview)
        if html:
            write_text(Path(html), preview_page(preview), "name another file with --html")
            console.text(f"wrote {html}")
    if console.as_json:
        console.json(counts(kb) | report.to_dict() | packs_document(kb) | shown)


def packs_document(kb: KnowledgeBase) -> dict[str, object]:
    """Return the JSON of the packs in force."""
    return {"installed": [manifest.to_dict() for manifest in kb.packs()]}
