"""One writer at a time.

The system holds the lock for the process and takes it back when the process ends, however it ends: there is
no stale lock to guess about. Who holds it stands in the file, for the message to the second writer; what a
killed process left there is recognised by the lock being free.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from zodiacedge.store.problems import locked, unwritable

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_MOST = 4096


class WriterLock:
    """The lock of a store, held from when it is made until it is released."""

    def __init__(self, path: Path) -> None:
        """Take the lock, or raise and say who has it."""
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        except OSError as error:
            raise unwritable(path.parent, error) from error
        if not _take(self._file):
            holder = _shown(os.pread(self._file, _MOST, 0))
            os.close(self._file)
            raise locked(path.parent, holder)
        self.left_by = _shown(os.pread(self._file, _MOST, 0)) if os.fstat(self._file).st_size else ""
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

    def release(self) -> None:
        """Let others write; the file stays, empty."""
        if self._file >= 0:
            try:
                self._write(b"")
            finally:
                # Closing it gives the lock back.
                os.close(self._file)
                self._file = -1

    def _write(self, data: bytes) -> None:
        # Words for others, which a full disk may swallow: the lock is held all the same.
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, data, 0)
        except OSError:
            os.ftruncate(self._file, 0)


def _shown(data: bytes) -> str:
    try:
        about = json.loads(data)
        return f"process {about['pid']} on {about['host']}, since {about['started']}"
    except (ValueError, KeyError, TypeError):
        return "a process that did not leave its name"


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
