"""What a command says: results on standard output, findings and progress on standard error.

Colours and progress bars are for terminals only. With `--json`, standard output gets one JSON document
and nothing else.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from zodiacedge.engine.api import Progress
    from zodiacedge.errors import Diagnostic
    from zodiacedge.io import Progress as LoadProgress

_COLOURS = {"error": "red", "warning": "yellow", "hint": "cyan"}


class Console:
    """Where a command's words go."""

    def __init__(self, *, as_json: bool) -> None:
        """Say whether standard output is for a machine."""
        self.as_json = as_json

    def json(self, document: object) -> None:
        """Write the one JSON document."""
        click.echo(json.dumps(document, indent=1, ensure_ascii=False))

    def text(self, text: str = "") -> None:
        """Write a line of the result, unless a machine is reading."""
        if not self.as_json:
            click.echo(text)

    def note(self, text: str) -> None:
        """Write a line to standard error."""
        click.echo(f"zodiac: {text}", err=True)

    def findings(self, found: Iterable[Diagnostic]) -> None:
        """Write findings to standard error, the word `error` or `warning` in its colour."""
        for one in found:
            word = f"{one.severity} {one.code}:"
            coloured = click.style(word, fg=_COLOURS[one.severity], bold=True)
            click.echo(one.render().replace(word, coloured, 1), err=True)

    def fail(self, found: Sequence[Diagnostic]) -> None:
        """Report what ended the command."""
        self.findings(found)
        if self.as_json:
            self.json({"errors": [one.to_dict() for one in found]})

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table: columns of numbers to the right, others to the left."""
        if self.as_json:
            return
        body = [list(row) for row in rows]
        widths = [max(len(c), *(len(row[n]) for row in body), 0) for n, c in enumerate(columns)]
        numeric = [bool(body) and all(_is_number(row[n]) for row in body) for n in range(len(columns))]

        def line(cells: Sequence[str]) -> str:
            parts = [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(cells, widths, numeric, strict=True)
            ]
            return "  ".join(parts).rstrip()

        click.secho(line(list(columns)), bold=True)
        for row in body:
            click.echo(line(row))

    @contextmanager
    def loading(self) -> Iterator[_Bar]:
        """Show a bar of bytes read while files load, on a terminal."""
        with _bar("loading") as bar:
            yield bar

    @contextmanager
    def evaluating(self) -> Iterator[_Bar]:
        """Show the node and round an engine is at, on a terminal."""
        with _bar("evaluating") as bar:
            yield bar


class _Bar:
    # A progress bar, or nothing where nobody looks.

    def __init__(self, show: Bar | None) -> None:
        self._show = show

    def load(self, progress: LoadProgress) -> None:
        if self._show:
            what = f"{progress.facts:,} facts"
            self._show(progress.bytes_read, progress.bytes_total, what)

    def node(self, progress: Progress) -> None:
        if self._show:
            rules = ", ".join(progress.rules)
            what = f"{rules[:40]}  round {progress.round}  {progress.facts:,} facts"
            self._show(progress.node + 1, progress.nodes, what)


class Bar:
    """A rich progress bar."""

    def __init__(self, title: str) -> None:
        """Draw it."""
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only terminals need it
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[what]}"),
            console=RichConsole(stderr=True),
            transient=True,
        )
        self._task = self.progress.add_task(title, total=None, what="")

    def __call__(self, done: int, total: int, what: str) -> None:
        """Move it."""
        self.progress.update(self._task, completed=done, total=total or 1, what=what)


@contextmanager
def _bar(title: str) -> Iterator[_Bar]:
    if not sys.stderr.isatty():
        yield _Bar(None)
        return
    bar = Bar(title)
    with bar.progress:
        yield _Bar(bar)


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()
