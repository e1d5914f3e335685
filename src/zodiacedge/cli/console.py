"""The output of a command: results on standard output, diagnostics and progress on standard error.

Colours and progress bars are for terminals only. With `--json`, standard output gets one JSON document
and nothing else.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.progress_bar import ProgressBar, evaluating_state, loading_state
from zodiacedge.language.printer import abbreviate, abbreviated
from zodiacedge.util.json_text import json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Progress
    from zodiacedge.errors import Diagnostic
    from zodiacedge.io import LoadProgress

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_COLOURS = {"error": "red", "warning": "yellow", "hint": "cyan"}


class Console:
    """The output streams of a command."""

    def __init__(self, *, as_json: bool) -> None:
        """Set whether standard output is JSON."""
        self.as_json = as_json
        self.beside: Mapping[str, object] = {}
        """The JSON of the results so far, for a command that fails."""
        self.prefixes: Mapping[str, str] = {}
        """The prefixes of the program or store: lines for people abbreviate IRIs in angle brackets."""
        self.ignored: frozenset[str] = frozenset()
        """The codes of warnings to leave out."""
        self._bar: ProgressBar | None = None

    def heard(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Return diagnostics without the warnings to leave out."""
        return [d for d in diagnostics if d.severity == "error" or d.code not in self.ignored]

    def json(self, document: object) -> None:
        """Write the one JSON document, with all IRIs in full."""
        click.echo(json_text(document))

    def json_line(self, document: object) -> None:
        """Write a JSON document on a line of its own, for a command that writes one after the other."""
        click.echo(json.dumps(document, ensure_ascii=False))

    def text(self, text: str = "") -> None:
        """Write a line of the result, unless standard output is JSON."""
        if not self.as_json:
            click.echo(abbreviate(text, self.prefixes))

    def coloured(self, text: str) -> None:
        """Write lines with ANSI colours, which only a terminal gets, unless standard output is JSON."""
        if not self.as_json:
            click.echo(text, color=_colour())

    def note(self, text: str) -> None:
        """Write a line to standard error, above the progress bar if there is one."""
        self._error_line(f"zodiac: {abbreviate(text, self.prefixes)}")

    def _error_line(self, line: str) -> None:
        if self._bar:
            self._bar.write(line)
        else:
            click.echo(line, err=True, color=_colour())

    @contextmanager
    def log_records(self, level: str | None = None) -> Iterator[None]:
        """Write records that the package logs in the block to standard error.

        Args:
            level: The least level of records, which have their time and logger then. If not given, only what
                a user waits for is written, as notes: the compilation of kernels.
        """
        logger = logging.getLogger("zodiacedge" if level else "zodiacedge.kernels")
        handler = logging.StreamHandler() if level else _Notes(self)
        handler.setFormatter(logging.Formatter(_LOG_FORMAT if level else None))
        level_before = logger.level
        logger.addHandler(handler)
        logger.setLevel(level.upper() if level else logging.INFO)
        try:
            yield
        finally:
            logger.setLevel(level_before)
            logger.removeHandler(handler)

    def findings(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Write diagnostics to standard error, above the progress bar, with coloured severities."""
        for diagnostic in self.heard(diagnostics):
            word = f"{diagnostic.severity} {diagnostic.code}:"
            coloured = click.style(word, fg=_COLOURS[diagnostic.severity], bold=True)
            short = abbreviated(diagnostic, self.prefixes)
            self._error_line(short.render().replace(word, coloured, 1))

    def fail(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Report the errors that ended the command."""
        self.findings(diagnostics)
        if self.as_json:
            self.json(diagnostics_document(self.heard(diagnostics)) | dict(self.beside))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table with numeric columns aligned to the right."""
        if self.as_json:
            return
        body = [[abbreviate(cell, self.prefixes) for cell in row] for row in rows]
        widths = [max(map(len, cells)) for cells in zip(columns, *body, strict=True)]
        numeric = [bool(body) and all(_is_number(row[n]) for row in body) for n in range(len(columns))]

        def line(cells: Sequence[str]) -> str:
            parts = [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(cells, widths, numeric, strict=True)
            ]
            return "  ".join(parts).rstrip()

        click.secho(line(list(columns)), bold=True, color=_colour())
        if body:
            click.echo("\n".join(map(line, body)))

    @contextmanager
    def prefixed(self, prefixes: Mapping[str, str]) -> Iterator[None]:
        """Abbreviate IRIs in the block with more prefixes, such as those of a query."""
        before = self.prefixes
        self.prefixes = {**before, **prefixes}
        try:
            yield
        finally:
            self.prefixes = before

    @contextmanager
    def progress(self, title: str = "starting") -> Iterator[None]:
        """Show a progress bar on a terminal; only notes and diagnostics may be written in the block."""
        if not sys.stderr.isatty():
            yield
            return
        self._bar = ProgressBar(title)
        try:
            with self._bar.progress:
                yield
        finally:
            self._bar = None

    def loading(self, progress: LoadProgress) -> None:
        """Show the progress of a load."""
        if self._bar:
            self._bar.show(loading_state(progress))

    def evaluating(self, progress: Progress) -> None:
        """Show the progress of a change, or of a long step outside of changes."""
        if self._bar:
            self._bar.show(evaluating_state(progress, self.prefixes))


class _Notes(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.note(record.getMessage())


def diagnostics_document(diagnostics: Sequence[Diagnostic]) -> dict[str, object]:
    """Return diagnostics in the JSON format of all commands."""
    errors = sum(d.severity == "error" for d in diagnostics)
    return {
        "errors": errors,
        "warnings": len(diagnostics) - errors,
        "diagnostics": [d.to_dict() for d in diagnostics],
    }


def bold(text: str) -> str:
    """Return a text in bold type."""
    return click.style(text, bold=True)


def _colour() -> bool | None:
    # None lets click check the terminal; see https://no-color.org.
    return False if os.environ.get("NO_COLOR") else None


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(",", "").replace(".", "", 1).lstrip("+-").isdigit()
