"""What an agent does for its neighbours: it hands on metadata and blobs as they are, and requests to the hub.

Signatures make the honesty of a neighbour irrelevant, so it may be anybody. Metadata is asked for at the hub,
and comes from what was handed on before where the hub does not answer; blobs, which never change, are asked
for once. Of the device's own facts, those are answered that its owner publishes.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING

import urllib3

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.fleet.agent.listener import Handler, Listener, address_of
from zodiacedge.fleet.agent.published import news
from zodiacedge.fleet.trust.metadata import SERVED, write_file
from zodiacedge.fleet.trust.wire import BLOB, FEW_HEADERS, asked
from zodiacedge.util.gzipped import expanded_within, gzipped

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.kb.knowledge_base import KnowledgeBase

_BLOBS, _METADATA = "/targets/", "/metadata/"
_ASKED = re.compile(r"/news/[A-Za-z0-9][A-Za-z0-9._-]*\?after=\d{1,18}")
_PUBLISHED = re.compile(r"/published\?after=([0-9a-f]{0,64})")
_POSTED = ("/enrol", "/status")
_MOST_FILE = 64 << 20
_SECONDS, _NEWS_SECONDS = 40.0, 25.0


class Relay(Listener):
    """A server for neighbours."""

    def __init__(self, kb: KnowledgeBase, folder: Path, hub: str, host: str, port: int) -> None:
        """Keep what is handed on in a folder; the hub may be a neighbour, too."""
        self.kb = kb
        super().__init__(host, port, _Handler)
        self.folder, self.hub = folder, hub.rstrip("/")
        self.pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=3, read=_SECONDS), retries=False, maxsize=8
        )
        self.start()

    @property
    def own_base(self) -> str:
        """The address at which this device reaches its relay."""
        host = str(self.server_address[0])
        if ip_address(host).is_unspecified:
            host = "::1" if ":" in host else "127.0.0.1"
        return address_of(host, self.server_port)

    def announced_host(self, network: str) -> str:
        """Return the address to announce in the network of an address; raise if nobody there reaches it."""
        host = str(self.server_address[0])
        if ip_address(host).is_unspecified:
            return network
        if _is_loopback(host) and not _is_loopback(network):
            note = f"leave --serve-host out, or say --serve-host {network}"
            raise FleetProblem(Diagnostic("F010", f"nobody in the network of {network} reaches {host}", note))
        return host

    def close(self) -> None:
        """Stop serving."""
        super().close()
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
            if (named := BLOB.search(path)) and sha256(data).hexdigest() != named[1]:
                # It would be kept, and handed on for ever.
                return 404, b""
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
        response = asked(self.pool, method, self.hub + path, body=body, headers=headers)
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


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


class _Handler(Handler):
    server: Relay

    def do_GET(self) -> None:  # noqa: N802 - as http.server names it
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

    def do_POST(self) -> None:  # noqa: N802 - as http.server names it
        """Hand on a request that a device signed."""
        if self.path not in _POSTED or (body := self.body()) is None:
            self._answer(404, b"")
        else:
            self._hand_on("POST", body)

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
