"""The lock of a store's only writer.

The operating system releases the lock when the process ends, so there are no stale locks. The file names the
holder, for the error of a second writer. A forked process closes its copy of the lock at once, and is no
writer.

A store may be forged: a lock that is a link is refused, and contents that no writer wrote are not
overwritten.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from weakref import WeakSet

from zodiacedge.store.problems import leads_elsewhere, locked, unwritable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MOST = 4096
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class WriterLock(AbstractContextManager["WriterLock"]):
    """The lock of a store, held from its construction until it is released."""

    def __init__(self, path: Path, display_name: Callable[[Path], str] = str) -> None:
        """Acquire the lock, or raise and name its holder; `display_name` returns a path for messages."""
        self._file = _open(path, display_name)
        try:
            _lock(self._file)
        except OSError as error:
            holder = _description(os.pread(self._file, _MOST, 0))
            os.close(self._file)
            raise locked(display_name(path.parent), holder) from error
        _HELD.add(self)
        contents = os.pread(self._file, _MOST, 0)
        self._is_writable = not contents.strip(b"\0") or _holder(contents) is not None
        holder_info = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._write(json.dumps(holder_info).encode() + b"\n")

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.release()

    @property
    def held(self) -> bool:
        """Whether this process holds the lock: not after the release, nor in a forked process."""
        return self._file >= 0

    def release(self) -> None:
        """Release the lock and clear its file."""
        if self._file >= 0:
            try:
                self._write(b"")
            finally:
                self.close()

    def close(self) -> None:
        """Close the file unchanged: the lock is free when no process has it open."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        if not self._is_writable:
            return
        # The contents are for error messages only, so a full disk does not matter.
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, data, 0)
        except OSError:
            os.ftruncate(self._file, 0)


_HELD: WeakSet[WriterLock] = WeakSet()


def _close_all() -> None:
    for lock in tuple(_HELD):
        lock.close()


if hasattr(os, "register_at_fork"):
    # Otherwise a child would keep the lock after its parent has ended.
    os.register_at_fork(after_in_child=_close_all)


def _open(path: Path, display_name: Callable[[Path], str]) -> int:
    try:
        file = os.open(path, _FLAGS, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise leads_elsewhere(display_name(path)) from error
        raise unwritable(display_name(path.parent), error) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise leads_elsewhere(display_name(path))
    return file


def _holder(data: bytes) -> tuple[int, str, str] | None:
    """Decode the holder of a lock file: its process, host and start time."""
    try:
        holder = json.loads(data)
        return int(holder["pid"]), str(holder["host"]), str(holder["started"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _description(data: bytes) -> str:
    holder = _holder(data)
    if holder is None:
        return "a process that did not leave its name"
    process, host, started = holder
    description = f"process {process} on {host}, since {started}"
    if host == socket.gethostname() and _has_ended(process):
        return f"{description}; it is gone, and a process that it started has the lock still"
    return description


def _has_ended(process: int) -> bool:
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

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
