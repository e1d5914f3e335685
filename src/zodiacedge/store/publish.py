"""A store that is there whole or not at all: made beside its place, and moved there when it is done."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zodiacedge.errors import StoreProblem
from zodiacedge.store.layout import LOCK, Layout, sync_folder
from zodiacedge.store.lock import WriterLock
from zodiacedge.store.problems import already_a_store, not_a_store, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_ENDING = ".new"


@contextmanager
def beside(root: Path) -> Iterator[Path]:
    """Give a folder to make a store in; it becomes `root`, or is removed if the block fails."""
    root = root.absolute()
    if Layout(root).marker.exists():
        raise already_a_store(root)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise not_a_store(root, "something is there already")
    _sweep(root)
    making = root.with_name(f".{root.name}.{os.getpid()}{_ENDING}")
    try:
        yield making
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
