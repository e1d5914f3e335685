"""One writer at a time.

The system holds the lock for the process and releases it when the process ends, however it ends: there are
no stale locks. The file names the holder, for the message to a second writer; the name that a killed process
left is recognised by the lock being free. A forked process closes its copy of the lock at once, and is no
writer.

A store may come from elsewhere: a lock that is a link to another file is refused, and contents that no writer
wrote are left as they are.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from zodiacedge.store.problems import leads_elsewhere, locked, unwritable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

_MOST = 4096
_HOW = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class WriterLock:
    """The lock of a store, held from when it is made until it is released."""

    def __init__(self, path: Path, display_name: Callable[[Path], str] = str) -> None:
        """Take the lock, or raise and name its holder; `display_name` returns a path for messages."""
        self._file = _opened(path, display_name)
        if not _take(self._file):
            holder = _description(os.pread(self._file, _MOST, 0))
            os.close(self._file)
            raise locked(display_name(path.parent), holder)
        _HELD.add(self)
        contents = os.pread(self._file, _MOST, 0)
        # Contents that no writer wrote are not ours to overwrite: the lock is held all the same.
        self._signed = not contents.strip(b"\0") or _holder(contents) is not None
        about = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._write(json.dumps(about).encode() + b"\n")

    def __enter__(self) -> Self:
        """Hold it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release it."""
        self.release()

    @property
    def held(self) -> bool:
        """Whether this process may write: not after the release, nor in a forked process."""
        return self._file >= 0

    def release(self) -> None:
        """Let other processes write; the file stays, empty."""
        if self._file >= 0:
            try:
                self._write(b"")
            finally:
                self.leave()

    def leave(self) -> None:
        """Close the file as it is: the lock is free when no process has it open."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        if not self._signed:
            return
        # Only for messages, so a full disk does not matter: the lock is held all the same.
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, data, 0)
        except OSError:
            os.ftruncate(self._file, 0)


_HELD: WeakSet[WriterLock] = WeakSet()


def _leave_all() -> None:
    for one in tuple(_HELD):
        one.leave()


if hasattr(os, "register_at_fork"):
    # Otherwise a child would keep the lock of a parent that is gone.
    os.register_at_fork(after_in_child=_leave_all)


def _opened(path: Path, display_name: Callable[[Path], str]) -> int:
    try:
        file = os.open(path, _HOW, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise leads_elsewhere(display_name(path)) from error
        raise unwritable(display_name(path.parent), error) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise leads_elsewhere(display_name(path))
    return file


def _holder(data: bytes) -> tuple[int, str, str] | None:
    """Return the holder that a file names: its process, its host, and since when."""
    try:
        about = json.loads(data)
        return int(about["pid"]), str(about["host"]), str(about["started"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _description(data: bytes) -> str:
    found = _holder(data)
    if found is None:
        return "a process that did not leave its name"
    process, host, started = found
    display_name = f"process {process} on {host}, since {started}"
    if host == socket.gethostname() and _is_gone(process):
        return f"{display_name}; it is gone, and a process that it started has the lock still"
    return display_name


def _is_gone(process: int) -> bool:
    if sys.platform == "win32" or process <= 0:
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False


if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _take(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
