"""`zodiac init`: create a durable store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_store import counts, show_bad_lines, show_counts, show_dropped, writing
from zodiacedge.cli.options import (
    FILE,
    EngineOptions,
    base_option,
    delimiter_option,
    engine_options,
    facts_option,
    header_option,
    limit_options,
    message_option,
    quarantine_option,
    store_argument,
    strict_option,
    wait_option,
)
from zodiacedge.cli.rule_files import read_rules
from zodiacedge.errors import CheckProblem
from zodiacedge.store.create import is_blank
from zodiacedge.store.layout import MARKER
from zodiacedge.store.location.base import location_of
from zodiacedge.store.location.marker import check_store
from zodiacedge.store.problems import already_a_store

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.standard_input import Source
    from zodiacedge.engine.limits import Limits


@click.command("init")
@store_argument
@click.option(
    "--rules", multiple=True, type=FILE, metavar="FILE", help="Rules: files, folders, globs, - for stdin."
)
@facts_option
@header_option
@delimiter_option
@base_option
@strict_option
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
    rules: tuple[str, ...],
    facts: tuple[Source, ...],
    header: bool,
    delimiter: str,
    base: str,
    strict: bool,
    message: str,
    quarantine: str | None,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Create a store in a folder that is empty or does not exist.

    The rules and facts given are its first version. A store without a version, because it was created without
    rules and facts or because its creation failed, is reused.

    \b
    Example:
      zodiac init farm.zodiac --rules farm.rules --facts readings.csv
    """
    reading = read_rules(rules)
    if reading.errors:
        raise CheckProblem(reading.findings)
    location = location_of(store)
    if location.has(MARKER):
        check_store(location)
        if not is_blank(location):
            raise already_a_store(store)
    with (
        console.progress(),
        writing(console, store, on, create=True, strict=strict, wait=wait, limits=limits) as kb,
    ):
        if kb.version:
            # Another process was faster.
            raise already_a_store(store)
        loads = []
        if rules or facts:
            with kb.change(message or "made") as change:
                change.add_program(reading.program)
                if facts:
                    change.load(
                        *facts,
                        header=header,
                        delimiter=delimiter,
                        base=base,
                        strict=strict,
                        progress=console.loading,
                        quarantine=quarantine,
                    )
            loads = change.loads
    made = change.report.to_dict() if rules or facts else {"seconds": 0.0, "dropped": {}, "warnings": []}
    if rules or facts:
        console.findings(change.report.warnings)
        show_bad_lines(console, loads)
        show_dropped(console, change.report)
    show_counts(console, kb)
    if console.as_json:
        report = {name: made[name] for name in ("seconds", "dropped", "warnings")}
        console.json(counts(kb) | report | {"loads": [load.to_dict() for load in loads]})
