"""The names of a store's files, and the version of the format."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.store.problems import newer_format, no_store, not_a_store, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FORMAT = 1
MARKER = "_zodiac.json"
LOCK = "_lock"
LOG_FOLDER = "_wal"
DELTA_LOG = "_delta_log"
# Names that predicates get as folders: no IRI, whatever it holds, can leave the store or be too long.
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 40
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a store's files are."""

    root: Path

    @property
    def marker(self) -> Path:
        """The file that makes a folder a store."""
        return self.root / MARKER

    @property
    def lock(self) -> Path:
        """The file that the writer holds."""
        return self.root / LOCK

    @property
    def log(self) -> Path:
        """The folder of the write-ahead log."""
        return self.root / LOG_FOLDER

    @property
    def delta_log(self) -> Path:
        """Delta's own log."""
        return self.root / DELTA_LOG

    def check(self) -> None:
        """Raise unless there is a store of a format that we know."""
        if not self.root.is_dir():
            raise no_store(self.root)
        try:
            document = json.loads(self.marker.read_bytes())
            made = document["format"]
        except FileNotFoundError as error:
            raise not_a_store(self.root, f"it has no {MARKER}") from error
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise not_a_store(self.root, f"{MARKER} cannot be read") from error
        if not isinstance(made, int) or made > FORMAT:
            raise newer_format(self.root, made, FORMAT)

    def mark(self) -> None:
        """Make the folder a store; the last step of making one."""
        try:
            write_whole(self.marker, json.dumps({"format": FORMAT}).encode() + b"\n")
        except OSError as error:
            raise unwritable(self.root, error) from error


def short_hash(words: Iterable[str]) -> str:
    """Return a short name for some words, whatever their order."""
    return sha256("\n".join(sorted(words)).encode()).hexdigest()[:_HASH_DIGITS]


def folder_name(predicate: str, arity: int, kind: str) -> str:
    """Return the name of a predicate's folder: what a person may recognise, and a hash."""
    shown = _UNSAFE.sub("-", re.split(r"[/#]", predicate.rstrip("/#"))[-1]).strip("-")[:_LONGEST]
    return f"{shown or 'relation'}-{arity}-{short_hash((f'{kind} {arity} {predicate}',))}"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file such that it is there whole, and on disk, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
