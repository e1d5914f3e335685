"""Owners of scratch folders: the name of a folder says which process made it.

A process removes its folder when it ends. One that was killed cannot, so the next process on the same machine
that makes a folder beside it does. Folders of other machines, and of processes that run, are left alone.
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self

from pyarrow import fs

from zodiacedge.engine.spark.cluster.task_files import REMOVAL_ERRORS, located

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAME = re.compile(r"zodiacedge-([0-9a-f]{8})-([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-f]{12}")


class Owner(NamedTuple):
    """A process: its machine, the start of the machine, its number, and its own start."""

    host: str
    boot: str
    process: int
    started: int

    @classmethod
    def here(cls, process: int) -> Self:
        """Return a process of this machine; its start is -1 if it does not run."""
        boot = _BOOT.read_text(encoding="ascii") if _BOOT.exists() else ""
        return cls(_digest(socket.gethostname()), _digest(boot), process, _start_of(process))

    @property
    def is_gone(self) -> bool:
        """Whether it was a process of this machine, and does not run any more."""
        now = Owner.here(self.process)
        return self.host == now.host and self != now


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]


def _start_of(process: int) -> int:
    """Return when a process started, 0 where the system does not tell; -1 if it does not run."""
    with suppress(OSError):
        # Behind the name of the program, which may have any characters.
        return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    if _BOOT.exists():
        return -1
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return -1
    except OSError:
        return 0
    return 0


def new_name() -> str:
    """Return the name of a new folder of this process."""
    return f"zodiacedge-{'-'.join(map(str, Owner.here(os.getpid())))}-{uuid.uuid4().hex[:12]}"


def owner_of(name: str) -> Owner | None:
    """Return the owner of a folder; None if it is no scratch folder."""
    parts = _NAME.fullmatch(name)
    return Owner(parts[1], parts[2], int(parts[3]), int(parts[4])) if parts else None


def sweep(base: str) -> None:
    """Remove the scratch folders in a folder whose owners are gone."""
    with suppress(*REMOVAL_ERRORS):
        system, path = located(base)
        for entry in system.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            owner = owner_of(entry.base_name)
            if owner and owner.is_gone:
                with suppress(*REMOVAL_ERRORS):
                    system.delete_dir(entry.path)
