"""Standard input in place of a file: `-` for rules, `relation=-` or `-.nt` for facts, once per command.

Rows of a relation are CSV unless an extension says another format: `reading=-.tsv`. Facts are copied to a
temporary file, because an engine may read a file in several processes; the file is deleted when the process
ends.
"""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from zodiacedge.io.sources import NamedFile, by_extension, names_predicates

if TYPE_CHECKING:
    from collections.abc import Sequence

    Source = str | NamedFile

STANDARD_INPUT = "-"
NAME = "<stdin>"
_FACTS = re.compile(r"(?:(?P<relation>.+)=)?-(?:\.(?P<extension>[A-Za-z0-9.]+))?")
_TAKEN = "zodiacedge.standard_input"


def take_standard_input() -> IO[bytes]:
    """Return standard input, or raise if the command has read it already."""
    context = click.get_current_context(silent=True)
    if context is not None:
        if context.meta.get(_TAKEN):
            raise click.UsageError("Standard input can be read once: give `-` for one file.", context)
        context.meta[_TAKEN] = True
    # A process may be started without standard input.
    if sys.stdin is None:
        raise click.UsageError("There is no standard input to read.", context)
    return sys.stdin.buffer


def facts_from(
    context: click.Context, parameter: click.Parameter, given: Sequence[str]
) -> tuple[Source, ...]:
    """Return the files of an option, with a copy of standard input in place of `relation=-` and `-.nt`."""
    return tuple(_copied(context, parameter, spec) for spec in given)


def _copied(context: click.Context, parameter: click.Parameter, spec: str) -> Source:
    form = _FACTS.fullmatch(spec)
    if form is None:
        return spec
    relation = form["relation"] or ""
    known = by_extension(Path(f"stdin.{form['extension'] or 'csv'}"))
    if known is None or (not relation and not names_predicates(known[0])):
        raise click.BadParameter(
            f"{spec} does not say what standard input holds: write reading=- for rows of CSV, "
            "reading=-.tsv for another format of tables, -.nt for RDF.",
            context,
            parameter,
        )
    source = take_standard_input()
    folder = Path(tempfile.mkdtemp(prefix="zodiacedge-"))
    # The context of a command with a mistake in its options is never closed.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"stdin.{form['extension'] or 'csv'}"
    with path.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    return NamedFile(path, relation, NAME)
