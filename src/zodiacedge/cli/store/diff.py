"""`zodiac diff`: the differences between two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_store import reading, show_facts_of
from zodiacedge.cli.options import EngineOptions, engine_options, show_facts_option, store_argument
from zodiacedge.language.printer import format_predicate, format_rule
from zodiacedge.store.versions.diff import listed

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("diff")
@store_argument
@click.argument("before", type=int, metavar="V1")
@click.argument("after", type=int, metavar="V2")
@show_facts_option(20)
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    before: int,
    after: int,
    show_facts: int,
    on: EngineOptions,
) -> None:
    r"""Show the rules and visible facts that only one of two versions has.

    \b
    Example:
      zodiac diff farm.zodiac 3 5
    """
    with reading(console, store, on=on) as kb, console.progress():
        difference = kb.diff(before, after)
    for sign, rules in (("+", difference.rules_added), ("-", difference.rules_removed)):
        for rule in rules:
            console.text(f"{sign} {format_rule(rule)}")
    inserted, deleted = difference.counts(format_predicate)
    names = sorted({*inserted, *deleted})
    if names:
        rows = [(name, f"+{inserted.get(name, 0):,}", f"-{deleted.get(name, 0):,}") for name in names]
        console.table(("predicate", "inserted", "deleted"), rows)
    else:
        console.text("no fact was inserted or deleted")
    show_facts_of(console, "+", listed(difference.inserted), show_facts)
    show_facts_of(console, "-", listed(difference.deleted), show_facts)
    if console.as_json:
        console.json(difference.to_dict(show_facts))
