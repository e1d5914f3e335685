"""`zodiac why-changed`: since when a fact is there or not, and through which changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.explain.questions import form_options, show_answer
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import EngineOptions, engine_options, store_argument
from zodiacedge.explain.budget import Budget
from zodiacedge.explain.explainer import MOST_VERSIONS

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.explain.questions import Form


@click.command("why-changed")
@store_argument
@click.argument("fact", metavar="FACT")
@click.option(
    "--versions",
    type=click.IntRange(min=1),
    default=MOST_VERSIONS,
    show_default=True,
    metavar="N",
    help="How many versions to look back.",
)
@engine_options
@common
@form_options
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    fact: str,
    versions: int,
    form: Form,
    seconds: float,
    on: EngineOptions,
) -> None:
    r"""Say since when a fact of a store is there or not: the versions that inserted or deleted it, and why.

    Each such version is shown with its author, time and message, the rules and facts of the change that
    concern the fact, and the proof that it made or broke.

    \b
    Example:
      zodiac why-changed farm.zodiac 'alarm(wt1)'
      zodiac why-changed farm.zodiac 'alarm(wt1)' --versions 10 --out alarm.html
    """
    with reading(console, store, None, on) as kb, console.progress("explaining"):
        answer = kb.why_changed(fact, versions=versions, budget=Budget(seconds=seconds))
    show_answer(console, answer, form)
