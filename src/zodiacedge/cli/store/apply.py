"""`zodiac apply`: one transaction on a store."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import changing, loaded_tables, read_files, unread_by_rules
from zodiacedge.cli.options import (
    FILE,
    CommitOptions,
    DataOptions,
    commit_options,
    ignore_option,
    reading_options,
    show_facts_option,
    store_argument,
)
from zodiacedge.cli.preview import dry_run_options, show_preview
from zodiacedge.cli.rule_files import EXTENSION, text_files
from zodiacedge.cli.show import (
    counts,
    show_bad_lines,
    show_facts_of,
)
from zodiacedge.cli.standard_input import STANDARD_INPUT, facts_from
from zodiacedge.kb.preview.samples import preview_of
from zodiacedge.store.versions.diff import listed

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.preview import DryRun
    from zodiacedge.cli.standard_input import Source
    from zodiacedge.kb.preview.samples import Preview
    from zodiacedge.kb.transaction import Transaction


@click.command("apply")
@store_argument
@click.option(
    "--add-rules", multiple=True, type=FILE, metavar="FILE", help="Rules and facts of programs to add."
)
@click.option(
    "--remove-rules",
    multiple=True,
    type=FILE,
    metavar="LABEL|FILE",
    help="Rules to remove, by label or text.",
)
@click.option("--replace", is_flag=True, help="A rule to add replaces the rule that has its label.")
@click.option(
    "--sync",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="Make the rules those of these programs: add missing ones, remove all others.",
)
@click.option(
    "--add-facts",
    multiple=True,
    type=FILE,
    metavar="FILE",
    callback=facts_from,
    help="Data to add: files, globs, URIs, p=FILE, p=- for standard input.",
)
@click.option(
    "--remove-facts", multiple=True, type=FILE, metavar="FILE", callback=facts_from, help="Data to remove."
)
@reading_options
@dry_run_options
@show_facts_option(0)
@commit_options
@common
@ignore_option
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    add_rules: tuple[str, ...],
    remove_rules: tuple[str, ...],
    replace: bool,
    sync: tuple[str, ...],
    add_facts: tuple[Source, ...],
    remove_facts: tuple[Source, ...],
    data: DataOptions,
    dry_run: DryRun,
    show_facts: int,
    commit: CommitOptions,
) -> None:
    r"""Change rules and facts of a store as one transaction, and print its report.

    If a rule or fact is both added and removed, it is added. A change without effect makes no version.
    --dry-run lists the rules that would be added and removed, counts facts per predicate, and says of some
    what they rest on; with --html, a page explains them. Nothing asks for a confirmation.

    \b
    Example:
      zodiac apply farm.zodiac --add-facts today.csv -m "readings of today"
      zodiac apply farm.zodiac --remove-rules r4 --dry-run
      zodiac apply farm.zodiac --sync rules/ --dry-run --html preview.html
    """
    if not (add_rules or remove_rules or sync or add_facts or remove_facts):
        raise click.UsageError(
            "Nothing to do: name --add-rules, --remove-rules, --add-facts, --remove-facts or --sync."
        )
    if sync and (add_rules or remove_rules):
        raise click.UsageError("--sync names all rules: leave out --add-rules and --remove-rules.")
    if replace and not add_rules:
        raise click.UsageError("--replace is for rules to add: add --add-rules FILE.")
    preview: Preview | None = None
    with console.progress(), changing(console, store, commit, strict=data.strict) as kb:
        change = kb.change(commit.message)
        for file in text_files(add_rules):
            change.add_rules(file.text, file.name, replace=replace)
        for file in text_files(sync):
            change.sync_rules(file.text, file.name)
        for rule in remove_rules:
            _remove(change, rule)
        for files, read in ((add_facts, change.load), (remove_facts, change.unload)):
            read_files(console, read, files, data)
        known = kb.state.explicit_predicates({table.name for table in loaded_tables(change)})
        if dry_run.chosen:
            report = replace_fields(change.dry_run(), prefixes=change.prefixes)
            preview = preview_of(kb, report, dry_run.samples)
        else:
            with change:
                pass
            report = change.report
        unread = unread_by_rules(kb, (table for table in loaded_tables(change) if table not in known), report)
        inserted = listed(report.inserted) if show_facts else []
        deleted = listed(report.deleted) if show_facts else []
    console.prefixes = {**console.prefixes, **change.prefixes}
    console.findings(unread)
    show_bad_lines(console, change.loads)
    console.text(report.summary())
    samples = show_preview(console, preview, dry_run) if preview else {}
    show_facts_of(console, "+", inserted, show_facts)
    show_facts_of(console, "-", deleted, show_facts)
    if console.as_json:
        facts_listed = {
            "facts_inserted": inserted[:show_facts],
            "facts_deleted": deleted[:show_facts],
        }
        loads = {"loads": [load.to_dict() for load in change.loads]}
        warnings = {"warnings": [w.to_dict() for w in console.heard((*report.warnings, *unread))]}
        listed_facts: dict[str, object] = dict(facts_listed) if show_facts else {}
        console.json(counts(kb) | report.to_dict() | warnings | loads | listed_facts | samples)


def _remove(change: Transaction, rule: str) -> None:
    if rule.endswith(EXTENSION) or rule == STANDARD_INPUT or Path(rule).exists():
        for file in text_files([rule]):
            change.remove_rules(file.text, file.name)
    else:
        change.remove_rules(rule)
