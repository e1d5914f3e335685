"""Publishes a store atomically: it is written to a temporary folder, and moved when it is complete."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from zodiacedge.errors import StoreProblem
from zodiacedge.store.layout import DELTA_LOG, LOCK, LOG_FOLDER, MARKER, RELATION_PREFIX
from zodiacedge.store.location.atomic_files import sync_folder
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.location.lock import WriterLock
from zodiacedge.store.problems import already_a_store, not_a_store, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from zodiacedge.store.location.base import Location
    from zodiacedge.store.location.object_store import ObjectStoreLocation


_SUFFIX = ".new"
_STORE_FILES = re.compile(
    rf"{LOCK}|{LOG_FOLDER}|{DELTA_LOG}|{RELATION_PREFIX}.*|\.?{re.escape(MARKER)}(\..*)?"
)


def atomic_publish(location: Location) -> AbstractContextManager[LocalLocation]:
    """Yield a folder for writing a store; it is moved to a location, or removed if the block fails."""
    if isinstance(location, LocalLocation):
        return _publish_by_rename(location.root.absolute())
    return _publish_by_put(location)


@contextmanager
def _publish_by_rename(root: Path) -> Iterator[LocalLocation]:
    if LocalLocation(root).has(MARKER):
        raise already_a_store(root)
    temporary = root.with_name(f".{root.name}.{os.getpid()}{_SUFFIX}")
    try:
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise not_a_store(root, "something is there already")
        _remove_leftovers(root)
        yield LocalLocation(temporary)
        temporary.replace(root)
        sync_folder(root.parent)
    except OSError as error:
        raise unwritable(root, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_leftovers(root: Path) -> None:
    """Remove the unfinished stores that killed processes left for this location: their locks are free."""
    if not root.parent.is_dir():
        return
    name = re.compile(rf"\.{re.escape(root.name)}\.[0-9]+{re.escape(_SUFFIX)}")
    for folder in root.parent.iterdir():
        if not name.fullmatch(folder.name) or folder.is_symlink() or not _is_unfinished_store(folder):
            continue
        try:
            with WriterLock(folder / LOCK):
                shutil.rmtree(folder)
        except StoreProblem:
            continue


def _is_unfinished_store(folder: Path) -> bool:
    """Return whether a folder holds the lock, and only files of a store."""
    if not folder.is_dir():
        return False
    names = [path.name for path in folder.iterdir()]
    return LOCK in names and all(_STORE_FILES.fullmatch(name) for name in names)


@contextmanager
def _publish_by_put(location: ObjectStoreLocation) -> Iterator[LocalLocation]:
    existing = {file.name for file in location.listed()}
    if MARKER in existing:
        raise already_a_store(location)
    with TemporaryDirectory(prefix="zodiac-") as folder:
        temporary = LocalLocation(Path(folder) / "store")
        yield temporary
        names = {file.name for file in temporary.listed()} - {LOCK}
        if existing - names:
            raise not_a_store(location, "something is there already")
        staging = location.staging()
        for name in sorted(names - {MARKER}):
            staging.add(name, temporary.read(name))
        staging.sync()
        # The marker comes last: without it, the other objects are no store.
        if not location.put_new(MARKER, temporary.read(MARKER)):
            raise already_a_store(location)
