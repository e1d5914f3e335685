"""The location of a store: a folder, or a prefix of an object store; both have the same methods.

File names are relative to the location, with slashes: `_wal/00000000000000000001.log`. A folder has one
writer, which holds a lock, appends to its log and syncs it to disk. An object store has neither locks nor
appends: writers put whole objects, and the first to put an object of a name wins.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from zodiacedge.kb.arguments import given_path, printable
from zodiacedge.store.location.atomic_files import AtomicFiles
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.location.lock import WriterLock
from zodiacedge.store.location.object_store import Objects, ObjectStoreLocation, Unlocked
from zodiacedge.store.problems import bad_name, not_a_store

SCHEMES = ("s3", "gs", "az")
# Delta decodes these in paths.
_MISREAD = re.compile(r"\0|%[0-9A-Fa-f]{2}" if os.sep == "\\" else r"\0|\\|%[0-9A-Fa-f]{2}")
_HADOOP_SCHEMES = {"s3a": "s3"}


Location = LocalLocation | ObjectStoreLocation
"""The files of a store; may be sent to another process. Failures are OSErrors."""
Staging = AtomicFiles | Objects
"""Files that are written together."""
WriterLease = WriterLock | Unlocked
"""The right to write, held while a store is open."""


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
    return ObjectStoreLocation.of(f"{scheme}://{rest}")


def _folder(text: str) -> LocalLocation:
    """Return the location of a folder, or raise if Delta cannot read its name."""
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
