"""`zodiac shell`: a prompt for queries and changes, on a store or on rules in memory."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_store import reading, writing
from zodiacedge.cli.options import FILE, EngineOptions, engine_options
from zodiacedge.cli.program_source import data_options, evaluated
from zodiacedge.cli.rule_files import is_store, read_rules
from zodiacedge.cli.shell.interpreter import Interpreter
from zodiacedge.cli.shell.statements import next_statement
from zodiacedge.cli.shell.terminal import editing, line_of_pipe, line_of_terminal
from zodiacedge.errors import CheckProblem
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.cli.program_source import Data
    from zodiacedge.kb.knowledge_base import KnowledgeBase


@click.command("shell")
@click.argument("programs", nargs=-1, type=FILE, metavar="[RULES...|STORE]")
@data_options
@click.option("--read-only", is_flag=True, help="Open a store for reading: other processes may write.")
@engine_options
@common
def command(
    console: Console, *, programs: tuple[str, ...], data: Data, read_only: bool, on: EngineOptions
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
    with _opened(console, programs, data, on, read_only=read_only) as kb:
        interpreter = Interpreter(console, kb)
        with editing(kb) if interactive else nullcontext():
            while not interpreter.ended:
                try:
                    statement = next_statement(read)
                    if statement is None:
                        break
                    interpreter.execute(statement)
                except KeyboardInterrupt:
                    if not interactive:
                        raise
                    click.echo(err=True)
                    console.note("interrupted")
        interpreter.close()
    if interpreter.failed and not interactive:
        sys.exit(1)


def _opened(
    console: Console, programs: tuple[str, ...], data: Data, on: EngineOptions, *, read_only: bool
) -> KnowledgeBase:
    stores = [path for path in programs if is_store(path)]
    if stores:
        if len(programs) > 1:
            raise click.UsageError(f"{stores[0]} is a store: name it alone, or rule files only.")
        if data.files:
            raise click.UsageError(f"{stores[0]} is a store and has its own facts: leave out --facts.")
        return reading(console, stores[0], on=on) if read_only else writing(console, stores[0], on)
    if read_only:
        raise click.UsageError("--read-only is for a store, and this is a program in memory.")
    checked = read_rules(programs)
    if checked.errors:
        raise CheckProblem(checked.findings)
    console.findings(checked.findings)
    console.prefixes = {**DEFAULT_PREFIXES, **dict(checked.program.prefixes)}
    return evaluated(console, checked, data, on)
