"""A repository behind an attacker: a web server that hands out what the attacker likes, and counts bytes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from packs.making import made
from zodiacedge.fleet.trust.client import Client
from zodiacedge.fleet.trust.keys import key_in, make_keys
from zodiacedge.fleet.trust.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from zodiacedge.packs.pack import Pack

    Answer = bytes | Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Serves files, with ranges, unless the attacker has something else for a path."""

    server: Middle
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.lstrip("/")
        self.server.asked.append(path)
        answer = self.server.instead.get(path)
        if callable(answer):
            answer(self)
            self.close_connection = True
            return
        file = self.server.folder / path
        if answer is None and not file.is_file():
            self.send_error(404)
            return
        data = file.read_bytes() if answer is None else answer
        begin = int(self.headers.get("Range", "bytes=0-")[6:-1])
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        self.send(data[begin:])

    def send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.server.sent += len(data)

    def log_message(self, *_: object) -> None:
        pass


class Middle(ThreadingHTTPServer):
    """The attacker's server."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.instead: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.sent = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that hang up."""


@contextmanager
def between(folder: Path) -> Iterator[Middle]:
    server = Middle(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def version(number: int, limit: int | None = None) -> Pack:
    """Return a version of the pack of the tests."""
    return made(f"r1: hot(T) :- reading(T, C), C > {limit or number} .", number)


class World:
    """Keys, a repository with two versions of a pack, and a device that is to run the second."""

    def __init__(self, folder: Path, middle: Middle) -> None:
        self.keys, self.folder, self.middle = folder / "keys", folder, middle
        self.clients: list[Client] = []
        make_keys(self.keys)
        self.repository = Repository(folder / "repository")
        self.repository.create(self.keys)
        self.publish(1)
        self.publish(2)
        self.assign(2)

    def publish(self, number: int, limit: int | None = None) -> None:
        self.repository.publish(version(number, limit), self.keys)

    def assign(self, number: int, device: str = "wt1") -> None:
        self.repository.assign(device, {"diagnosis": number}, key_in(self.keys, "online"))

    def client(self, **options: float) -> Client:
        """Return the client of the device, as after a restart."""
        client = Client(self.folder / "device", self.repository.root(), [self.middle.base], **options)
        self.clients.append(client)
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()

    def bytes_of(self, name: str) -> bytes:
        return (self.repository.path / name).read_bytes()

    def take(self) -> str:
        """Bring the device up to date, and return the pack that it is to run."""
        client = self.client()
        client.refresh()
        ((name, number),) = client.assigned("wt1").packs.items()
        return str(client.fetch(name, number))
