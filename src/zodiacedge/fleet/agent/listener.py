"""A web server of an agent: some connections at a time, none for ever, and silent about those that break."""

from __future__ import annotations

import re
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_Request = socket.socket | tuple[bytes, socket.socket]
MOST_BODY = 1 << 20
_LENGTH = re.compile(r"[0-9]{1,10}")
# So many at a time: a neighbour waits for news, and for published facts.
_MOST_CONNECTIONS = 256


def address_of(host: str, port: int) -> str:
    """Return the address of a web server."""
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Listener(ThreadingHTTPServer):
    """A server in a thread of its own."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, handler: type[Handler]) -> None:
        """Listen on an address of this machine, of either family; port 0 is any that is free."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__((host, port), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def verify_request(self, request: object, client_address: object) -> bool:  # noqa: ARG002 - as named there
        """Return whether there is room for one more connection."""
        return self._free.acquire(blocking=False)

    def process_request(self, request: _Request, client_address: object) -> None:
        """Begin a thread for a connection; if none can begin, make room again."""
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        """Answer a connection, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of those who hang up; what else goes wrong is a mistake of this program."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # handed on


class Handler(BaseHTTPRequestHandler):
    """What the servers of an agent have in common."""

    timeout = 60.0
    """Whoever says nothing for so many seconds is left."""

    def body(self) -> bytes | None:
        """Return the body of a request; None if it has none, or one that is too large."""
        length = self.headers.get("Content-Length", "")
        if not _LENGTH.fullmatch(length) or int(length) > MOST_BODY:
            return None
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server names it
        """Print nothing: a request is no news."""
