"""What a wrong command line may have meant: its words in order, and files with the option that they need."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.rule_files import EXTENSION, is_data, is_store

if TYPE_CHECKING:
    from collections.abc import Sequence

# The options for rule files and for files of facts of commands whose one argument is a store.
_FILE_OPTIONS = {"init": ("--rules", "--facts"), "apply": ("--add-rules", "--add-facts")}
_FOLDER_OPTIONS = {"export": "--out", "stream": "--from"}
_AS_ARGUMENTS = "Rule files are arguments: zodiac {command} FILE."
_OTHER_OPTIONS = {
    ("init", "--add-rules"): "Write --rules.",
    ("init", "--add-facts"): "Write --facts.",
    ("init", "--sync"): "Write --rules.",
    ("apply", "--rules"): "Write --add-rules to add rules, --sync to make the rules those of a file.",
    ("apply", "--facts"): "Write --add-facts.",
    ("run", "--add-facts"): "Write --facts.",
    ("query", "--query"): "A query is an argument: zodiac query STORE 'alarm(T)'.",
    **{(c, "--rules"): _AS_ARGUMENTS for c in ("check", "fmt", "graph", "plan", "run", "shell")},
}


def cure(problem: click.UsageError, words: Sequence[str]) -> str:
    """Return what a refused command line may have meant, or an empty text.

    Args:
        problem: Why it was refused.
        words: What followed the name of the command.
    """
    if not problem.ctx or not problem.ctx.parent or problem.ctx.parent.parent:
        return ""
    command = problem.ctx.info_name or ""
    if isinstance(problem, click.NoSuchOption):
        return _OTHER_OPTIONS.get((command, problem.option_name), "").format(command=command)
    meant = store_first(command, words)
    if not meant:
        _, extra, _ = problem.ctx.command.make_parser(problem.ctx).parse_args(list(words))
        meant = _with_options(command, words, extra) if extra else ""
    return f"Did you mean: {meant}" if meant else ""


def store_first(command: str, words: Sequence[str]) -> str:
    """Return a command line with its store in front, if that is a store and stands elsewhere."""
    if not words or words[0].startswith("-") or is_store(words[0]) or Path(words[0]).is_file():
        return ""
    store = next((word for word in words[1:] if is_store(word)), None)
    if store is None:
        return ""
    return _line(command, store, *(word for word in words if word != store))


def for_a_file(name: str) -> str:
    """Return what a command line may have meant that begins with a file or a store, or an empty text."""
    if is_store(name):
        return f"First say what to do: {_line('query', name)} 'alarm(T)', or {_line('shell', name)}."
    if name.endswith(EXTENSION) and Path(name).exists():
        return f"First say what to do: {_line('run', name)}, or {_line('check', name)}."
    return ""


def _with_options(command: str, words: Sequence[str], extra: Sequence[str]) -> str:
    if command in _FOLDER_OPTIONS and len(extra) == 1:
        given = [word for word in words if word != extra[0]]
        return _line(command, *given, _FOLDER_OPTIONS[command], extra[0])
    if command not in _FILE_OPTIONS:
        return ""
    for_rules, for_facts = _FILE_OPTIONS[command]
    first = next(word for word in words if not word.startswith("-"))
    arguments = (first, *extra)
    if any("(" in word for word in extra):
        statement = " ".join(extra).lstrip("+ ")
        return f"echo {shlex.quote(statement)} | {_line(command, first, for_rules, '-')}"
    stores, files = [], []
    for word in arguments:
        path = Path(word)
        if path.suffix == EXTENSION or (path.is_file() and not is_data(path)):
            files += [for_rules, word]
        elif path.is_file():
            files += [for_facts, word]
        else:
            stores.append(word)
    if len(stores) > 1:
        return ""
    others = [word for word in words if word not in arguments]
    return _line(command, *(stores or ["STORE"]), *files, *others)


def _line(*words: str) -> str:
    return shlex.join(("zodiac", *words))
