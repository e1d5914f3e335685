"""The names of a store's files, and the version of the format."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT = 1
MARKER = "_zodiac.json"
LOCK = "_lock"
LOG_FOLDER = "_wal"
DELTA_LOG = "_delta_log"
# The progress of streams into the store.
STREAMS = "_streams"
# The files of facts begin with this.
RELATION_PREFIX = "relation="
# Names of folders of predicates: no IRI can lead out of the store or be too long.
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 40
_HASH_DIGITS = 16


def short_hash(words: Iterable[str]) -> str:
    """Return a short hash of words, whatever their order."""
    return sha256("\n".join(sorted(words)).encode()).hexdigest()[:_HASH_DIGITS]


def folder_name(predicate: str, arity: int, kind: str) -> str:
    """Return the name of a predicate's folder: a readable part, and a hash."""
    readable = _UNSAFE.sub("-", re.split(r"[/#]", predicate.rstrip("/#"))[-1]).strip("-")[:_LONGEST]
    return f"{readable or 'relation'}-{arity}-{short_hash((f'{kind} {arity} {predicate}',))}"
