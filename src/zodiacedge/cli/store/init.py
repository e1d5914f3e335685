"""`zodiac init`: create a durable store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import changing, fill, loaded_tables, unread_by_rules
from zodiacedge.cli.options import (
    FILE,
    CommitOptions,
    DataOptions,
    commit_options,
    data_options,
    ignore_option,
    store_argument,
)
from zodiacedge.cli.rule_files import sound_rules
from zodiacedge.cli.show import counts, show_bad_lines, show_counts, show_dropped
from zodiacedge.store.create import is_blank
from zodiacedge.store.layout import MARKER
from zodiacedge.store.location.base import location_of
from zodiacedge.store.location.marker import check_store
from zodiacedge.store.problems import already_a_store

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.errors import Diagnostic


@click.command("init")
@store_argument
@click.option(
    "--rules", multiple=True, type=FILE, metavar="FILE", help="Rules: files, folders, globs, - for stdin."
)
@data_options
@commit_options
@common
@ignore_option
def command(
    console: Console,
    *,
    store: str,
    rules: tuple[str, ...],
    data: DataOptions,
    commit: CommitOptions,
) -> None:
    r"""Create a store in a folder that is empty or does not exist.

    The rules and facts given are its first version. A store without a version, because it was created without
    rules and facts or because its creation failed, is reused.

    \b
    Example:
      zodiac init farm.zodiac --rules farm.rules --facts readings.csv
    """
    checked = sound_rules(rules)
    location = location_of(store)
    if location.has(MARKER):
        check_store(location)
        if not is_blank(location):
            raise already_a_store(store)
    with console.progress(), changing(console, store, commit, create=True, strict=data.strict) as kb:
        if kb.version:
            # Another process was faster.
            raise already_a_store(store)
        console.prefixes = {**console.prefixes, **dict(checked.program.prefixes)}
        change = fill(console, kb, checked, data, commit.message or "made") if rules or data.files else None
    warnings: list[Diagnostic] = []
    if change:
        unread = unread_by_rules(kb, loaded_tables(change))
        console.findings(unread)
        show_bad_lines(console, change.loads)
        show_dropped(console, change.report)
        warnings += console.heard((*change.report.warnings, *unread))
    show_counts(console, kb)
    if console.as_json:
        made = change.report.to_dict() if change else {"seconds": 0.0, "dropped": {}}
        console.json(
            counts(kb)
            | {name: made[name] for name in ("seconds", "dropped")}
            | {"warnings": [warning.to_dict() for warning in warnings]}
            | {"loads": [load.to_dict() for load in (change.loads if change else ())]}
        )
