"""A server that speaks the language of S3 over HTTP, in a process of its own, for tests of object stores."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_SECONDS = 60


@contextmanager
def serving() -> Iterator[str]:
    """Start a server without buckets; yield its endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(process, endpoint)
            yield endpoint
        finally:
            process.kill()


def make_bucket(endpoint: str, name: str) -> None:
    """Make a bucket."""
    request = urllib.request.Request(f"{endpoint}/{name}", method="PUT")  # noqa: S310 - our own server
    with urllib.request.urlopen(request):  # noqa: S310 - as above
        pass


def _wait(process: subprocess.Popen[bytes], endpoint: str) -> None:
    until = time.monotonic() + _LONGEST_SECONDS
    while True:
        try:
            with urllib.request.urlopen(endpoint):  # noqa: S310 - as above
                return
        except (urllib.error.URLError, ConnectionError):
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
