"""Files that are written whole and on disk, or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zodiacedge.store.location.parallel import in_threads

if TYPE_CHECKING:
    from pathlib import Path

# So many files are worth another thread that waits for the disk, which serves several at a time.
_FEW = 4


class AtomicFiles:
    """Files that are written whole and on disk, or not at all, with one wait for all of them."""

    def __init__(self, root: Path) -> None:
        """Name the folder of the store."""
        self._root = root
        self._beside: dict[Path, Path] = {}
        self._made: set[Path] = set()

    def add(self, name: str, data: bytes) -> None:
        """Write a file under a temporary name, not yet on disk; its folders are made."""
        path = self._root / name
        self._make(path.parent)
        beside = path.with_name(f".{path.name}.{os.getpid()}.new")
        self._beside[path] = beside
        try:
            beside.write_bytes(data)
        except BaseException:
            self.discard()
            raise

    def sync(self) -> None:
        """Give all files their names, once they are on disk."""
        folders = {folder for path in self._beside for folder in path.parents if self._within(folder)}
        try:
            in_threads(sync_file, self._beside.values(), len(self._beside) // _FEW)
            for path, beside in self._beside.items():
                beside.replace(path)
        except BaseException:
            self.discard()
            raise
        self._beside = {}
        in_threads(sync_folder, folders, len(folders) // _FEW)

    def discard(self) -> None:
        """Remove the files that have not got their names yet."""
        for beside in self._beside.values():
            beside.unlink(missing_ok=True)
        self._beside = {}

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it, each once."""
        if folder in self._made:
            return
        if self._within(folder.parent):
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
        self._made.add(folder)

    def _within(self, folder: Path) -> bool:
        return folder == self._root or self._root in folder.parents


def sync_file(path: Path, how: int = os.O_RDWR) -> None:
    """Make sure that a file is on disk."""
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
