"""Refuses addresses that cannot be listened on and files that cannot be used, before anything runs."""

from __future__ import annotations

import resource
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, FleetProblem, LoadProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY_FILES = 10_240


def allow_connections() -> None:
    """Let this process have as many files open as it may: each device that waits for news is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Where there is no limit, macOS takes a number all the same; some sandboxes take none.
    wanted = _MANY_FILES if most == resource.RLIM_INFINITY else most
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise if it cannot; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with can_listen(host, port, "--host and --port"):
        return socket.create_server((host, port), family=family, backlog=1024)


@contextmanager
def can_listen(host: str, port: int, options: str) -> Iterator[None]:
    """Turn a failure to listen on an address into a problem that names the options to change."""
    try:
        yield
    except OSError as error:
        why = f"cannot listen on {host}:{port}: {(error.strerror or str(error)).lower()}"
        note = f"name an address of this machine and a port that is free: {options}"
        raise FleetProblem(Diagnostic("F010", why, note)) from error


@contextmanager
def can_use(what: str) -> Iterator[None]:
    """Turn a failure to read or write files into a problem that names the file."""
    try:
        yield
    except OSError as error:
        why = f"{error.filename or what} cannot be used: {error.strerror or error}"
        note = "look at the folder, its rights and the disk"
        raise LoadProblem(Diagnostic("U005", why, note)) from error
