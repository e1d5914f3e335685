"""The names of a store's files, and the version of the format."""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.store.problems import newer_format, no_store, not_a_store, unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
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
# So many files are worth another thread that waits for the disk; there are at most so many.
_FEW = 4
_AT_ONCE = 16


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

    def logged(self) -> frozenset[str]:
        """Return the names in both logs: they tell whether somebody was at work."""
        return frozenset(path.name for folder in (self.log, self.delta_log) for path in folder.glob("*"))

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
    writing = WholeFiles(path.parent)
    writing.add(path, data)
    writing.settle()


class WholeFiles:
    """Files that are there whole, and on disk, or not at all; the disk is asked for all of them at once."""

    def __init__(self, root: Path) -> None:
        """Name the folder that they are in, or in a folder of."""
        self._root = root
        self._beside: dict[Path, Path] = {}

    def add(self, path: Path, data: bytes) -> None:
        """Write a file beside its place, not on disk yet; its folders are made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.new")
        self._beside[path] = beside
        try:
            beside.write_bytes(data)
        except BaseException:
            self.drop()
            raise

    def settle(self) -> None:
        """Put all files in their places, when they are on disk."""
        folders = {folder for path in self._beside for folder in path.parents if self._within(folder)}
        try:
            _together(_sync_file, self._beside.values())
            for path, beside in self._beside.items():
                beside.replace(path)
        except BaseException:
            self.drop()
            raise
        self._beside = {}
        _together(sync_folder, folders)

    def drop(self) -> None:
        """Leave nothing of what is not in its place yet."""
        for beside in self._beside.values():
            beside.unlink(missing_ok=True)
        self._beside = {}

    def _within(self, folder: Path) -> bool:
        return folder == self._root or self._root in folder.parents


def _together(call: Callable[[Path], None], paths: Collection[Path]) -> None:
    """Call something that waits for the disk for many paths: a disk has one trip for several."""
    waiting = iter(paths)
    problems: list[OSError] = []
    taking = threading.Lock()

    def work() -> None:
        while not problems:
            with taking:
                path = next(waiting, None)
            if path is None:
                return
            try:
                call(path)
            except OSError as error:
                problems.append(error)

    # Plain threads: pools take no work once the program has begun to end, and a fold may be at work then.
    helpers = [threading.Thread(target=work) for _ in range(min(_AT_ONCE, len(paths) // _FEW))]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if problems:
        raise problems[0]


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
