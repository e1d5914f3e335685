"""File names for predicates: percent-encoded, safe on any system, never outside their folder."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.language.ast import Predicate

_LONGEST = 120
_UNSAFE = re.compile(rb"[^A-Za-z0-9_.-]")
# Names that Windows keeps for devices, whatever the extension.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_CUT_ESCAPE = re.compile(r"%[0-9A-F]?$")


def file_stem(name: str) -> str:
    """Return a name's file name without extension: what `urllib.parse.unquote` turns back.

    A name too long for a file system ends in `~` and a hash; `predicates.json` says what it was.
    """
    if not name:
        return "%"
    stem = _UNSAFE.sub(_encoded, name.encode("utf-8", "backslashreplace")).decode("ascii")
    # A leading dot hides a file, a leading _ marks one that loads of folders pass over.
    if stem[0] in "._" or _DEVICE.fullmatch(stem):
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    if len(stem) > _LONGEST:
        stem = f"{_CUT_ESCAPE.sub('', stem[: _LONGEST - 17])}~{_hash(name)}"
    return stem


def file_names(predicates: Iterable[Predicate], extension: str) -> dict[Predicate, str]:
    """Return a file name for each predicate, no two the same even where case does not count."""
    found: dict[Predicate, str] = {}
    taken: set[str] = set()
    for predicate in predicates:
        stem = file_stem(predicate.name)
        if stem.casefold() in taken:
            stem = f"{stem[:_LONGEST]}~{_hash(f'{predicate.name}/{predicate.arity}')}"
        taken.add(stem.casefold())
        found[predicate] = f"{stem}.{extension}"
    return found


def _encoded(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found.group()[0]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
