"""`zodiac explain`: why a fact is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.explain.questions import form_options, naming_commands, show_answer
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, at_option, engine_options, store_argument
from zodiacedge.explain.budget import Budget
from zodiacedge.explain.explainer import MOST_FACTS

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.explain.questions import Form


@click.command("explain")
@store_argument
@click.argument("fact", metavar="FACT")
@at_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=MOST_FACTS,
    show_default=True,
    metavar="N",
    help="At most N facts of a pattern.",
)
@engine_options
@common
@form_options
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    fact: str,
    at: int | None,
    limit: int,
    form: Form,
    seconds: float,
    on: EngineOptions,
) -> None:
    r"""Say why a fact of a store is there: by which rule, from which facts, and why those are there.

    FACT may be a pattern: its facts are explained together. The proof is one of least height; a part that
    several steps need is shown once, and named by its number elsewhere. A page in HTML folds at a click.

    \b
    Example:
      zodiac explain farm.zodiac 'alarm(wt1)'
      zodiac explain farm.zodiac 'alarm(T)' --limit 3 --depth 2
      zodiac explain farm.zodiac 'alarm(wt1)' --out alarm.html
      zodiac explain farm.zodiac 'alarm(wt1)' --format markdown | xclip
    """
    with (
        reading(console, store, at, on) as kb,
        console.progress("explaining"),
        naming_commands("zodiac explain", "zodiac why-not"),
    ):
        answer = kb.explain(fact, limit=limit, budget=Budget(seconds=seconds))
    show_answer(console, answer, form)
