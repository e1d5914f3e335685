"""Making an empty store, step by step, such that a process killed on the way leaves nothing that hinders.

The lock comes first and the marker last. A folder with our lock, without a marker and with nothing in it but
what the steps between make is one that somebody did not finish: the next to make a store there starts anew.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from zodiacedge.store.layout import DELTA_LOG, LOCK, LOG_FOLDER, MARKER, Layout, sync_folder
from zodiacedge.store.lock import WriterLock
from zodiacedge.store.problems import already_a_store, not_a_store, unwritable
from zodiacedge.store.table import FactTable

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.store.table import Snapshot

_BETWEEN = {LOCK, LOG_FOLDER, DELTA_LOG}


def make(root: Path, snapshot: Snapshot) -> WriterLock:
    """Make a store without facts in a folder that is empty or not there yet; return its lock, held."""
    layout = Layout(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        _refuse_others(layout)
        lock = WriterLock(layout.lock)
    except OSError as error:
        raise unwritable(root, error) from error
    try:
        _begin_anew(layout)
        layout.log.mkdir()
        FactTable(layout).create(snapshot)
        sync_folder(root)
        layout.mark()
    except OSError as error:
        lock.release()
        raise unwritable(root, error) from error
    except BaseException:
        lock.release()
        raise
    return lock


def _refuse_others(layout: Layout) -> None:
    """Raise if there is anything in the folder but what an unfinished making leaves."""
    names = {path.name for path in layout.root.iterdir()}
    left = {name for name in names if name in _BETWEEN or name.startswith(f".{MARKER}.")}
    if names - left or (names and LOCK not in names):
        raise not_a_store(layout.root, "the folder is not empty")
    if any(layout.log.glob("*")):
        # There are changes: this was a store, and lost its marker.
        raise not_a_store(layout.root, f"it has changes and no {MARKER}")


def _begin_anew(layout: Layout) -> None:
    # Now that the lock is ours: somebody may have finished while we waited for it.
    if layout.marker.exists():
        raise already_a_store(layout.root)
    for path in layout.root.iterdir():
        if path.name == LOCK:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
