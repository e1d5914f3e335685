"""Roles, how long they last, and reading and writing of signed files."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, Root, Snapshot, Targets, Timestamp
from tuf.api.serialization import DeserializationError
from tuf.api.serialization.json import JSONSerializer

from zodiacedge.fleet.clock import now
from zodiacedge.fleet.problems import bad_keys

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from securesystemslib.signer import Signer

ASSIGNMENT = "assignment"
LIFETIMES = {
    Root.type: timedelta(days=365),
    Targets.type: timedelta(days=365),
    Snapshot.type: timedelta(days=7),
    Timestamp.type: timedelta(days=1),
    ASSIGNMENT: timedelta(days=7),
}
# The addresses of files in a repository; no part of one begins with a point.
SERVED = re.compile(r"/(?:metadata|targets)(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*){1,5}")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_Signed = TypeVar("_Signed", Root, Targets, Snapshot, Timestamp)


def pack_role(name: str) -> str:
    """Return the role that says which versions of a pack are published."""
    return f"pack-{name}"


def pack_of_role(role: str) -> str:
    """Return the pack whose versions a role says."""
    return role.removeprefix(pack_role(""))


def pack_path(name: str, version: int) -> str:
    """Return the path of a pack among the targets."""
    return f"packs/{name}/{version}.zpack"


def delta_path(name: str, before: int, after: int) -> str:
    """Return the path of a delta among the targets."""
    return f"packs/{name}/{before}-{after}.zdelta"


def pack_at(path: str) -> tuple[str, int] | None:
    """Return the name and the version of the pack at a path; None if the path is of something else."""
    match = re.fullmatch(r"packs/([A-Za-z][\w-]*)/([1-9]\d{0,17})\.zpack", path)
    return (match.group(1), int(match.group(2))) if match else None


def device_name(name: str) -> str:
    """Return the name of a device, which is part of addresses; raise ValueError if it cannot be."""
    if _DEVICE.fullmatch(name):
        return name
    raise ValueError(f"{name!r} is no name of a device: letters, digits, '.', '-' and '_', at most 64")


def device_path(device: str) -> str:
    """Return the path of the assignment of a device, beside the metadata of roles."""
    return f"devices/{device_name(device)}.json"


def read_signed(data: bytes, kind: type[_Signed]) -> Metadata[_Signed]:
    """Read signed metadata whose signatures are not checked here; raise RepositoryError if it is none."""
    try:
        metadata: Metadata[_Signed] = Metadata.from_bytes(data)
    except (DeserializationError, ValueError, RecursionError) as error:
        raise RepositoryError(f"it is no metadata: {error}") from error
    if metadata.signed.type != kind.type:
        raise RepositoryError(f"it is of the kind {metadata.signed.type}, not {kind.type}")
    return metadata


def signed_bytes(signed: _Signed, signers: Sequence[Signer], lifetime: timedelta) -> bytes:
    """Sign metadata, which lasts from now on, and return the bytes of its file."""
    signed.expires = (now() + lifetime).replace(microsecond=0)
    metadata = Metadata(signed)
    for signer in signers:
        metadata.sign(signer, append=True)
    return metadata.to_bytes(JSONSerializer(compact=True))


class MetadataFolder:
    """The signed files of a repository: `N.role.json`, and `timestamp.json`."""

    def __init__(self, path: Path) -> None:
        """Use a folder, which may not exist yet."""
        self.path = path

    def version(self, role: str) -> int:
        """Return the newest version of a role; 0 if there is none."""
        numbers = [int(p.name.split(".", 1)[0]) for p in self.path.glob(f"[0-9]*.{role}.json")]
        return max(numbers, default=0)

    def newest(self, role: str, kind: type[_Signed]) -> _Signed:
        """Return the newest version of a role, or raise if it cannot be read."""
        return self.at(role, 0 if role == Timestamp.type else self.version(role), kind)

    def at(self, role: str, version: int, kind: type[_Signed]) -> _Signed:
        """Return a version of a role, or raise if it cannot be read; there is one timestamp only."""
        name = "timestamp.json" if role == Timestamp.type else f"{version}.{role}.json"
        try:
            return read_signed((self.path / name).read_bytes(), kind).signed
        except (OSError, RepositoryError) as error:
            note = "zodiac keys init makes a repository"
            raise bad_keys(self.path, f"has no readable {name}: {error}", note) from error

    def write(self, role: str, version: int, data: bytes) -> None:
        """Write a version of a role, atomically."""
        name = "timestamp.json" if role == Timestamp.type else f"{version}.{role}.json"
        write_file(self.path / name, data)


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically and durably, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
