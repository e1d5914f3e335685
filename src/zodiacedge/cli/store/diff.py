"""`zodiac diff`: the differences between two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, engine_options, show_facts_option, store_argument
from zodiacedge.cli.show import show_facts_of, show_net_change
from zodiacedge.language.printer import format_predicate
from zodiacedge.packs.owners import moves_for_people
from zodiacedge.store.versions.diff import listed

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("diff")
@store_argument
@click.argument("before", type=int, metavar="[V1", required=False)
@click.argument("after", type=int, metavar="[V2]]", required=False)
@show_facts_option(20)
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    before: int | None,
    after: int | None,
    show_facts: int,
    on: EngineOptions,
) -> None:
    r"""Show the rules and visible facts that only one of two versions has.

    Without V1 and V2, the last version is compared with the one before; without V2, V1 with the last.

    \b
    Example:
      zodiac diff farm.zodiac
      zodiac diff farm.zodiac 3 5
    """
    with reading(console, store, on=on) as kb, console.progress("comparing versions"):
        before = max(kb.version - 1, 0) if before is None else before
        difference = kb.diff(before, kb.version if after is None else after)
    for name, old, new in difference.prefixes:
        for sign, base in (("-", old), ("+", new)):
            if base is not None:
                console.text(f"{sign} @prefix {name}: <{base}> .")
    for line in moves_for_people(difference.packs):
        console.text(line)
    rules = difference.rules_added, difference.rules_removed
    show_net_change(console, rules, difference.counts(format_predicate))
    show_facts_of(console, "+", listed(difference.inserted), show_facts)
    show_facts_of(console, "-", listed(difference.deleted), show_facts)
    if console.as_json:
        console.json(difference.to_dict(show_facts))
