"""The preview of a dry run: its options, its text, its page and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.options import FILE, as_argument
from zodiacedge.cli.output import write_text
from zodiacedge.cli.show import show_net_change
from zodiacedge.kb.preview.page import preview_page
from zodiacedge.language.printer import format_atom, format_predicate

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.kb.preview.samples import Preview


@dataclass(frozen=True, slots=True)
class DryRun:
    """Whether a command is a dry run, and what its preview shows."""

    chosen: bool
    samples: int
    html: str | None


def _dry_run(*, dry_run: bool, samples: int, html: str | None) -> DryRun:
    if html and not dry_run:
        raise click.UsageError("--html is the preview of a dry run: add --dry-run.")
    return DryRun(dry_run, samples, html)


dry_run_options = as_argument(
    "dry_run",
    _dry_run,
    click.option("--dry-run", is_flag=True, help="Print a preview of the change; commit nothing."),
    click.option(
        "--samples",
        type=click.IntRange(min=0),
        default=2,
        show_default=True,
        metavar="N",
        help="Of a dry run: show N facts that a predicate gains, and N that it loses, with reasons.",
    ),
    click.option(
        "--html",
        type=FILE,
        metavar="FILE",
        help="Of a dry run: write the preview as a page, with the rule graph.",
    ),
)


def show_preview(console: Console, preview: Preview, options: DryRun) -> dict[str, object]:
    """Print a preview, write its page if there is to be one, and return the JSON of its samples."""
    report = preview.report
    show_net_change(console, (report.rules_added, report.rules_removed), report.net_counts(format_predicate))
    show_samples(console, preview)
    if options.html:
        write_text(Path(options.html), preview_page(preview), "name another file with --html")
        console.text(f"wrote {options.html}")
    return {
        "samples": [
            {"fact": format_atom(sample.fact), "gained": sample.gained, "reason": sample.reason}
            for sample in preview.samples
        ]
    }


def show_samples(console: Console, preview: Preview) -> None:
    """Print facts that a change gains and loses, with reasons, what it touches, and how long it takes."""
    for sample in preview.samples:
        sign = "+" if sample.gained else "-"
        reason = f"  {sample.clipped_reason(console.prefixes)}" if sample.reason else ""
        console.text(f"{sign} {format_atom(sample.fact)}{reason}")
    touched = "; ".join(", ".join(node.rules) for node in preview.report.nodes) or "nothing"
    console.text(f"touched: {touched}")
    console.text(f"a commit takes about as long: {preview.report.seconds:.3f} s")
