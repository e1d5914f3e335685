"""`zodiac watch`: the facts of a predicate that other processes insert and delete."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading
from zodiacedge.cli.options import Amount, EngineOptions, engine_options, store_argument
from zodiacedge.errors import Diagnostic, nearest
from zodiacedge.graph.draw.names import predicate_name, short_name
from zodiacedge.language.ast import Predicate, body_atoms
from zodiacedge.language.names import is_named, spelled
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.store.versions.diff import listed
from zodiacedge.terms import RDF_TYPE
from zodiacedge.util.freed_memory import hold_little

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.cli.console import Console
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.subscribe import Notice


@click.command("watch")
@store_argument
@click.argument("predicate", metavar="PREDICATE")
@click.option(
    "--interval",
    type=Amount(min=0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look for new versions.",
)
@click.option("--since", type=int, metavar="VERSION", help="Begin after this version, not after the last.")
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="End after N versions with such facts."
)
@click.option("--once", is_flag=True, help="End after the first version with such facts: --count 1.")
@engine_options
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    predicate: str,
    interval: float,
    since: int | None,
    count: int | None,
    once: bool,
    on: EngineOptions,
) -> None:
    r"""Print the facts of a predicate that become visible, and those that are visible no more.

    PREDICATE is written as in a program, with or without its arity; a warning says if the store has none of
    that name yet. Each line has the version, + or -, and a
    fact; with --json, each version is a JSON document on a line. The command writes nothing to the store, and
    ends with Ctrl-C.

    \b
    Example:
      zodiac watch farm.zodiac alarm/1
      zodiac watch farm.zodiac alarm/1 --once --json
    """
    if once and count:
        raise click.UsageError("--once is --count 1: leave out one of them.")
    hold_little()
    remaining = 1 if once else count
    notices: list[Notice] = []
    with reading(console, store, since, on) as kb:
        kb.subscribe(predicate, notices.append)
        kb.refresh()
        console.findings(_unknown(kb, predicate))
        while True:
            for notice in notices[:remaining]:
                _show(console, notice)
            if remaining is not None:
                remaining -= len(notices)
                if remaining <= 0:
                    return
            notices.clear()
            time.sleep(interval)
            kb.refresh()


def _unknown(kb: KnowledgeBase, predicate: str) -> Iterator[Diagnostic]:
    """Warn of a predicate that the store does not have, which may be misspelt or come later."""
    prefixes = {**DEFAULT_PREFIXES, **kb.prefixes}
    name = spelled(predicate, prefixes)
    known = {a.predicate for rule in kb.rules for a in (rule.head, *body_atoms(rule.body))}
    known |= kb.state.predicates()
    if any(is_named(p, name) for p in (*known, Predicate(RDF_TYPE, 2))):
        return
    write = predicate_name if predicate.rpartition("/")[2].isdigit() else short_name
    near = nearest(predicate, sorted({write(p, prefixes) for p in known}))
    hint = f"did you mean {near}?" if near else "no rule and no fact uses it; zodiac stats lists those in use"
    yield Diagnostic("W004", f"unknown predicate {predicate}", hint, severity="warning")


def _show(console: Console, notice: Notice) -> None:
    inserted, deleted = listed(notice.inserted), listed(notice.deleted)
    for sign, facts in (("-", deleted), ("+", inserted)):
        for fact in facts:
            console.text(f"{notice.version} {sign} {fact}")
    if console.as_json:
        console.json_line({"version": notice.version, "inserted": inserted, "deleted": deleted})
