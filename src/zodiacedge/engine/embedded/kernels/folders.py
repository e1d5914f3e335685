"""Folders for compiled kernels, and files in them.

A folder is the user's, or where that takes no files a temporary one; `NUMBA_CACHE_DIR` names another.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from zodiacedge.engine.embedded.kernels.sources import hash_of_sources

FOLDER = "zodiacedge"
"""What the folder of kernels is called."""
_DAY = 24 * 60 * 60
_MOST_UNUSED = 60 * _DAY


@cache
def cache_home() -> Path | None:
    """Return the folder of caches: NUMBA_CACHE_DIR, the user's, or if that takes no files a temporary one."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return Path(named).absolute()
    with suppress(RuntimeError, OSError):  # no home folder, or one that may not be entered
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
        own = home / FOLDER
        if _is_safe(own) and (any(own.glob(f"*-{hash_of_sources()}-*")) or takes_files(home)):
            return home
    return _temporary_home()


def _is_safe(folder: Path) -> bool:
    """Whether no other user but root can write to a folder, existing or not: cached kernels are code."""
    if os.name == "nt" or not os.path.lexists(folder):
        return True
    status = folder.stat()
    return status.st_uid in {0, os.getuid()} and not status.st_mode & stat.S_IWOTH


def takes_files(folder: Path) -> bool:
    """Return whether a folder, existing or not, can be written to; create nothing."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    with suppress(OSError):
        return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    return False


def _temporary_home() -> Path | None:
    """Return a folder for temporary files that nobody else can write to: cached kernels are code."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    with suppress(OSError):
        folder = Path(tempfile.gettempdir()) / f"zodiacedge-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        owned = status.st_uid == user and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISDIR(status.st_mode) and (owned or os.name == "nt"):
            return folder
    return None


def write(path: Path, data: bytes) -> None:
    """Write a file as a whole: another process sees all of it or nothing."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - an open file has no path
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def mark_used(file: Path) -> None:
    """Note that the kernels beside a file are used, once a day."""
    with suppress(OSError):
        if time.time() - file.stat().st_mtime > _DAY:
            os.utime(file)


def remove_unused(home: Path, pattern: str) -> None:
    """Remove kernels that no process used for a long time: the files that fit, or the folders they are in."""
    for file in home.glob(pattern):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _MOST_UNUSED:
                if file.parent == home:
                    file.unlink()
                else:
                    shutil.rmtree(file.parent, ignore_errors=True)
