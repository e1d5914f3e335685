"""What an agent does for its neighbours: it hands on metadata and blobs as they are, and requests to the hub.

Signatures make the honesty of a neighbour irrelevant, so it may be anybody. Metadata is asked for at the hub,
and comes from what was handed on before where the hub does not answer; blobs, which never change, are asked
for once. Of the device's own facts, those are answered that its owner publishes.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import urllib3

from zodiacedge.fleet.agent.published import news
from zodiacedge.fleet.trust.metadata import SERVED, write_file
from zodiacedge.fleet.trust.wire import FEW_HEADERS
from zodiacedge.util.gzipped import expanded_within, gzipped

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.kb.knowledge_base import KnowledgeBase

_BLOBS, _METADATA = "/targets/", "/metadata/"
_ASKED = re.compile(r"/news/[A-Za-z0-9][A-Za-z0-9._-]*\?after=\d{1,18}")
_PUBLISHED = re.compile(r"/published\?after=([0-9a-f]{0,64})")
_POSTED = ("/enrol", "/status")
_MOST_BODY, _MOST_FILE = 1 << 20, 64 << 20
_SECONDS, _NEWS_SECONDS = 40.0, 25.0


class Relay(ThreadingHTTPServer):
    """A server for neighbours."""

    daemon_threads = True

    def __init__(self, kb: KnowledgeBase, folder: Path, hub: str, host: str, port: int) -> None:
        """Keep what is handed on in a folder; the hub may be a neighbour, too."""
        self.kb = kb
        super().__init__((host, port), _Handler)
        self.folder, self.hub = folder, hub.rstrip("/")
        self.pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=3, read=_SECONDS), retries=False, maxsize=8
        )
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        self.pool.clear()

    def file(self, path: str) -> tuple[int, bytes]:
        """Return the status and the contents of a file of the repository."""
        kept = self.folder / path.lstrip("/")
        if path.startswith(_BLOBS) and kept.is_file():
            return 200, kept.read_bytes()
        try:
            status, data = self.ask("GET", path)
        except (urllib3.exceptions.HTTPError, OSError):
            return (200, kept.read_bytes()) if kept.is_file() else (404, b"")
        if status == 200:
            write_file(kept, data)
        return status, data

    def ask(
        self, method: str, path: str, body: bytes | None = None, signature: str = ""
    ) -> tuple[int, bytes]:
        """Ask the hub."""
        headers = dict(FEW_HEADERS)
        if signature:
            headers["Zodiac-Signature"] = signature
        if path.startswith(_METADATA):
            headers["Accept-Encoding"] = "gzip"
        response = self.pool.request(
            method, self.hub + path, body=body, headers=headers, preload_content=False, decode_content=False
        )
        try:
            data = response.read(_MOST_FILE + 1)
        finally:
            response.close()
        if len(data) > _MOST_FILE:
            raise OSError("the answer does not end")
        if response.headers.get("Content-Encoding") == "gzip":
            try:
                data = expanded_within(data, _MOST_FILE)
            except ValueError as error:
                raise OSError(str(error)) from error
        return response.status, bytes(data)


class _Handler(BaseHTTPRequestHandler):
    server: Relay

    def do_GET(self) -> None:
        """Hand on a file of the repository, or wait for news."""
        if SERVED.fullmatch(self.path):
            self._answer(*self.server.file(self.path))
        elif _ASKED.fullmatch(self.path):
            self._hand_on("GET")
        elif asked := _PUBLISHED.fullmatch(self.path):
            mark, facts = news(self.server.kb, asked[1], _NEWS_SECONDS)
            self._answer(200, json.dumps({"mark": mark, "facts": facts}).encode())
        else:
            self._answer(404, b"")

    def do_POST(self) -> None:
        """Hand on a request that a device signed."""
        length = self.headers.get("Content-Length", "")
        if self.path not in _POSTED or not length.isdigit() or int(length) > _MOST_BODY:
            self._answer(404, b"")
        else:
            self._hand_on("POST", self.rfile.read(int(length)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server names it
        """Print nothing."""

    def _hand_on(self, method: str, body: bytes | None = None) -> None:
        signature = self.headers.get("Zodiac-Signature", "")
        try:
            self._answer(*self.server.ask(method, self.path, body, signature))
        except (urllib3.exceptions.HTTPError, OSError):
            self._answer(502, b'{"error": "the hub does not answer"}')

    def _accepted(self) -> str:
        return str(self.headers.get("Accept-Encoding", ""))

    def _answer(self, status: int, data: bytes) -> None:
        begin = re.fullmatch(r"bytes=(\d{1,12})-", self.headers.get("Range", ""))
        if begin and status == 200 and 0 < int(begin[1]) < len(data):
            status, data = 206, data[int(begin[1]) :]
        compress = status == 200 and self.path.startswith(_METADATA) and "gzip" in self._accepted()
        self.send_response_only(status)
        if compress:
            data = gzipped(data)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
