"""Codes that enrol a device once: files beside the store, so that they can be made while the hub runs."""

from __future__ import annotations

import hmac
import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.fleet.clock import now
from zodiacedge.fleet.identity import hashed, make_code, proof
from zodiacedge.fleet.trust.metadata import device_name, write_file

if TYPE_CHECKING:
    from pathlib import Path

LASTS = timedelta(days=1)


class Spent(NamedTuple):
    """A code that a device used: the groups of the device, and whether it had used the code before."""

    groups: list[str]
    again: bool


class Codes:
    """The codes of the last day, and the keys that used them; their hashes are kept, and not they."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which may not exist yet."""
        self._folder = folder

    def make(self, name: str, groups: list[str], root: bytes) -> str:
        """Return a code for a device, which lasts a day; an earlier one is worth nothing then."""
        code = make_code(root)
        document = {"hash": hashed(code), "until": (now() + LASTS).isoformat(), "groups": groups}
        write_file(self._folder / f"{device_name(name)}.json", json.dumps(document).encode())
        return code

    def spend(self, name: str, key: str, given: str) -> Spent | None:
        """Use up the code of a device if it proves to have it; return None if it does not.

        The key that spent a code may do so again: the answer may have been lost on the way.
        """
        path = self._folder / f"{device_name(name)}.json"
        try:
            document = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        if datetime.fromisoformat(document["until"]) < now():
            path.unlink(missing_ok=True)
            return None
        expected = proof(document["hash"], name, key)
        # Texts are compared as bytes: what was given need not be of ASCII.
        if not hmac.compare_digest(expected.encode(), given.encode(errors="replace")):
            return None
        again = "key" in document
        if document.setdefault("key", key) != key:
            return None
        write_file(path, json.dumps(document).encode())
        return Spent([str(group) for group in document["groups"]], again)
