"""`zodiac rules`: the rules in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, at_option, functions_option, store_argument
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("rules")
@store_argument
@at_option
@functions_option
@common
def command(console: Console, *, store: str, at: int | None, functions: tuple[str, ...]) -> None:
    r"""List the rules in force, as text that can be parsed again.

    \b
    Example:
      zodiac rules farm.zodiac > farm.rules
    """
    with reading(console, store, at, EngineOptions(functions=functions)) as kb:
        rules = [format_rule(rule) for rule in kb.rules]
    if rules:
        for prefix, base in kb.prefixes.items():
            console.text(f"@prefix {prefix}: <{base}> .")
    for rule in rules:
        console.text(rule)
    if console.as_json:
        console.json({"version": kb.version, "rules": rules})
