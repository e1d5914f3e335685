"""Files that commands write: pictures, and folders that must be writable before long work starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, LoadProblem

if TYPE_CHECKING:
    from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file, its folder included, or raise a problem that says why not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _problem(path, error.strerror or str(error)) from error


def check_folder(folder: Path) -> None:
    """Raise a problem if files could not be written to a folder, there or not; make nothing."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise _problem(folder, f"{there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise _problem(folder, f"{there} does not permit it")


def _problem(path: Path, why: str) -> LoadProblem:
    return LoadProblem(
        Diagnostic("U005", f"{path} cannot be written: {why}", "name another place with --out")
    )
