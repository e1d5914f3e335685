"""The group of commands: lookup, plugins, exit codes, and messages for errors.

Exit codes: 0 success, 1 an error of the user's program or data, 2 usage, 3 a store that another process
writes to, 130 interrupted. A traceback is shown only with `--debug`.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from zodiacedge.cli import BUSY, INTERRUPTED
from zodiacedge.cli.console import Console
from zodiacedge.errors import StoreBusy, ZodiacError
from zodiacedge.extras import need

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.metadata import EntryPoint

    from zodiacedge.errors import Diagnostic

_COMMANDS = {
    "agent": ("cli.fleet", "run a store on a device: take readings, and packs from a hub"),
    "apply": ("cli.store", "change rules and facts of a store as one transaction"),
    "check": ("cli.program", "parse and check rule files; report all errors at once"),
    "completion": ("cli.installation", "print the script that completes commands and file names in a shell"),
    "demo": ("demo", "play the wind-farm scenario of the paper step by step"),
    "diff": ("cli.store", "show the differences between two versions of a store"),
    "enrol": ("cli.fleet", "print a code that enrols a device at a hub"),
    "explain": ("cli.explain", "say why a fact is there: by which rules, from which facts"),
    "export": ("cli.store", "write the facts of a store to files, or a slice of it as a new store"),
    "fmt": ("cli.program", "format rule files"),
    "graph": ("cli.program", "draw the hyper rule dependency graph"),
    "hub": ("cli.fleet", "serve packs to devices, and decide by rules who runs which"),
    "init": ("cli.store", "create a durable store"),
    "keys": ("cli.fleet", "make and replace the keys of a fleet, with a repository of packs"),
    "log": ("cli.store", "list the versions of a store: who changed what"),
    "pack": ("cli.packs", "make packs of rules; install, upgrade and remove them in a store"),
    "plan": ("cli.program", "show the join order of each rule, as a whole and for each change"),
    "publish": ("cli.fleet", "publish a pack in a repository, signed"),
    "query": ("cli.store", "query a store, its last version or an earlier one"),
    "retain": ("cli.store", "say how long a store keeps its versions, or set it"),
    "rollback": ("cli.store", "create a new version of a store that equals an earlier one"),
    "rules": ("cli.store", "list the rules in force in a store"),
    "run": ("cli.program", "load, materialise, answer queries, export"),
    "shell": ("cli.shell", "query and change a store, or rules in memory, at a prompt"),
    "stats": ("cli.store", "show the rows and bytes of a store"),
    "stream": ("cli.store", "follow a folder: each batch of files is one change of a store"),
    "tick": ("cli.store", "move the clock of a store: windows open and close"),
    "vacuum": ("cli.store", "flush the log of a store, and remove files that no version needs"),
    "verify": ("cli.store", "compare a store with an evaluation from scratch"),
    "warm": ("cli.installation", "compile the kernels for the processor of this machine"),
    "watch": ("cli.store", "print facts of a predicate as other processes insert and delete them"),
    "why-changed": ("cli.explain", "say since when a fact is there or not, and through which changes"),
    "why-not": ("cli.explain", "say why a fact is not there: what fails, rule by rule"),
}
# The folders of commands that import what stores need.
_ON_STORES = ("cli.store", "cli.explain", "cli.packs", "demo")
# The group of entry points of plugins: commands of other distributions, such as the benchmarks.
_PLUGINS = "zodiacedge.commands"
_NOT_INSTALLED = dict.fromkeys(
    ("bench", "generate"), "The benchmarks come with the sources: `make setup`, or `pip install ./bench`."
)
_Command = TypeVar("_Command", bound="Callable[..., None]")


class _Commands(click.Group):
    # A command is imported when it is called: `zodiac check` does not load what `zodiac run` needs.

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted({*_COMMANDS, *_plugins()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name in _COMMANDS:
            folder, _ = _COMMANDS[cmd_name]
            if folder in _ON_STORES:
                _need_store(cmd_name)
            module = "command" if folder == "demo" else cmd_name.replace("-", "_")
            command: click.Command = import_module(f"zodiacedge.{folder}.{module}").command
            return command
        plugin = _plugins().get(cmd_name)
        return _load(plugin) if plugin else None

    def invoke(self, ctx: click.Context) -> object:
        # The name of the command is kept apart from what follows it.
        words = list(ctx.args)
        try:
            return super().invoke(ctx)
        except click.UsageError as problem:
            from zodiacedge.cli.usage import cure  # noqa: PLC0415 - only for a wrong command line

            meant = cure(problem, words)
            if not meant:
                raise
            # Without what click takes an unknown option for.
            said = problem.message if isinstance(problem, click.NoSuchOption) else problem.format_message()
            raise click.UsageError(f"{said.rstrip('.')}. {meant}", problem.ctx) from problem

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        described = {name: text for name, (_, text) in _COMMANDS.items()}
        described |= {name: _plugin_help(plugin) for name, plugin in _plugins().items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(described.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Without this, every command would be imported for its help.
        names = {name: text for name, (_, text) in _COMMANDS.items()} | dict.fromkeys(_plugins())
        return [
            *(CompletionItem(n, help=text) for n, text in sorted(names.items()) if n.startswith(incomplete)),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from zodiacedge.cli.usage import for_a_file  # noqa: PLC0415 - only for a wrong name
        from zodiacedge.errors import nearest  # noqa: PLC0415 - only for a wrong name

        if args and not args[0].startswith("-") and args[0] not in _COMMANDS and args[0] not in _plugins():
            names = self.list_commands(ctx)
            near = nearest(args[0], tuple(names))
            hint = f"Did you mean {near}?" if near else f"Commands: {', '.join(names)}."
            hint = for_a_file(args[0]) or hint
            ctx.fail(f"There is no command {args[0]!r}. {_NOT_INSTALLED.get(args[0], hint)}")
        return super().resolve_command(ctx, args)


def _plugins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to load, and seldom needed

    return {plugin.name: plugin for plugin in entry_points(group=_PLUGINS) if plugin.name not in _COMMANDS}


def _need_store(command: str) -> None:
    """Fail with a message unless the libraries of stores are installed, which a command imports."""
    try:
        need("store", f"zodiac {command}")
    except ZodiacError as problem:
        Console(as_json=False).fail(problem.diagnostics)
        raise click.exceptions.Exit(1) from problem


def _load(plugin: EntryPoint) -> click.Command:
    """Import the command of a plugin; raise one message if that fails, whatever the reason."""
    try:
        command = plugin.load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{plugin.value} is not a command")  # noqa: TRY301 - one message for all reasons
    except Exception as problem:
        reason = f"{type(problem).__name__}: {problem}"
        raise click.ClickException(f"The plugin {plugin.name!r} cannot be loaded: {reason}") from problem
    return command


def _plugin_help(plugin: EntryPoint) -> str:
    try:
        return _load(plugin).get_short_help_str(80)
    except click.ClickException as problem:
        return problem.message


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="zodiacedge", prog_name="zodiac")
def zodiac() -> None:
    """ZodiacEdge: a Datalog engine whose rules are live.

    \b
    Example:
      zodiac check farm.rules
      zodiac run farm.rules --facts readings.csv --query '?- alarm(T) .'
    """  # noqa: D301 - \b is click's mark for text that it must not wrap


def common(function: _Command) -> _Command:
    """Add `--json`, `--debug` and `--log-level`, and turn errors into messages and exit codes."""

    @click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
    @click.option("--debug", is_flag=True, help="Show a traceback for errors.")
    @click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning")),
        help="Log to standard error: changes, flushes, Spark jobs.  [default: nothing]",
    )
    @functools.wraps(function)
    def call(*args: object, as_json: bool, debug: bool, log_level: str | None, **options: object) -> None:
        console = Console(as_json=as_json)
        try:
            with console.log_records(log_level):
                function(console, *args, **options)
        except ZodiacError as problem:
            if debug:
                raise
            console.fail(_in_order(problem.diagnostics))
            sys.exit(BUSY if isinstance(problem, StoreBusy) else 1)
        except KeyboardInterrupt:
            console.note("interrupted")
            sys.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            raise
        except MemoryError:
            if debug:
                raise
            console.note("there is not enough memory for this")
            sys.exit(1)
        except Exception as problem:
            if debug:
                raise
            console.note(f"internal error: {type(problem).__name__}: {problem}")
            console.note("run the command again with --debug and report what it prints")
            sys.exit(1)

    # A raw docstring cannot contain click's mark for text that it must not wrap.
    call.__doc__ = (function.__doc__ or "").replace(r"\b", "\b")
    return call  # type: ignore[return-value]


def _in_order(diagnostics: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """Say so if what is no store stands where the store belongs, which is another argument."""
    if {d.code for d in diagnostics}.isdisjoint({"D001", "D002"}):
        return diagnostics
    from zodiacedge.cli.usage import store_first  # noqa: PLC0415 - only for what is no store

    ctx = click.get_current_context()
    arguments = [ctx.params[p.name] for p in ctx.command.params if isinstance(p, click.Argument) and p.name]
    meant = store_first(ctx.info_name or "", [word for word in arguments if isinstance(word, str)])
    return [replace(d, note=f"did you mean: {meant}") for d in diagnostics] if meant else diagnostics


def main() -> None:
    """Run the command line."""
    try:
        code = zodiac.main(prog_name="zodiac", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except click.Abort:
        click.echo("zodiac: interrupted", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe: discard what is left in the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)
