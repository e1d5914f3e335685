"""A store that is there whole or not at all: made in another place, and moved there when it is done."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from zodiacedge.errors import StoreProblem
from zodiacedge.store.disk import sync_folder
from zodiacedge.store.folder import FolderPlace
from zodiacedge.store.layout import LOCK, MARKER
from zodiacedge.store.lock import WriterLock
from zodiacedge.store.objects import ObjectPlace
from zodiacedge.store.problems import already_a_store, not_a_store, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from zodiacedge.store.place import Place


_ENDING = ".new"


def beside(place: Place) -> AbstractContextManager[FolderPlace]:
    """Give a folder to make a store in; it comes to a place, or is removed if the block fails."""
    match place:
        case FolderPlace():
            return _renamed(place.root.absolute())
        case ObjectPlace():
            return _put(place)
        case _:
            raise TypeError(place)


@contextmanager
def _renamed(root: Path) -> Iterator[FolderPlace]:
    if FolderPlace(root).has(MARKER):
        raise already_a_store(root)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise not_a_store(root, "something is there already")
    _sweep(root)
    making = root.with_name(f".{root.name}.{os.getpid()}{_ENDING}")
    try:
        yield FolderPlace(making)
        making.replace(root)
        sync_folder(root.parent)
    except OSError as error:
        raise unwritable(root, error) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _sweep(root: Path) -> None:
    """Remove what killed processes began for the same place: nobody holds its lock any more."""
    if not root.parent.is_dir():
        return
    for left in root.parent.iterdir():
        if left.name.startswith(f".{root.name}.") and left.name.endswith(_ENDING) and left.is_dir():
            try:
                with WriterLock(left / LOCK):
                    shutil.rmtree(left)
            except StoreProblem:
                continue


@contextmanager
def _put(place: ObjectPlace) -> Iterator[FolderPlace]:
    names = {one.name for one in place.listed()}
    if MARKER in names:
        raise already_a_store(place)
    with TemporaryDirectory(prefix="zodiac-") as folder:
        making = FolderPlace(Path(folder) / "store")
        yield making
        ours = {one.name for one in making.listed()} - {LOCK}
        if names - ours:
            raise not_a_store(place, "something is there already")
        putting = place.staging()
        for name in sorted(ours - {MARKER}):
            putting.add(name, making.read(name))
        putting.settle()
        # Without it the rest is no store.
        if not place.put_new(MARKER, making.read(MARKER)):
            raise already_a_store(place)
