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
# What streams into a store have taken.
STREAMS = "_streams"
# How the names of all files of facts begin.
PARTS = "relation="
# Names that predicates get as folders: no IRI, whatever it holds, can leave the store or be too long.
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 40
_HASH_DIGITS = 16


def short_hash(words: Iterable[str]) -> str:
    """Return a short name for some words, whatever their order."""
    return sha256("\n".join(sorted(words)).encode()).hexdigest()[:_HASH_DIGITS]


def folder_name(predicate: str, arity: int, kind: str) -> str:
    """Return the name of a predicate's folder: what a person may recognise, and a hash."""
    shown = _UNSAFE.sub("-", re.split(r"[/#]", predicate.rstrip("/#"))[-1]).strip("-")[:_LONGEST]
    return f"{shown or 'relation'}-{arity}-{short_hash((f'{kind} {arity} {predicate}',))}"
