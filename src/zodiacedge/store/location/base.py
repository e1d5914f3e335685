"""The interface of a location: a folder, or a prefix of an object store.

File names are relative to the location, with slashes: `_wal/00000000000000000001.log`. A folder has one
writer, which holds a lock, appends to its log and syncs it to disk. An object store has neither locks nor
appends: writers put whole objects, and the first to put an object of a name wins.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from zodiacedge.kb.arguments import given_path, printable
from zodiacedge.store.problems import bad_name, not_a_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

SCHEMES = ("s3", "gs", "az")
# Delta decodes these in paths.
_MISREAD = re.compile(r"\0|%[0-9A-Fa-f]{2}" if os.sep == "\\" else r"\0|\\|%[0-9A-Fa-f]{2}")
_HADOOP_SCHEMES = {"s3a": "s3"}


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The name and bytes of a file, and its time of writing in seconds by the clock of the location."""

    name: str
    bytes: int
    moment: float


class WriterLease(Protocol):
    """The right to write, held while a store is open."""

    @property
    def held(self) -> bool:
        """Whether this process may still write."""

    def release(self) -> None:
        """Release the right."""


class Staging(Protocol):
    """Files that are written together."""

    def add(self, name: str, data: bytes) -> None:
        """Add a file."""

    def sync(self) -> None:
        """Make all added files visible and durable."""

    def discard(self) -> None:
        """Discard files that were not synced."""


class Location(Protocol):
    """The files of a store; may be sent to another process. Failures are OSErrors."""

    @property
    def shared(self) -> bool:
        """Whether several processes may write: without a lock, the second writer of a version is refused."""

    @property
    def uri(self) -> str:
        """The address for Delta."""

    @property
    def options(self) -> Mapping[str, str] | None:
        """The options for Delta that are not in the environment."""

    def display_name(self, name: str) -> str:
        """Return the path or address of a file for messages."""

    def read(self, name: str) -> bytes:
        """Return a file."""

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield files in order, each with a function that reads it; later files may be prefetched."""

    def exists(self) -> bool:
        """Return whether the folder, or any object, exists."""

    def has(self, name: str) -> bool:
        """Return whether a file exists."""

    def refuse_links(self) -> None:
        """Raise if a file of the store is a link."""

    def listed(self, folder: str = "", after: str = "") -> list[FileInfo]:
        """List the files of a folder and its subfolders by name, from the name after `after`."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically and durably."""

    def staging(self) -> Staging:
        """Return a staging for files that are written together."""

    def remove(self, names: Sequence[str], *, in_order: bool) -> None:
        """Remove files, in the given order or in any; missing files are skipped."""

    def sync_log(self, folder: str) -> None:
        """Make the last entry of Delta's log durable."""

    def lock(self) -> WriterLease:
        """Acquire the right to write, or raise and name the writer."""


def location_of(path: str | os.PathLike[str]) -> Location:
    """Parse a path or an address: `farm.zodiac`, `s3://bucket/farm.zodiac`."""
    text = os.fspath(given_path(path))
    if "://" not in text:
        return _folder(text)
    scheme, _, rest = text.partition("://")
    if scheme == "file":
        return _folder(url2pathname(urlsplit(text).path))
    scheme = _HADOOP_SCHEMES.get(scheme, scheme)
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise not_a_store(printable(text), f"a store is a folder or begins with one of {known}")
    from zodiacedge.store.location.object_store import ObjectStoreLocation  # noqa: PLC0415 - loads a library that folders do not need

    return ObjectStoreLocation.of(f"{scheme}://{rest}")


def _folder(text: str) -> Location:
    """Return the location of a folder, or raise if Delta cannot read its name."""
    from zodiacedge.store.location.local import LocalLocation  # noqa: PLC0415 - imports this module

    if not text:
        raise bad_name("''", "it is empty")
    absolute = os.path.abspath(text)  # noqa: PTH100 - accepts names that a Path refuses
    name = printable(absolute)
    if name != absolute:
        raise bad_name(name, "it is not UTF-8")
    misread = _MISREAD.search(absolute)
    if misread:
        raise bad_name(name.replace("\0", "\\0"), f"it has {misread[0]!r} in it")
    path = Path(text)
    return LocalLocation(path.absolute(), str(path))
