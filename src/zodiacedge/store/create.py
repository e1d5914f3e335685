"""Creates an empty store in steps that can be repeated after a crash.

In a folder, the lock is written first and the marker last. A folder with the lock and without the marker that
holds only files of the steps between is an unfinished store: the next process that creates a store there
clears it. In an object store, the empty table is one object and the marker another: a process that finds the
table only puts the marker, and of several processes only the first to put the marker has created the store.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from zodiacedge.errors import StoreProblem
from zodiacedge.store.layout import DELTA_LOG, LOCK, LOG_FOLDER, MARKER
from zodiacedge.store.location.atomic_files import sync_folder
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.location.marker import marker
from zodiacedge.store.log import record_format
from zodiacedge.store.problems import already_a_store, no_folder, not_a_store, unwritable
from zodiacedge.store.table.delta_table import FactTable

if TYPE_CHECKING:
    from zodiacedge.store.location.base import Location, WriterLease
    from zodiacedge.store.location.object_store import ObjectStoreLocation
    from zodiacedge.store.table.commit_info import Snapshot

_UNFINISHED = {LOCK, LOG_FOLDER, DELTA_LOG}
_FIRST_COMMIT = f"{DELTA_LOG}/{0:020d}.json"


def create_store(location: Location, snapshot: Snapshot) -> WriterLease:
    """Create an empty store in an empty or missing location; return the lease of its writer."""
    if isinstance(location, LocalLocation):
        return _create_in_folder(location, snapshot)
    return _create_in_object_store(location, snapshot)


def is_blank(location: Location) -> bool:
    """Return whether a store has no changes yet."""
    newest = next(FactTable(location).commits(), None)
    if newest is None or newest.snapshot.version:
        return False
    return next(record_format.read_files(location, record_format.files(location), ends=True), None) is None


def _create_in_folder(location: LocalLocation, snapshot: Snapshot) -> WriterLease:
    try:
        if location.root.is_file():
            raise no_folder(location)
        location.root.mkdir(parents=True, exist_ok=True)
        _refuse_foreign_files(location)
        lock = location.lock()
    except OSError as error:
        raise unwritable(location, error) from error
    try:
        _clear_leftovers(location)
        (location.root / LOG_FOLDER).mkdir()
        FactTable(location).create(snapshot)
        sync_folder(location.root)
        location.write(MARKER, marker())
    except OSError as error:
        lock.release()
        raise unwritable(location, error) from error
    except BaseException:
        lock.release()
        raise
    return lock


def _refuse_foreign_files(location: LocalLocation) -> None:
    """Raise if the folder holds files that an unfinished store does not have."""
    location.refuse_links()
    names = {path.name for path in location.root.iterdir()}
    leftovers = {name for name in names if name in _UNFINISHED or name.startswith(f".{MARKER}.")}
    if names - leftovers or (names and LOCK not in names):
        raise not_a_store(location, "the folder is not empty")
    if any((location.root / LOG_FOLDER).glob("*")):
        # A finished store has lost its marker: clearing it would lose changes.
        raise not_a_store(location, f"it has changes and no {MARKER}")


def _clear_leftovers(location: LocalLocation) -> None:
    # Before the lock was acquired, another process may have finished.
    if location.has(MARKER):
        raise already_a_store(location)
    for path in location.root.iterdir():
        if path.name == LOCK:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _create_in_object_store(location: ObjectStoreLocation, snapshot: Snapshot) -> WriterLease:
    names = {file.name for file in location.listed()}
    if MARKER in names:
        raise already_a_store(location)
    if names - {_FIRST_COMMIT}:
        raise not_a_store(location, "there is something else")
    table = FactTable(location)
    if not names:
        try:
            table.create(snapshot)
        except StoreProblem:
            # Another process may have created the table first.
            if next(table.commits(), None) is None:
                raise
    if next(table.commits(), None) is None:
        raise not_a_store(location, "there is another table")
    if not location.put_new(MARKER, marker()):
        raise already_a_store(location)
    return location.lock()
