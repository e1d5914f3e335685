"""Publishes a store whole or not at all: it is made in another folder, and moved when it is complete."""

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
from zodiacedge.store.location.object_store import ObjectStoreLocation
from zodiacedge.store.problems import already_a_store, not_a_store, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from zodiacedge.store.location.base import Location


_ENDING = ".new"
# The names in the folder of an unfinished store; the lock comes first.
_STORES = re.compile(rf"{LOCK}|{LOG_FOLDER}|{DELTA_LOG}|{RELATION_PREFIX}.*|\.?{re.escape(MARKER)}(\..*)?")


def atomic_publish(location: Location) -> AbstractContextManager[LocalLocation]:
    """Give a folder to make a store in; it is moved to a location, or removed if the block fails."""
    match location:
        case LocalLocation():
            return _renamed(location.root.absolute())
        case ObjectStoreLocation():
            return _put(location)
        case _:
            raise TypeError(location)


@contextmanager
def _renamed(root: Path) -> Iterator[LocalLocation]:
    if LocalLocation(root).has(MARKER):
        raise already_a_store(root)
    making = root.with_name(f".{root.name}.{os.getpid()}{_ENDING}")
    try:
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise not_a_store(root, "something is there already")
        _remove_leftovers(root)
        yield LocalLocation(making)
        making.replace(root)
        sync_folder(root.parent)
    except OSError as error:
        raise unwritable(root, error) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _remove_leftovers(root: Path) -> None:
    """Remove the unfinished stores of killed processes for the same location: their locks are free."""
    if not root.parent.is_dir():
        return
    name = re.compile(rf"\.{re.escape(root.name)}\.[0-9]+{re.escape(_ENDING)}")
    for folder in root.parent.iterdir():
        if not name.fullmatch(folder.name) or folder.is_symlink() or not _is_ours(folder):
            continue
        try:
            with WriterLock(folder / LOCK):
                shutil.rmtree(folder)
        except StoreProblem:
            continue


def _is_ours(folder: Path) -> bool:
    """Whether a folder has our lock, and nothing that does not belong to a store."""
    if not folder.is_dir():
        return False
    names = [path.name for path in folder.iterdir()]
    return LOCK in names and all(_STORES.fullmatch(name) for name in names)


@contextmanager
def _put(location: ObjectStoreLocation) -> Iterator[LocalLocation]:
    names = {one.name for one in location.listed()}
    if MARKER in names:
        raise already_a_store(location)
    with TemporaryDirectory(prefix="zodiac-") as folder:
        making = LocalLocation(Path(folder) / "store")
        yield making
        ours = {one.name for one in making.listed()} - {LOCK}
        if names - ours:
            raise not_a_store(location, "something is there already")
        putting = location.staging()
        for name in sorted(ours - {MARKER}):
            putting.add(name, making.read(name))
        putting.settle()
        # Without the marker, the rest is no store.
        if not location.put_new(MARKER, making.read(MARKER)):
            raise already_a_store(location)
