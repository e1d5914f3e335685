"""`zodiac shell`: a prompt for queries and changes, on a store or on rules in memory."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading, writing
from zodiacedge.cli.options import (
    FILE,
    DataOptions,
    EngineOptions,
    data_options,
    engine_options,
    ignore_option,
    limit_options,
    wait_option,
)
from zodiacedge.cli.program_source import evaluated
from zodiacedge.cli.rule_files import is_store, sound_rules
from zodiacedge.cli.shell.interpreter import Interpreter
from zodiacedge.cli.shell.statements import Statements
from zodiacedge.cli.shell.terminal import editing, line_of_pipe, line_of_terminal
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.shell.statements import Lines
    from zodiacedge.engine.limits import Limits
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase


@click.command("shell")
@click.argument("programs", nargs=-1, type=FILE, metavar="[RULES...|STORE]")
@data_options
@click.option("--read-only", is_flag=True, help="Open a store for reading: other processes may write.")
@wait_option
@limit_options
@engine_options
@common
@ignore_option
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    programs: tuple[str, ...],
    data: DataOptions,
    read_only: bool,
    wait: float,
    limits: Limits,
    on: EngineOptions,
) -> None:
    r"""Query and change a store, or rules and facts in memory, statement by statement.

    A query prints a table. `+ fact .`, `+ rule .`, `- fact .` and `- label` are committed at once, or
    together between `begin` and `commit`. `.help` lists all statements, Tab completes names, Ctrl-C cancels
    a line or a running statement, Ctrl-D ends. Statements may also come from a pipe: the exit code is then
    1 if one of them failed.

    \b
    Example:
      zodiac shell farm.zodiac
      zodiac shell farm.rules --facts readings.csv
      echo 'alarm(T)' | zodiac shell farm.zodiac --read-only
    """
    if console.as_json:
        raise click.UsageError("The shell has no --json: use zodiac query or zodiac apply.")
    interactive = sys.stdin.isatty()
    read = line_of_terminal if interactive else line_of_pipe
    if read_only and wait:
        raise click.UsageError("--wait is for a writer, and --read-only needs no waiting: leave out one.")
    stored = _opened(console, programs, data, on, read_only=read_only, wait=wait, limits=limits)
    with stored or _in_memory(console, programs, data, on, limits) as kb:
        interpreter = Interpreter(console, kb, stored)
        with editing(kb) if interactive else nullcontext():
            converse(console, interpreter, read, interactive=interactive)
        interpreter.close()
    if interpreter.failed and not interactive:
        sys.exit(1)


def converse(console: Console, interpreter: Interpreter, read: Lines, *, interactive: bool) -> None:
    """Execute statements up to the end of the input; at a prompt Ctrl-C ends a statement only."""
    interrupted = False
    statements = Statements(read)
    while not interpreter.ended:
        try:
            if interrupted:
                interrupted = False
                click.echo(err=True)
                console.note("interrupted")
            statement = statements.next()
            if statement is None:
                break
            interpreter.execute(statement)
        except KeyboardInterrupt:
            if not interactive:
                raise
            # Reported inside the block above, so that a second Ctrl-C does not end the shell.
            interrupted = True


def _opened(  # noqa: PLR0913 - each is an option
    console: Console,
    programs: tuple[str, ...],
    data: DataOptions,
    on: EngineOptions,
    *,
    read_only: bool,
    wait: float,
    limits: Limits,
) -> StoredKnowledgeBase | None:
    """Open the store that is named, if one is."""
    stores = [path for path in programs if is_store(path)]
    if stores:
        if len(programs) > 1:
            raise click.UsageError(f"{stores[0]} is a store: name it alone, or rule files only.")
        if data.files:
            raise click.UsageError(f"{stores[0]} is a store and has its own facts: leave out --facts.")
        if read_only:
            return reading(console, stores[0], on=on)
        return writing(console, stores[0], on, strict=data.strict, wait=wait, limits=limits)
    if read_only or wait:
        option = "--read-only" if read_only else "--wait"
        raise click.UsageError(f"{option} is for a store, and this is a program in memory.")
    return None


def _in_memory(
    console: Console, programs: tuple[str, ...], data: DataOptions, on: EngineOptions, limits: Limits
) -> KnowledgeBase:
    checked = sound_rules(programs)
    console.prefixes = {**DEFAULT_PREFIXES, **dict(checked.program.prefixes)}
    return evaluated(console, checked, data, on, limits)
