"""Writes files atomically and durably: under temporary names, synced, then renamed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zodiacedge.store.location.parallel import in_threads

if TYPE_CHECKING:
    from pathlib import Path

# The number of files that justifies another thread for syncing.
_FEW = 4


class AtomicFiles:
    """Files of a folder that are written atomically, with one sync for all of them."""

    def __init__(self, root: Path) -> None:
        """Set the folder of the store."""
        self._root = root
        self._temporary: dict[Path, Path] = {}
        self._created: set[Path] = set()

    def add(self, name: str, data: bytes) -> None:
        """Write a file under a temporary name, and create its folders."""
        path = self._root / name
        if path.parent not in self._created:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._created.add(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
        self._temporary[path] = temporary
        try:
            temporary.write_bytes(data)
        except BaseException:
            self.discard()
            raise

    def sync(self) -> None:
        """Sync all files to disk, and give them their names."""
        folders = {
            folder for path in self._temporary for folder in path.parents if folder.is_relative_to(self._root)
        }
        try:
            in_threads(sync_file, self._temporary.values(), len(self._temporary) // _FEW)
            for path, temporary in self._temporary.items():
                temporary.replace(path)
        except BaseException:
            self.discard()
            raise
        self._temporary = {}
        in_threads(sync_folder, folders, len(folders) // _FEW)

    def discard(self) -> None:
        """Remove the files that still have temporary names."""
        for temporary in self._temporary.values():
            temporary.unlink(missing_ok=True)
        self._temporary = {}


def sync_file(path: Path, flags: int = os.O_RDWR) -> None:
    """Sync a file to disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
    sync_file(folder, os.O_RDONLY)
