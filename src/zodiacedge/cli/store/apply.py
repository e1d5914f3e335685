"""`zodiac apply`: one transaction on a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_store import counts, show_bad_lines, show_facts_of, show_net_change, writing
from zodiacedge.cli.options import (
    FILE,
    EngineOptions,
    delimiter_option,
    engine_options,
    header_option,
    limit_options,
    message_option,
    quarantine_option,
    show_facts_option,
    store_argument,
    strict_option,
    wait_option,
)
from zodiacedge.cli.rule_files import EXTENSION, text_files
from zodiacedge.cli.standard_input import STANDARD_INPUT, facts_from
from zodiacedge.language.printer import format_predicate
from zodiacedge.store.versions.diff import listed

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.standard_input import Source
    from zodiacedge.engine.limits import Limits
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
@header_option
@delimiter_option
@click.option("--dry-run", is_flag=True, help="Print the report of the change; commit nothing.")
@strict_option
@show_facts_option(0)
@message_option
@quarantine_option
@wait_option
@limit_options
@engine_options
@common
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
    header: bool,
    delimiter: str,
    dry_run: bool,
    strict: bool,
    show_facts: int,
    message: str,
    quarantine: str | None,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Change rules and facts of a store as one transaction, and print its report.

    If a rule or fact is both added and removed, it is added. A change without effect makes no version.
    --dry-run lists the rules that would be added and removed, and counts facts per predicate; nothing asks
    for a confirmation.

    \b
    Example:
      zodiac apply farm.zodiac --add-facts today.csv -m "readings of today"
      zodiac apply farm.zodiac --remove-rules r4 --dry-run
      zodiac apply farm.zodiac --sync rules/ --dry-run
    """
    if not (add_rules or remove_rules or sync or add_facts or remove_facts):
        raise click.UsageError("Nothing to do: add or remove rules or facts.")
    if sync and (add_rules or remove_rules):
        raise click.UsageError("--sync names all rules: leave out --add-rules and --remove-rules.")
    if replace and not add_rules:
        raise click.UsageError("--replace is for rules to add: add --add-rules FILE.")
    with (
        console.progress(),
        writing(console, store, on, strict=strict, wait=wait, limits=limits) as kb,
    ):
        change = kb.change(message)
        for file in text_files(add_rules):
            change.add_rules(file.text, file.name, replace=replace)
        for file in text_files(sync):
            change.sync_rules(file.text, file.name)
        for rule in remove_rules:
            _remove(change, rule)
        for files, read in ((add_facts, change.load), (remove_facts, change.unload)):
            if files:
                read(
                    *files,
                    header=header,
                    delimiter=delimiter,
                    strict=strict,
                    progress=console.loading,
                    quarantine=quarantine,
                )
        if dry_run:
            report = change.dry_run()
        else:
            with change:
                pass
            report = change.report
        inserted = listed(report.inserted) if show_facts else []
        deleted = listed(report.deleted) if show_facts else []
    console.findings(report.warnings)
    show_bad_lines(console, change.loads)
    console.text(report.summary())
    if dry_run:
        show_net_change(
            console, (report.rules_added, report.rules_removed), report.net_counts(format_predicate)
        )
    show_facts_of(console, "+", inserted, show_facts)
    show_facts_of(console, "-", deleted, show_facts)
    if console.as_json:
        facts_listed = {
            "facts_inserted": inserted[:show_facts],
            "facts_deleted": deleted[:show_facts],
        }
        loads = {"loads": [load.to_dict() for load in change.loads]}
        console.json(counts(kb) | report.to_dict() | loads | (facts_listed if show_facts else {}))


def _remove(change: Transaction, rule: str) -> None:
    if rule.endswith(EXTENSION) or rule == STANDARD_INPUT or Path(rule).exists():
        for file in text_files([rule]):
            change.remove_rules(file.text, file.name)
    else:
        change.remove_rules(rule)
