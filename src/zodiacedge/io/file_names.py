"""File names for predicates: percent-encoded, safe on any system, never outside their folder."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.language.ast import Predicate

_MAX_LENGTH = 120
_UNSAFE = re.compile(rb"[^A-Za-z0-9_.-]")
# Device names of Windows, with any extension.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_CUT_ESCAPE = re.compile(r"%[0-9A-F]?$")


def file_stem(name: str) -> str:
    """Return a name's file name without extension; `urllib.parse.unquote` is its inverse.

    A name that is too long for a file system ends in `~` and a hash; `predicates.json` has the full name.
    """
    if not name:
        return "%"
    stem = _UNSAFE.sub(_encoded, name.encode("utf-8", "backslashreplace")).decode("ascii")
    # A leading dot hides a file, and loads of folders skip files with a leading _.
    if stem[0] in "._" or _DEVICE.fullmatch(stem):
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    if len(stem) > _MAX_LENGTH:
        stem = f"{_CUT_ESCAPE.sub('', stem[: _MAX_LENGTH - 17])}~{_hash(name)}"
    return stem


def file_names(predicates: Iterable[Predicate], extension: str) -> dict[Predicate, str]:
    """Return a unique file name for each predicate, even if case is ignored."""
    names: dict[Predicate, str] = {}
    taken: set[str] = set()
    for predicate in predicates:
        stem = file_stem(predicate.name)
        if stem.casefold() in taken:
            stem = f"{stem[:_MAX_LENGTH]}~{_hash(f'{predicate.name}/{predicate.arity}')}"
        taken.add(stem.casefold())
        names[predicate] = f"{stem}.{extension}"
    return names


def _encoded(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match.group()[0]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
