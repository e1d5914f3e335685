"""The folder of an export: a file per predicate and a `predicates.json` that says which is which.

Files are written to a hidden folder inside the target and moved into place when all of them are complete:
a failed export leaves no half file. An export over an earlier one replaces it: files that the old
`predicates.json` lists and the new one does not are removed. What stands in the files is left to those
who write them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.errors import LoadProblem
from zodiacedge.io.problems import writing
from zodiacedge.io.sources import MANIFEST, listed_files

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from zodiacedge.language.ast import Predicate


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file of an export."""

    predicate: Predicate
    path: Path
    rows: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote, in the order of the predicates."""

    folder: Path
    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """How many facts were written."""
        return sum(f.rows for f in self.files)


class StagedExport:
    """An export in the making: where to write its files, and which of them are complete."""

    def __init__(self, folder: Path, stage: Path) -> None:
        """Begin with no files; use `staged_export` instead."""
        self.folder = folder
        self._stage = stage
        self._files: list[WrittenFile] = []

    def place(self, name: str) -> Path:
        """Return where to write the file that is to have this name in the folder."""
        return self._stage / name

    def add(self, predicate: Predicate, name: str, rows: int) -> None:
        """Say that a predicate's file is complete."""
        self._files.append(WrittenFile(predicate, self.folder / name, rows))

    @property
    def report(self) -> ExportReport:
        """What was written so far."""
        return ExportReport(self.folder, tuple(sorted(self._files, key=lambda file: file.predicate)))

    def publish(self) -> None:
        """Move all files into place, with the list of them."""
        files = self.report.files
        self.place(MANIFEST).write_text(_manifest(files), encoding="utf-8")
        try:
            earlier = set(listed_files(self.folder))
        except LoadProblem:
            earlier = set()
        names = [*(file.path.name for file in files), MANIFEST]
        for name in names:
            self.place(name).replace(self.folder / name)
        for name in earlier.difference(names):
            # A list from elsewhere must not make us remove files outside the folder.
            if Path(name).name == name:
                (self.folder / name).unlink(missing_ok=True)


@contextmanager
def staged_export(folder: str | os.PathLike[str]) -> Iterator[StagedExport]:
    """Begin an export to a folder, made where it does not exist; its files appear when the block ends."""
    target = Path(folder)
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".export-", dir=target))
    try:
        export = StagedExport(target, stage)
        yield export
        with writing(target / MANIFEST):
            export.publish()
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _manifest(files: tuple[WrittenFile, ...]) -> str:
    entries = [
        {
            "predicate": file.predicate.name,
            "arity": file.predicate.arity,
            "file": file.path.name,
            "rows": file.rows,
        }
        for file in files
    ]
    return json.dumps({"predicates": entries}, indent=2, ensure_ascii=False) + "\n"
