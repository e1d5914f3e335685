"""Writes the files of commands: pictures, rule files and exports; checks folders before a long evaluation."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from zodiacedge.cli.console import RawJson
from zodiacedge.errors import Diagnostic, LoadProblem
from zodiacedge.io import ExportReport, json_cell, write_facts

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase

_ANOTHER_FOLDER = "name another folder with --out"


def json_rows(answers: Answers) -> list[list[str]]:
    """Return rows for JSON: numbers and booleans as such, other terms as cells, with all IRIs in full."""
    return [[RawJson(json_cell(term)) for term in row] for row in answers.rows]


def write_text(path: Path, text: str, note: str = _ANOTHER_FOLDER) -> None:
    """Write a file and create its folder, or raise an error with the reason."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
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
