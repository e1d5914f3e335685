"""The folder of an export: a file per predicate, and a `predicates.json` that lists them.

Files are written to a hidden folder inside the target and moved when all of them are complete: a failed
export leaves no partial file. An export over an earlier one replaces it: files that only the old
`predicates.json` lists are removed. The content of the files is left to the callers.
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
    """A file of an export."""

    predicate: Predicate
    path: Path
    rows: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The files of an export, in the order of the predicates."""

    folder: Path
    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """The number of facts written."""
        return sum(f.rows for f in self.files)


class StagedExport:
    """An export in progress: its staging folder, and the files that are complete."""

    def __init__(self, folder: Path, stage: Path) -> None:
        """Start without files; use `staged_export` instead."""
        self.folder = folder
        self._stage = stage
        self._files: list[WrittenFile] = []

    def staged_path(self, name: str) -> Path:
        """Return the staging path of a file name."""
        return self._stage / name

    def add(self, predicate: Predicate, name: str, rows: int) -> None:
        """Record that a predicate's file is complete."""
        self._files.append(WrittenFile(predicate, self.folder / name, rows))

    @property
    def report(self) -> ExportReport:
        """The report on the files that are complete."""
        return ExportReport(self.folder, tuple(sorted(self._files, key=lambda file: file.predicate)))

    def publish(self) -> None:
        """Write `predicates.json` and move all files to the target folder."""
        files = self.report.files
        self.staged_path(MANIFEST).write_text(_manifest(files), encoding="utf-8")
        try:
            earlier = set(listed_files(self.folder))
        except LoadProblem:
            earlier = set()
        names = [*(file.path.name for file in files), MANIFEST]
        for name in names:
            self.staged_path(name).replace(self.folder / name)
        for name in earlier.difference(names):
            # A foreign predicates.json must not delete files outside the folder.
            if Path(name).name == name:
                (self.folder / name).unlink(missing_ok=True)


@contextmanager
def staged_export(folder: str | os.PathLike[str]) -> Iterator[StagedExport]:
    """Start an export to a folder, created if missing; its files appear when the block ends."""
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
