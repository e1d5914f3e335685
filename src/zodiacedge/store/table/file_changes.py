"""The files that a commit adds and removes, folder by folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.engine.persistence import PartitionFile


class FileChanges:
    """The files of a commit while it is prepared."""

    def __init__(self, before: Iterable[str]) -> None:
        """Start with the files of the previous commit."""
        self._before = frozenset(before)
        self._by_folder: dict[str, list[str]] = {}
        self._new: dict[str, tuple[str, PartitionFile]] = {}
        for path in before:
            self._by_folder.setdefault(path.rsplit("/", 1)[0], []).append(path)

    def of(self, folder: str) -> Sequence[str]:
        """Return the files of a folder."""
        return tuple(self._by_folder.get(folder, ()))

    def replace(
        self, folder: str, files: Iterable[PartitionFile], *, beside: bool = False, kept: Iterable[str] = ()
    ) -> None:
        """Replace the files of a folder except those in `kept`; if `beside`, keep all."""
        names = list(self.of(folder)) if beside else list(kept)
        for file in files:
            if file.path not in names:
                names.append(file.path)
            self._new[file.path] = folder, file
        self._by_folder.pop(folder, None)
        if names:
            self._by_folder[folder] = names

    def keep_only(self, is_kept: Callable[[str], bool]) -> None:
        """Remove all folders except those that a predicate accepts."""
        self._by_folder = {folder: names for folder, names in self._by_folder.items() if is_kept(folder)}

    @property
    def all(self) -> tuple[str, ...]:
        """All files, in order."""
        return tuple(sorted(path for names in self._by_folder.values() for path in names))

    @property
    def inserted(self) -> Iterator[tuple[str, PartitionFile]]:
        """The files that the previous commit lacks, each with its folder."""
        names = set(self.all)
        for path, (folder, file) in self._new.items():
            if path in names and path not in self._before:
                yield folder, file

    @property
    def deleted(self) -> list[str]:
        """The files of the previous commit that this one lacks."""
        return sorted(self._before.difference(self.all))
