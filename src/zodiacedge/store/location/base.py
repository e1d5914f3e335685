"""The interface of a location: a folder, or a prefix of an object store. The rest knows names only.

A name is relative to the location and has slashes: `_wal/00000000000000000001.log`. A folder has one writer,
which holds a lock, appends to its log and waits for the disk. An object store has neither locks nor files
that grow: writers put whole objects, and the first to put an object of a name wins.
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
# Delta decodes these, and looks for a folder of another name.
_MISREAD = re.compile(r"\0|%[0-9A-Fa-f]{2}" if os.sep == "\\" else r"\0|\\|%[0-9A-Fa-f]{2}")
# The schemes of Hadoop.
_OTHER_NAMES = {"s3a": "s3"}


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file: its name, its bytes, and when it was written, in seconds by the clock of the location."""

    name: str
    bytes: int
    moment: float


class WriterLease(Protocol):
    """The right to write, held while a store is open."""

    @property
    def held(self) -> bool:
        """Whether this process may still write."""

    def release(self) -> None:
        """Let other processes write."""


class Staging(Protocol):
    """Files that are written together: all are whole and durable when they are settled."""

    def add(self, name: str, data: bytes) -> None:
        """Add a file."""

    def sync(self) -> None:
        """Return when all files are durable."""

    def discard(self) -> None:
        """Remove files that were not settled, where they would be in the way."""


class Location(Protocol):
    """Reads and writes the files of a store; may be sent to another process. Failures are OSErrors."""

    @property
    def shared(self) -> bool:
        """Whether several processes may write: there is no lock, and the second of a version is refused."""

    @property
    def uri(self) -> str:
        """The address for Delta."""

    @property
    def options(self) -> Mapping[str, str] | None:
        """The options that Delta needs besides the environment."""

    def display_name(self, name: str) -> str:
        """Return the path or address of a file for messages."""

    def read(self, name: str) -> bytes:
        """Return a file."""

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield files in order, each with a call that reads it; the next ones may be prefetched."""

    def exists(self) -> bool:
        """Whether there is any file, or a folder."""

    def has(self, name: str) -> bool:
        """Whether a file exists."""

    def refuse_links(self) -> None:
        """Raise if a file of the store is a link that leads elsewhere."""

    def listed(self, folder: str = "", after: str = "") -> list[FileInfo]:
        """List the files of a folder and those below, by name; only those after a name if given."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file: whole and durable, or not at all."""

    def staging(self) -> Staging:
        """Return a staging for files that belong together."""

    def remove(self, names: Sequence[str], *, in_order: bool) -> None:
        """Remove files, one after the other or in any order; missing files are passed over."""

    def sync_log(self, folder: str) -> None:
        """Make the last entry of Delta's log durable."""

    def lock(self) -> WriterLease:
        """Become the writer, or raise and name the process that is."""


def location_of(path: str | os.PathLike[str]) -> Location:
    """Return the location of a path or an address: `farm.zodiac`, `s3://bucket/farm.zodiac`."""
    text = os.fspath(given_path(path))
    if "://" not in text:
        return _folder(text)
    scheme, _, rest = text.partition("://")
    if scheme == "file":
        return _folder(url2pathname(urlsplit(text).path))
    scheme = _OTHER_NAMES.get(scheme, scheme)
    if scheme not in SCHEMES:
        known = ", ".join(f"{one}://" for one in SCHEMES)
        raise not_a_store(printable(text), f"a store is a folder or begins with one of {known}")
    from zodiacedge.store.location.object_store import ObjectStoreLocation  # noqa: PLC0415 - loads a library that folders do not need

    return ObjectStoreLocation.of(f"{scheme}://{rest}")


def _folder(text: str) -> Location:
    """Return the location of a folder, if its name is one that Delta takes."""
    from zodiacedge.store.location.local import LocalLocation  # noqa: PLC0415 - it knows this module

    if not text:
        raise bad_name("''", "it is empty")
    whole = os.path.abspath(text)  # noqa: PTH100 - takes what no Path takes
    name = printable(whole)
    if name != whole:
        raise bad_name(name, "it is not UTF-8")
    misread = _MISREAD.search(whole)
    if misread:
        raise bad_name(name.replace("\0", "\\0"), f"it has {misread[0]!r} in it")
    path = Path(text)
    return LocalLocation(path.absolute(), str(path))
