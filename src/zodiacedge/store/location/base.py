"""Where the files of a store are: a folder, or a prefix of an object store. The rest knows names only.

A name is relative to the place and has slashes: `_wal/00000000000000000001.log`. A folder has one writer,
which holds a lock, appends to its log and waits for the disk. An object store has neither locks nor files
that grow: whoever writes puts whole objects, and the first to put one of a name wins.
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
# Delta takes these for other signs, and looks for the folder of another name.
_MISREAD = re.compile(r"\0|%[0-9A-Fa-f]{2}" if os.sep == "\\" else r"\0|\\|%[0-9A-Fa-f]{2}")
# What Hadoop calls the same.
_OTHER_NAMES = {"s3a": "s3"}


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file: its name, its bytes, and when it was written, in seconds by the clock of the place."""

    name: str
    bytes: int
    moment: float


class WriterLease(Protocol):
    """What a writer holds while it has a store open."""

    @property
    def held(self) -> bool:
        """Whether this process may still write."""

    def release(self) -> None:
        """Let others write."""


class Staging(Protocol):
    """Files that are written together: all are there, whole, when they are settled."""

    def add(self, name: str, data: bytes) -> None:
        """Take a file."""

    def settle(self) -> None:
        """Return when all files are there for good."""

    def drop(self) -> None:
        """Leave nothing behind of what was not settled, where that would be in somebody's way."""


class Location(Protocol):
    """Reads and writes the files of a store; may be sent to another process. Failures are OSErrors."""

    @property
    def shared(self) -> bool:
        """Whether several may write: no lock keeps them apart, and whoever comes second is refused."""

    @property
    def uri(self) -> str:
        """The place in the words of Delta."""

    @property
    def options(self) -> Mapping[str, str] | None:
        """What Delta needs to get there beside the environment."""

    def display_name(self, name: str) -> str:
        """Return a file's name as a person finds it."""

    def read(self, name: str) -> bytes:
        """Return a file."""

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield files in their order, each to be read by a call; those to come may be on their way."""

    def there(self) -> bool:
        """Tell whether there is anything."""

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""

    def refuse_links(self) -> None:
        """Raise if a file of the store is none, but leads somewhere else."""

    def listed(self, folder: str = "", after: str = "") -> list[FileInfo]:
        """List the files of a folder and those below, by name; only those behind a name if one is given."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file: it is there whole, and for good, or not at all."""

    def staging(self) -> Staging:
        """Return what files that belong together are written with."""

    def remove(self, names: Sequence[str], *, in_order: bool) -> None:
        """Remove files, one after the other or as it is quickest; those that are gone are passed over."""

    def settle_log(self, folder: str) -> None:
        """Make sure that what Delta wrote last in its log stays there."""

    def lock(self) -> WriterLease:
        """Become the writer, or raise and say who is."""


def location_of(path: str | os.PathLike[str]) -> Location:
    """Return the place of a path or an address: `farm.zodiac`, `s3://bucket/farm.zodiac`."""
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
    """Return the place of a folder, if that can be a store: Delta takes no other names."""
    from zodiacedge.store.location.local import LocalLocation  # noqa: PLC0415 - it knows this module

    if not text:
        raise bad_name("''", "it is empty")
    whole = os.path.abspath(text)  # noqa: PTH100 - takes what no Path takes
    shown = printable(whole)
    if shown != whole:
        raise bad_name(shown, "it is not UTF-8")
    found = _MISREAD.search(whole)
    if found:
        raise bad_name(shown.replace("\0", "\\0"), f"it has {found[0]!r} in it")
    path = Path(text)
    return LocalLocation(path.absolute(), str(path))
