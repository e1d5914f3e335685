"""A folder of keys: `root.pem` and `packs.pem`, which stay offline, and `online.pem`, which the hub has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from securesystemslib.signer import CryptoSigner

from zodiacedge.fleet.problems import bad_keys

if TYPE_CHECKING:
    import os

ROOT, PACKS, ONLINE = "root", "packs", "online"
NAMES = (ROOT, PACKS, ONLINE)


def make_keys(folder: str | os.PathLike[str]) -> None:
    """Make all keys in a new or empty folder."""
    path = Path(folder)
    if path.exists() and any(path.iterdir()):
        raise bad_keys(path, "is not empty", "name a new folder; keys are replaced by zodiac keys rotate")
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in NAMES:
        write_key(path, name, CryptoSigner.generate_ed25519())


def write_key(folder: Path, name: str, signer: CryptoSigner) -> None:
    """Write a key, readable by its owner only."""
    path = folder / f"{name}.pem"
    path.touch(mode=0o600, exist_ok=True)
    path.chmod(0o600)
    path.write_bytes(signer.private_bytes)


def key_in(folder: str | os.PathLike[str], name: str) -> CryptoSigner:
    """Return a key of a folder, or raise if it is not there."""
    path = Path(folder) / f"{name}.pem"
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        why = error.strerror or str(error)
        raise bad_keys(path, f"cannot be read: {why}", "zodiac keys init makes a folder of keys") from error
    except ValueError as error:
        raise bad_keys(path, f"is no key: {error}", "restore it from a copy") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise bad_keys(path, "is a key of another kind", "keys are made by zodiac keys init")
    return CryptoSigner(key)


def has_key(folder: str | os.PathLike[str], name: str) -> bool:
    """Return whether a folder has a key."""
    return (Path(folder) / f"{name}.pem").is_file()
