"""`zodiac why-not`: why a fact is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.explain.questions import form_options, naming_commands, show_answer
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, at_option, engine_options, store_argument
from zodiacedge.explain.budget import Budget

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.explain.questions import Form


@click.command("why-not")
@store_argument
@click.argument("fact", metavar="FACT")
@at_option
@engine_options
@common
@form_options
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    fact: str,
    at: int | None,
    form: Form,
    seconds: float,
    on: EngineOptions,
) -> None:
    r"""Say why a fact of a store is not there: for each rule, what of its body holds and what fails.

    FACT may be a pattern that no fact matches. For each rule that could derive it, the values that come
    closest are shown, with the conditions that hold (✓) and those that fail (✗).

    \b
    Example:
      zodiac why-not farm.zodiac 'alarm(wt2)'
      zodiac why-not farm.zodiac 'alarm(wt2)' --at 3
    """
    with (
        reading(console, store, at, on) as kb,
        console.progress("explaining"),
        naming_commands("zodiac explain", "zodiac why-not"),
    ):
        answer = kb.why_not(fact, budget=Budget(seconds=seconds))
    show_answer(console, answer, form)
