"""How a hub knows a device: by a code that enrols it once, then by the key of the device.

The key never leaves the device, and a code does not travel: the device proves that it has it, for its name
and its key. What a device sends is signed and numbered, so that nobody else sends it, and nobody sends it
again.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

if TYPE_CHECKING:
    from pathlib import Path

_DIGITS = 20
_CODE = re.compile(rf"[0-9a-f]{{32}}-[0-9a-f]{{{_DIGITS}}}")


def make_code(root: bytes) -> str:
    """Return a new code for one device, which also says what root the device is to trust."""
    return f"{secrets.token_hex(16)}-{root_mark(root)}"


def is_code(text: str) -> bool:
    """Return whether a text is a code, of whatever device."""
    return _CODE.fullmatch(text) is not None


def root_mark(root: bytes) -> str:
    """Return the part of a code that says what root to trust."""
    return sha256(root).hexdigest()[:_DIGITS]


def hashed(code: str) -> str:
    """Return what a hub keeps of a code."""
    return sha256(code.encode()).hexdigest()


def proof(code_hash: str, name: str, key: str) -> str:
    """Return the proof that somebody has a code, for the name and the key of a device."""
    return hmac.new(bytes.fromhex(code_hash), f"{name}\n{key}".encode(), sha256).hexdigest()


class DeviceKey:
    """The key of a device, in a file that only its owner reads."""

    def __init__(self, path: Path) -> None:
        """Load the key, or make it."""
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.new")
            temporary.touch(mode=0o600)
            temporary.write_bytes(Ed25519PrivateKey.generate().private_bytes_raw())
            temporary.replace(path)
        self._key = Ed25519PrivateKey.from_private_bytes(path.read_bytes())

    @property
    def public(self) -> str:
        """The public part, in hexadecimal digits."""
        return self._key.public_key().public_bytes_raw().hex()

    @property
    def mark(self) -> str:
        """A short mark of the key, by which others recognise the device."""
        return sha256(self.public.encode()).hexdigest()[:_DIGITS]

    def sign(self, data: bytes) -> str:
        """Sign some bytes; the signature is in Base64, which is shorter than digits."""
        return b64encode(self._key.sign(data)).decode()


def is_signed(key: str, data: bytes, signature: str) -> bool:
    """Return whether the key of a device signed some bytes."""
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(b64decode(signature, validate=True), data)
    except (InvalidSignature, ValueError):
        return False
    return True
