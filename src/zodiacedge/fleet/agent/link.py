"""Requests to a hub: enrolment, status, news."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import urllib3

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.fleet.identity import hashed, is_code, proof, root_mark
from zodiacedge.fleet.problems import refused, unreachable
from zodiacedge.fleet.trust.metadata import write_file
from zodiacedge.fleet.trust.wire import FEW_HEADERS, asked, checked_base

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.fleet.identity import DeviceKey

_OK, _SERVER_ERROR = 200, 500
_MOST = 1 << 18
_NEWS_SECONDS = 40.0


class HubLink:
    """The way to a hub."""

    def __init__(self, base: str, key: DeviceKey) -> None:
        """Set the address of the hub and the key of the device."""
        self.base = checked_base(base)
        self._key = key
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=5, read=15), retries=False, maxsize=4
        )

    def close(self) -> None:
        """Close connections."""
        self._pool.clear()

    def enrol(self, name: str, code: str, root_file: Path) -> None:
        """Enrol the device with a code, and keep the root that the code says is to be trusted."""
        if not is_code(code):
            note = "copy all of what zodiac enrol HUB NAME prints"
            raise FleetProblem(Diagnostic("F008", f"{code} is no code that enrols a device", note))
        root = self._request("GET", "metadata/1.root.json")
        if root_mark(root) != code.rpartition("-")[2]:
            raise refused("the root of the hub", "it is not the one that the code is for")
        key = self._key.public
        document = {"name": name, "key": key, "proof": proof(hashed(code), name, key)}
        self._request("POST", "enrol", json.dumps(document).encode())
        write_file(root_file, root)

    def status(self, document: object) -> None:
        """Send a status, signed."""
        body = json.dumps(document, separators=(",", ":")).encode()
        self._request("POST", "status", body, {"Zodiac-Signature": self._key.sign(body)})

    def news(self, name: str, after: int) -> int:
        """Wait until the assignment is newer than a version, or for half a minute; return its version."""
        data = self._request("GET", f"news/{quote(name)}?after={after}", seconds=_NEWS_SECONDS)
        return int(json.loads(data)["version"])

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        seconds: float | None = None,
    ) -> bytes:
        timeout = urllib3.Timeout(connect=5, read=seconds or 15)
        try:
            response = asked(
                self._pool,
                method,
                self.base + path,
                body=body,
                headers={**FEW_HEADERS, **(headers or {})},
                timeout=timeout,
            )
            try:
                data = response.read(_MOST)
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise unreachable(self.base, error) from error
        if response.status >= _SERVER_ERROR:
            raise unreachable(self.base, f"HTTP status {response.status}")
        if response.status != _OK:
            raise _refusal(response.status, data)
        return bytes(data)


def _refusal(status: int, data: bytes) -> FleetProblem:
    """Return the problem that a hub answers with."""
    try:
        document = json.loads(data)
        why, note = str(document["error"]), str(document.get("note", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        why, note = f"HTTP status {status}", "is it the address of a hub?"
    return FleetProblem(Diagnostic("F008", f"the hub refuses: {why}", note))
