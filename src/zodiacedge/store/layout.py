"""File names of a store, the format version, and what a listing says of a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT = 1
MARKER = "_zodiac.json"
LOCK = "_lock"
# How long versions are kept.
RETENTION = "_retention.json"
LOG_FOLDER = "_wal"
DELTA_LOG = "_delta_log"
# The checkpoints of streams into the store.
STREAMS = "_streams"
RELATION_PREFIX = "relation="
# In the folder names of predicates, so that no IRI can escape from the store.
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 40
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The name and bytes of a file, and its time of writing in seconds by the clock of the location."""

    name: str
    bytes: int
    moment: float


def short_hash(words: Iterable[str]) -> str:
    """Hash words, independently of their order."""
    return sha256("\n".join(sorted(words)).encode()).hexdigest()[:_HASH_DIGITS]


def folder_name(predicate: str, arity: int, kind: str) -> str:
    """Return the folder name of a predicate: a readable prefix and a hash."""
    readable = _UNSAFE.sub("-", re.split(r"[/#]", predicate.rstrip("/#"))[-1]).strip("-")[:_LONGEST]
    return f"{readable or 'relation'}-{arity}-{short_hash((f'{kind} {arity} {predicate}',))}"
