"""A store in a folder of this machine: one writer, and files that are synced to disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.store.layout import DELTA_LOG, LOCK, LOG_FOLDER, MARKER, RELATION_PREFIX, STREAMS
from zodiacedge.store.location.atomic_files import AtomicFiles, sync_file, sync_folder
from zodiacedge.store.location.base import FileInfo
from zodiacedge.store.location.lock import WriterLock
from zodiacedge.store.problems import leads_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


_OWN = frozenset({MARKER, LOCK, LOG_FOLDER, DELTA_LOG, STREAMS})


@dataclass(frozen=True, slots=True)
class LocalLocation:
    """The files of a folder."""

    root: Path
    """An absolute path: this process may change its folder, and a task works in one of its own."""
    name: str = ""
    """The path as the user wrote it, if it differs."""

    @property
    def shared(self) -> bool:
        """False: there is a lock."""
        return False

    @property
    def uri(self) -> str:
        """The folder's path as an address: a name may have characters that Delta would interpret."""
        return self.root.absolute().as_uri()

    @property
    def options(self) -> Mapping[str, str] | None:
        """None: the path is enough."""
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
        """Yield files in order, each with a call that reads it."""
        for name in names:
            yield name, (self.root / name).read_bytes

    def exists(self) -> bool:
        """Whether the folder exists."""
        return self.root.is_dir()

    def has(self, name: str) -> bool:
        """Whether a file exists, as far as this process may see."""
        return os.path.exists(self.root / name)  # noqa: PTH110 - that of a path raises

    def refuse_links(self) -> None:
        """Raise if a file or folder of the store is a link, or neither: writing would go elsewhere.

        Other files in the folder are no concern of the store.
        """
        waiting = [str(self.root)]
        own = True
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    found = [one for one in entries if not own or _is_own(one.name)]
            except (FileNotFoundError, NotADirectoryError):
                # A vacuum removes files meanwhile, or there is no store, which the caller reports.
                continue
            own = False
            for one in found:
                if one.is_dir(follow_symlinks=False):
                    waiting.append(one.path)
                elif not one.is_file(follow_symlinks=False):
                    raise leads_elsewhere(self.display_path(Path(one.path)))

    def listed(self, folder: str = "", after: str = "") -> list[FileInfo]:
        """List the files of a folder and those below, by name."""
        found = []
        for path in (self.root / folder).rglob("*"):
            name = path.relative_to(self.root).as_posix()
            if name <= after:
                continue
            try:
                about = path.stat()
            except FileNotFoundError:
                # A vacuum removes files meanwhile.
                continue
            if path.is_file():
                found.append(FileInfo(name, about.st_size, about.st_mtime))
        return sorted(found, key=lambda one: one.name)

    def write(self, name: str, data: bytes) -> None:
        """Write a file: whole and on disk, or not at all."""
        writing = self.staging()
        writing.add(name, data)
        writing.sync()

    def staging(self) -> AtomicFiles:
        """Return a staging for files that belong together."""
        return AtomicFiles(self.root)

    def remove(self, names: Sequence[str], *, in_order: bool) -> None:
        """Remove files, and the folders that are empty then."""
        del in_order  # nothing is quicker than one after the other
        folders: set[Path] = set()
        for name in names:
            path = self.root / name
            path.unlink(missing_ok=True)
            folders.update(one for one in path.parents if self.root in one.parents)
        # Those below before those above.
        for folder in sorted(folders, reverse=True):
            if folder.name != LOG_FOLDER and not any(folder.iterdir()):
                folder.rmdir()

    def sync_log(self, folder: str) -> None:
        """Sync Delta's log to disk, which Delta does not do."""
        newest = max((self.root / folder).glob("*.json"))
        sync_file(newest, os.O_RDONLY)
        sync_folder(self.root / folder)

    def lock(self) -> WriterLock:
        """Take the lock, or raise and name its holder."""
        return WriterLock(self.root / LOCK, self.display_path)

    def display_path(self, path: Path) -> str:
        """Return the path of a file or folder of the store for messages."""
        return self.display_name(path.relative_to(self.root).as_posix())


def _is_own(name: str) -> bool:
    return name in _OWN or name.startswith(RELATION_PREFIX)
