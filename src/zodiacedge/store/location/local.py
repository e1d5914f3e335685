"""The location of a store in a folder: one writer, and files that are synced to disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.store.layout import (
    DELTA_LOG,
    LOCK,
    LOG_FOLDER,
    MARKER,
    RELATION_PREFIX,
    RETENTION,
    STREAMS,
    FileInfo,
)
from zodiacedge.store.location.atomic_files import AtomicFiles, sync_file, sync_folder
from zodiacedge.store.location.lock import WriterLock
from zodiacedge.store.problems import leads_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


_OWN = frozenset({MARKER, LOCK, LOG_FOLDER, DELTA_LOG, STREAMS, RETENTION})


@dataclass(frozen=True, slots=True)
class LocalLocation:
    """The files of a folder."""

    root: Path
    """An absolute path, because tasks have other working folders."""
    name: str = ""
    """The path as the user wrote it, if it differs."""

    @property
    def shared(self) -> bool:
        """False: there is a lock."""
        return False

    @property
    def uri(self) -> str:
        """The folder's path as an address, because Delta interprets characters of plain paths."""
        return self.root.absolute().as_uri()

    @property
    def options(self) -> dict[str, str] | None:
        """None: Delta needs only the path."""
        return None

    def __str__(self) -> str:
        """Return the folder's path as the user wrote it."""
        return self.name or str(self.root)

    def display_name(self, name: str) -> str:
        """Return a file's path."""
        return str(Path(str(self)) / name)

    def read(self, name: str) -> bytes:
        """Return a file."""
        return (self.root / name).read_bytes()

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield files in order, each with a function that reads it."""
        for name in names:
            yield name, (self.root / name).read_bytes

    def exists(self) -> bool:
        """Return whether the folder exists."""
        return self.root.is_dir()

    def has(self, name: str) -> bool:
        """Return whether a file exists and is accessible."""
        return os.path.exists(self.root / name)  # noqa: PTH110 - `Path.exists` raises

    def refuse_links(self) -> None:
        """Raise if a file or folder of the store is a link or a special file: a write would follow it.

        Files in the folder that are not the store's are ignored.
        """
        waiting = [str(self.root)]
        at_root = True
        while waiting:
            try:
                with os.scandir(waiting.pop()) as scanned:
                    entries = [entry for entry in scanned if not at_root or _is_own(entry.name)]
            except (FileNotFoundError, NotADirectoryError):
                # A concurrent vacuum removes files; the caller reports a missing store.
                continue
            at_root = False
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    raise leads_elsewhere(self.display_path(Path(entry.path)))

    def listed(self, folder: str = "", after: str = "") -> list[FileInfo]:
        """List the files of a folder and its subfolders by name, from the name after `after`."""
        files = []
        for path in (self.root / folder).rglob("*"):
            name = path.relative_to(self.root).as_posix()
            if name <= after:
                continue
            try:
                status = path.stat()
            except FileNotFoundError:
                # A concurrent vacuum removes files.
                continue
            if path.is_file():
                files.append(FileInfo(name, status.st_size, status.st_mtime))
        return sorted(files, key=lambda file: file.name)

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically and durably."""
        staging = self.staging()
        staging.add(name, data)
        staging.sync()

    def staging(self) -> AtomicFiles:
        """Return a staging for files that are written together."""
        return AtomicFiles(self.root)

    def remove(self, names: Sequence[str], *, in_order: bool) -> None:
        """Remove files, and the folders that become empty."""
        del in_order  # always in order
        folders: set[Path] = set()
        for name in names:
            path = self.root / name
            path.unlink(missing_ok=True)
            folders.update(folder for folder in path.parents if self.root in folder.parents)
        # Subfolders first.
        for folder in sorted(folders, reverse=True):
            if folder.name != LOG_FOLDER and not any(folder.iterdir()):
                folder.rmdir()

    def sync_delta_log(self) -> None:
        """Sync Delta's log to disk, which Delta does not do."""
        folder = self.root / DELTA_LOG
        sync_file(max(folder.glob("*.json")), os.O_RDONLY)
        sync_folder(folder)

    def lock(self) -> WriterLock:
        """Acquire the lock, or raise and name its holder."""
        return WriterLock(self.root / LOCK, self.display_path)

    def display_path(self, path: Path) -> str:
        """Return the path of a file or folder of the store for messages."""
        return self.display_name(path.relative_to(self.root).as_posix())


def _is_own(name: str) -> bool:
    return name in _OWN or name.startswith(RELATION_PREFIX)
