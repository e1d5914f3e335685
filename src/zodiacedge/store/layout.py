"""The names of a store's files, and the version of the format."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.store.problems import newer_format, no_store, not_a_store, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.store.place import Place

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


def logged(place: Place) -> frozenset[str]:
    """Return the names in both logs: they tell whether somebody was at work."""
    return frozenset(one.name for folder in (LOG_FOLDER, DELTA_LOG) for one in place.listed(folder))


def check(place: Place) -> None:
    """Raise unless there is a store of a format that we know, with no file that leads out of it."""
    try:
        place.refuse_links()
        document = json.loads(place.read(MARKER))
        made = document["format"]
    except (FileNotFoundError, NotADirectoryError) as error:
        if not place.there():
            raise no_store(place) from error
        raise not_a_store(place, f"it has no {MARKER}") from error
    except OSError as error:
        raise unreadable(place, error) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise not_a_store(place, f"{MARKER} cannot be read") from error
    if not isinstance(made, int) or made > FORMAT:
        raise newer_format(place, made, FORMAT)


def marker() -> bytes:
    """Return what makes a place a store: the last file that is written when one is made."""
    return json.dumps({"format": FORMAT}).encode() + b"\n"


def short_hash(words: Iterable[str]) -> str:
    """Return a short name for some words, whatever their order."""
    return sha256("\n".join(sorted(words)).encode()).hexdigest()[:_HASH_DIGITS]


def folder_name(predicate: str, arity: int, kind: str) -> str:
    """Return the name of a predicate's folder: what a person may recognise, and a hash."""
    shown = _UNSAFE.sub("-", re.split(r"[/#]", predicate.rstrip("/#"))[-1]).strip("-")[:_LONGEST]
    return f"{shown or 'relation'}-{arity}-{short_hash((f'{kind} {arity} {predicate}',))}"
