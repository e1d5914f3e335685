"""Writes the files of commands: pictures, rule files and exports; checks folders before a long evaluation."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from zodiacedge.engine.api import ListsTables
from zodiacedge.errors import Diagnostic, LoadProblem
from zodiacedge.extras import need
from zodiacedge.io import (
    TABLES,
    ExportReport,
    Format,
    csv_line,
    csv_text,
    json_cell,
    plain_cell,
    write_facts,
    write_tables,
)
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.util.json_text import RawJson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase

_ANOTHER_FOLDER = "name another folder with --out"


def json_rows(answers: Answers) -> list[list[str]]:
    """Return rows for JSON: numbers and booleans as such, other terms as cells, with all IRIs in full."""
    return [[RawJson(json_cell(term)) for term in row] for row in answers.rows]


def csv_lines(answers: Answers, *, plain: bool) -> Iterator[str]:
    """Yield answers as lines of CSV, after one with the names of the columns, several lines at a time."""
    prefixes = {**DEFAULT_PREFIXES, **answers.prefixes}
    yield f"{csv_text(answers.columns)}\n"
    if not plain and not isinstance(answers.held, tuple):
        from zodiacedge.io.formats.csv_columns import csv_blocks  # noqa: PLC0415 - loads pyarrow

        for lines in csv_blocks(answers.to_arrow()):
            yield lines.decode()
        return
    for row in answers.held:
        yield f"{csv_text([plain_cell(term, prefixes) for term in row]) if plain else csv_line(row)}\n"


def write_arrow(stream: IO[bytes], answers: Answers) -> None:
    """Write answers as an Arrow file."""
    need("tables", "an Arrow file")
    from zodiacedge.io.formats.arrow import write_columnar, write_table  # noqa: PLC0415 - loads pyarrow

    arity = len(answers.columns)
    if isinstance(answers.held, tuple):
        write_columnar(stream, Format.ARROW, "", arity, answers.held)
    else:
        write_table(stream, Format.ARROW, "", arity, answers.to_arrow())


def write_text(path: Path, text: str, note: str = _ANOTHER_FOLDER) -> None:
    """Write a file and create its folder, or raise an error with the reason."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _problem(path, error.strerror or str(error), note) from error


def write_bytes(path: Path, data: bytes, note: str = _ANOTHER_FOLDER) -> None:
    """Write a file and create its folder, or raise an error with the reason."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise _problem(path, error.strerror or str(error), note) from error


def replace_text(path: Path, text: str, note: str) -> None:
    """Replace the text of an existing file atomically, or raise an error with the reason; its mode stays.

    A link stays a link: the file that it points to is replaced. What is no regular file is written in place.
    """
    if not path.is_file():
        write_text(path, text, note)
        return
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        # A rename needs no right to write the file: opening it does.
        target.open("r+b").close()
        try:
            with temporary.open("w", encoding="utf-8") as file:
                shutil.copymode(target, temporary)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _problem(path, error.strerror or str(error), note) from error


def check_folder(folder: Path) -> None:
    """Raise an error if files could not be written to a folder, existing or not; create nothing."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise _problem(folder, f"{existing} is a file")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise _problem(folder, f"{existing} does not permit it")


def export(kb: KnowledgeBase, out: str, form: str, *, everything: bool) -> ExportReport:
    """Write the visible facts of predicates that have a rule, or of all, one file for each."""
    with kb.reading():
        heads = {rule.head.predicate for rule in kb.rules}
        derived = heads.union(predicate for predicate, count in kb.state.derived_counts().items() if count)
        if form in {table.value for table in TABLES} and isinstance(kb.state, ListsTables):
            tables = kb.state.tables(lambda predicate: everything or predicate in derived)
            if tables is not None:
                return write_tables({**dict.fromkeys(heads, ()), **tables}, out, form=form)
        chosen = (
            fact
            for predicate, facts in kb.state.each()
            if everything or predicate in derived
            for fact in facts
        )
        return write_facts(chosen, out, form=form, predicates=heads, prefixes=kb.prefixes)


def export_document(report: ExportReport | None) -> dict[str, object]:
    """Return the JSON of an export, if any."""
    if report is None:
        return {}
    files = [file.path.name for file in report.files]
    return {"export": {"folder": str(report.folder), "rows": report.rows, "files": files}}


def _problem(path: Path, why: str, note: str = _ANOTHER_FOLDER) -> LoadProblem:
    return LoadProblem(Diagnostic("U005", f"{path} cannot be written: {why}", note))
