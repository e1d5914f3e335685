"""`zodiac fmt`: rule files in canonical layout."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import FILE
from zodiacedge.cli.output import replace_text
from zodiacedge.cli.rule_files import text_files
from zodiacedge.cli.standard_input import STANDARD_INPUT
from zodiacedge.errors import SyntaxProblem, counted
from zodiacedge.language.formatter import format_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sized

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.rule_files import TextFile
    from zodiacedge.errors import Diagnostic


@click.command("fmt")
@click.argument("rules", nargs=-1, required=True, type=FILE, metavar="RULES...")
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; list files that would change, and fail if any would.",
)
@click.option("--diff", is_flag=True, help="Write nothing; print the differences.")
@common
def command(console: Console, *, rules: tuple[str, ...], check: bool, diff: bool) -> None:
    r"""Format rule files: canonical spacing, one statement per line, long bodies wrapped.

    RULES are files, folders or globs; - formats standard input to standard output. Comments, labels,
    prefixes and single empty lines stay, and so does the meaning. Files with a syntax error are reported,
    and then no file is written. A file is replaced as a whole: an interruption leaves it as it was.

    \b
    Example:
      zodiac fmt farm.rules
      zodiac fmt rules/ --check
      zodiac fmt farm.rules --diff
    """
    if STANDARD_INPUT in rules and len(rules) > 1:
        raise click.UsageError("- formats standard input to standard output: give it alone.")
    files = text_files(rules)
    formatted = _formatted(files)
    changed = [(file, text) for file, text in zip(files, formatted, strict=True) if text != file.text]
    names = [file.name for file, _ in changed]
    if diff:
        for file, text in changed:
            click.echo(_difference(file, text), nl=False, err=console.as_json)
    elif check:
        for name in names:
            console.text(f"would change {name}")
        console.text(_counted(files, names, "would change"))
    elif rules == (STANDARD_INPUT,):
        click.echo(formatted[0], nl=False, err=console.as_json)
    else:
        for file, text in changed:
            replace_text(Path(file.name), text, "check its rights")
            console.text(f"formatted {file.name}")
        console.text(_counted(files, names, "changed"))
    if console.as_json:
        console.json({"files": len(files), "changed": names})
    if check and changed:
        sys.exit(1)


def _formatted(files: Iterable[TextFile]) -> list[str]:
    """Return the formatted texts, or raise with the syntax errors of all files."""
    texts: list[str] = []
    errors: list[Diagnostic] = []
    for file in files:
        try:
            texts.append(format_text(file.text, file.name))
        except SyntaxProblem as problem:
            errors += problem.diagnostics
    if errors:
        raise SyntaxProblem(errors)
    return texts


def _difference(file: TextFile, text: str) -> str:
    before, after = file.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, file.name, f"{file.name} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _counted(files: Sized, changed: Sized, word: str) -> str:
    return f"{counted(len(files), 'file')}, {len(changed):,} {word}"
