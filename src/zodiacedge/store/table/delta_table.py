"""The Delta table of a store: partitions as Parquet files, everything else as commit metadata.

A file is named by the SHA-256 of its bytes, so damage is detected. The metadata of a commit holds rules,
prefixes, counts and a digest of the names of all files, which is checked whenever a version is loaded.
Commits of other programs are ignored; the digest detects their changes.

In a shared location, a commit directly follows the one that it builds on, or fails.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zodiacedge.engine.persistence import PartitionFile, PartitionFiles, PartitionKey, column_names
from zodiacedge.errors import StoreProblem
from zodiacedge.store.layout import DELTA_LOG
from zodiacedge.store.problems import damaged_table, unreachable, unwritable
from zodiacedge.store.table.commit_info import Commit, digest_of, digested, read_snapshot
from zodiacedge.store.table.file_changes import FileChanges
from zodiacedge.store.table.parquet_files import (
    FEW_ROWS,
    SHARED_FOLDER,
    FileSlice,
    checked,
    folder_of,
    read_partitions,
    slice_of,
    slices_of,
    write_partition,
    write_shared,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

    from zodiacedge.store.location.base import Location, Staging
    from zodiacedge.store.table.commit_info import Snapshot

_METADATA = "zodiac"
_FIRST_ARITY = 4
_PARTITIONS = ["relation", "segment"]
# More small partitions of a commit share files.
_MANY = 64
_SAFE_PATH = re.compile(r"relation=[A-Za-z0-9_-]+/segment=[A-Za-z0-9_-]+/(?P<sum>[0-9a-f]{64})\.parquet")
# In messages of Delta: errors of the operating system, of the network and of servers.
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_NETWORK_ERROR = re.compile(r"Error performing [^\n]*|error sending request[^\n]*")
# A crash of the library, raised as a class that cannot be imported.
_PANIC = "PanicException"
_COMMIT = re.compile(DELTA_LOG + r"/(?P<number>[0-9]{20})\.json")
# For how long removed files are kept, in a property of the table; a week if there is none.
_KEPT = "delta.deletedFileRetentionDuration"
_INTERVAL = re.compile(r"interval (?P<seconds>[0-9]+) seconds")
_WEEK = 7 * 24 * 3600
_CHECKPOINT = re.compile(DELTA_LOG + r"/(?P<number>[0-9]{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class BaseCommit:
    """The commit that the next one builds on: its number and files."""

    number: int = 0
    files: tuple[str, ...] = ()


class CommitConflictError(Exception):
    """Another process committed first."""


# The rows of a changed partition, its files if they are written already, or None if it is deleted.
ChangedPartition = tuple[PartitionKey, "pa.Table | PartitionFiles | None"]


class FactTable:
    """The Delta table of a store."""

    def __init__(self, location: Location) -> None:
        """Set the location; nothing is read yet."""
        self._location = location
        self._log = location.display_name(DELTA_LOG)
        # The folders of the partitions in each shared file, cached because a file never changes.
        self._folders: dict[str, frozenset[str]] = {}

    def create(self, snapshot: Snapshot) -> None:
        """Create the table, without facts."""
        from deltalake import Schema  # noqa: PLC0415 - heavy, and only stores need it
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
        from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

        try:
            create_table_with_add_actions(
                self._location.uri,
                Schema.from_arrow(_schema(_FIRST_ARITY)),
                [],
                mode="error",
                partition_by=_PARTITIONS,
                name="zodiac",
                description="A knowledge base of ZodiacEdge",
                storage_options=self._location.options,
                commit_properties=_properties(digested(snapshot, ())),
            )
        except (DeltaError, OSError) as error:
            raise self._refused("first commit", error) from error
        self._location.sync_delta_log()

    def commits(self) -> Iterator[Commit]:
        """Yield the commits of the store, the newest first."""
        files = self._location.listed(DELTA_LOG)
        matches = [match for file in files if (match := _COMMIT.fullmatch(file.name))]
        for match in reversed(matches):
            snapshot = self._snapshot(match[0])
            if snapshot is not None:
                yield Commit(int(match["number"]), snapshot)

    def _snapshot(self, name: str) -> Snapshot | None:
        path = self._location.display_name(name)
        try:
            for line in self._location.read(name).splitlines():
                if b'"commitInfo"' in line:
                    text = json.loads(line)["commitInfo"].get(_METADATA)
                    return read_snapshot(path, text) if text else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged_table(path, f"cannot be read: {error}") from error
        return None

    def added_files(self, commit: Commit) -> list[str]:
        """Return the files that a commit adds to those of the commit before it."""
        name = f"{DELTA_LOG}/{commit.number:020d}.json"
        actions = self._actions_in(name, partial(self._location.read, name))
        return [path for kind, path in actions if kind == "add"]

    def files(self, commit: Commit) -> list[str]:
        """Return the files of a commit, or raise if its digest differs."""
        try:
            paths = self._replayed(commit)
        except StoreProblem as problem:
            if not isinstance(problem.__cause__, FileNotFoundError):
                raise
            # A vacuum wrote a later checkpoint, and removed what was listed.
            paths = self._replayed(commit)
        if commit.snapshot.digest != digest_of(paths):
            # Another program may have changed the table, in ways that only Delta can read.
            paths = self._files_by_delta(commit)
        for path in paths:
            if not _SAFE_PATH.fullmatch(path):
                raise damaged_table(self._log, f"names {path!r}, which is no file of a store")
        if commit.snapshot.digest != digest_of(paths):
            version = commit.snapshot.version
            raise damaged_table(self._location, f"does not hold the files of version {version}")
        return sorted(paths)

    def _replayed(self, commit: Commit) -> set[str]:
        """Return the files that the last checkpoint and the entries of Delta's log after it leave.

        Delta itself would take 25 MB of the process for good. The digest of the commit says whether this is
        all.
        """
        listed = [file.name for file in self._location.listed(DELTA_LOG)]
        checkpoints = [match for match in map(_CHECKPOINT.fullmatch, listed) if match]
        checkpoints = [match for match in checkpoints if int(match["number"]) <= commit.number]
        first, paths = 0, set[str]()
        if checkpoints:
            first, paths = int(checkpoints[-1]["number"]) + 1, self._files_in_checkpoint(checkpoints[-1][0])
        entries = [match for match in map(_COMMIT.fullmatch, listed) if match]
        wanted = [match[0] for match in entries if first <= int(match["number"]) <= commit.number]
        for name, read in self._location.read_all(wanted):
            for kind, path in self._actions_in(name, read):
                if kind == "add":
                    paths.add(path)
                else:
                    paths.discard(path)
        return paths

    def _actions_in(self, name: str, read: Callable[[], bytes]) -> list[tuple[str, str]]:
        """Return the paths of the files that an entry of Delta's log adds or removes."""
        try:
            actions = [json.loads(line) for line in read().splitlines()]
            return [
                (kind, unquote(action[kind]["path"]))
                for action in actions
                for kind in ("remove", "add")
                if kind in action
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged_table(self._location.display_name(name), f"cannot be read: {error}") from error

    def _files_by_delta(self, commit: Commit) -> set[str]:
        """Return the files of a commit as Delta sees them."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            return set(_add_actions(self._delta(commit.number)).column("path").to_pylist())
        except (DeltaError, OSError) as error:
            raise self._unread(error) from error
        except BaseException as error:
            if type(error).__name__ != _PANIC:
                raise
            raise self._unread(error) from error

    def _files_in_checkpoint(self, name: str) -> set[str]:
        """Return the files in a checkpoint; raise if it is damaged, as Delta might crash on it."""
        try:
            table = pq.ParquetFile(pa.BufferReader(self._location.read(name))).read()
            table.validate(full=True)
            paths = pc.struct_field(table.column("add"), "path").drop_null().to_pylist()
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            path = self._location.display_name(name)
            raise damaged_table(path, f"cannot be read: {_summary(error)}") from error
        return set(map(unquote, paths))

    def partitions(self, files: Iterable[str], owners: Mapping[str, frozenset[str]]) -> StoredPartitions:
        """Return the partitions of files; `owners` maps the name of each segment to its rules."""
        return StoredPartitions(self._location, tuple(files), dict(owners))

    @property
    def writer(self) -> TableWriter:
        """A writer of files of the table."""
        return TableWriter(self._location)

    def checkpoint(self, commit: Commit) -> None:
        """Write a checkpoint, so that Delta can read a commit without the earlier ones."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            self._delta(commit.number).create_checkpoint()
        except (DeltaError, OSError) as error:
            raise self._refused("checkpoint", error) from error

    def state_retention(self, seconds: float) -> None:
        """State in the table for how long removed files are kept, unless what it states is close enough.

        Checkpoints list the files that were removed in this time, and other programs may delete only older
        ones. It is stated in powers of two, and again when the time is longer, or shorter than a quarter.
        """
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            delta = self._delta()
            text = delta.metadata().configuration.get(_KEPT, "")
            match = _INTERVAL.fullmatch(text)
            stated = int(match["seconds"]) if match else _WEEK
            if stated / 4 < seconds <= stated:
                return
            delta.alter.set_table_properties({_KEPT: f"interval {1 << int(seconds).bit_length()} seconds"})
        except (DeltaError, OSError) as error:
            raise self._refused("retention time", error) from error

    def commit(
        self, snapshot: Snapshot, before: BaseCommit, partitions: Iterable[ChangedPartition], *, full: bool
    ) -> BaseCommit:
        """Write changed partitions as one commit.

        Args:
            snapshot: The metadata of the commit, without its digest.
            before: The commit that it builds on; a later one of another process is a `CommitConflictError`.
            partitions: The changed partitions.
            full: Whether these are all partitions.
        """
        staging = self._location.staging()
        try:
            written = self._actions(before.files, partitions, staging, full=full)
            staging.sync()
            return self._committed(snapshot, before, written)
        except OSError as error:
            raise unwritable(self._location, error) from error
        finally:
            staging.discard()

    def _actions(
        self, before: Iterable[str], partitions: Iterable[ChangedPartition], staging: Staging, *, full: bool
    ) -> tuple[list[AddAction | RemoveAction], tuple[str, ...], int]:
        """Stage the files of partitions; return the actions, all files, and the largest arity."""
        from deltalake.transaction import RemoveAction  # noqa: PLC0415

        now = int(time.time() * 1000)
        files = FileChanges(before)
        small: dict[str, FileSlice] = {}
        stale: set[str] = set()
        arity = 0
        for key, rows in partitions:
            folder = folder_of(key)
            arity = max(arity, key.arity)
            beside = isinstance(rows, PartitionFiles) and rows.beside
            if not beside:
                stale.add(folder)
            if rows is None or isinstance(rows, PartitionFiles):
                files.replace(folder, rows.files if rows else (), beside=beside)
            elif len(rows) <= FEW_ROWS:
                small[folder] = slice_of(key, rows)
            else:
                files.replace(folder, [write_partition(self._location, slice_of(key, rows), staging)])
        self._write_small(small, stale, files, staging, full=full)
        actions: list[AddAction | RemoveAction] = [
            _add_action(folder, file, now) for folder, file in files.inserted
        ]
        actions += [RemoveAction(path, data_change=True, deletion_timestamp=now) for path in files.deleted]
        return actions, files.all, arity

    def _write_small(
        self,
        small: Mapping[str, FileSlice],
        stale: set[str],
        files: FileChanges,
        staging: Staging,
        *,
        full: bool,
    ) -> None:
        """Stage small partitions: in shared files if they are many or were in a shared file, else alone."""
        shared_files = {name: self._folders_in(name) for name in files.of(SHARED_FOLDER)}
        shared = set(small)
        if len(small) <= _MANY:
            shared &= frozenset[str]().union(*shared_files.values())
        for folder in small.keys() - shared:
            files.replace(folder, [write_partition(self._location, small[folder], staging)])
        for folder in shared:
            files.replace(folder, ())
        if full:
            files.keep_only(lambda folder: folder in stale or folder == SHARED_FOLDER)
        rewritten = [name for name, folders in shared_files.items() if full or folders & stale]
        if not rewritten and not shared:
            return
        old = (slice_ for name in rewritten for slice_ in self._slices(name))
        slices = [slice_ for slice_ in old if slice_.folder not in stale and not full]
        slices += [small[folder] for folder in sorted(shared)]
        new = []
        for file, folders in write_shared(self._location, slices, staging):
            self._folders[file.path] = folders
            new.append(file)
        files.replace(SHARED_FOLDER, new, kept=[name for name in shared_files if name not in rewritten])

    def _folders_in(self, name: str) -> frozenset[str]:
        """Return the folders of the partitions in a shared file."""
        if name not in self._folders:
            self._folders[name] = frozenset(slice_.folder for slice_ in self._slices(name))
        return self._folders[name]

    def _slices(self, name: str) -> list[FileSlice]:
        path = self._location.display_name(name)
        return slices_of(path, checked(path, name, partial(self._location.read, name)))

    def _committed(
        self,
        snapshot: Snapshot,
        before: BaseCommit,
        written: tuple[list[AddAction | RemoveAction], tuple[str, ...], int],
    ) -> BaseCommit:
        from deltalake import Field  # noqa: PLC0415
        from deltalake.exceptions import CommitFailedError, DeltaError  # noqa: PLC0415
        from deltalake.schema import PrimitiveType  # noqa: PLC0415

        actions, files, arity = written
        try:
            delta = self._delta()
            self._check_last(before)
            existing = {field.name for field in delta.schema().fields}
            missing = [name for name in column_names(arity) if name not in existing]
            if missing:
                delta.alter.add_columns([Field(name, PrimitiveType("string")) for name in missing])
                delta = self._delta()
                self._check_last(before)
            delta.create_write_transaction(
                self._repaired(delta, before, actions, files),
                mode="append",
                schema=delta.schema(),
                partition_by=_PARTITIONS,
                commit_properties=_properties(digested(snapshot, files), exclusive=not self._location.shared),
                post_commithook_properties=_hooks(),
            )
        except (DeltaError, OSError) as error:
            # The commit may have succeeded, and only Delta's checkpoint after it have failed.
            if self._number(snapshot, files) is None:
                if self._location.shared and isinstance(error, CommitFailedError):
                    raise CommitConflictError from error
                raise self._refused("commit", error) from error
        # If the commit does not reach the disk, the log still has its changes.
        with suppress(OSError):
            self._location.sync_delta_log()
        number = self._number(snapshot, files)
        if number is None:
            raise damaged_table(self._log, "has lost a commit that was just made")
        return BaseCommit(number, files)

    def _repaired(
        self,
        delta: DeltaTable,
        before: BaseCommit,
        actions: list[AddAction | RemoveAction],
        files: Iterable[str],
    ) -> list[AddAction | RemoveAction]:
        """Return actions after which the table has exactly `files`, even if other programs changed it."""
        from deltalake.transaction import AddAction, RemoveAction  # noqa: PLC0415

        existing = set(_add_actions(delta).column("path").to_pylist())
        if existing == set(before.files):
            return actions
        now = int(time.time() * 1000)
        repaired = [action for action in actions if isinstance(action, AddAction) or action.path in existing]
        removed = {action.path for action in repaired if isinstance(action, RemoveAction)}
        foreign = sorted(existing - {*files, *removed})
        repaired += [RemoveAction(path, data_change=True, deletion_timestamp=now) for path in foreign]
        lost = set(files) - existing - {action.path for action in repaired if isinstance(action, AddAction)}
        for row in _add_actions(self._delta(before.number)).to_pylist():
            if row["path"] in lost:
                path = str(row["path"])
                file = PartitionFile(path, int(row["size_bytes"]), int(row["num_records"]))
                repaired.append(_add_action(path.rpartition("/")[0], file, now))
        return repaired

    def _number(self, snapshot: Snapshot, files: Iterable[str]) -> int | None:
        """Return the number of a commit, or None if it was not made."""
        wanted = snapshot.version, digest_of(files)
        for commit in self.commits():
            if (commit.snapshot.version, commit.snapshot.digest) == wanted:
                return commit.number
            if commit.snapshot.version < snapshot.version:
                break
        return None

    def _check_last(self, before: BaseCommit) -> None:
        """Raise if the store has a later commit; a lock excludes that."""
        if self._location.shared:
            newest = next(self.commits(), None)
            if newest is None or newest.number != before.number:
                raise CommitConflictError

    def _delta(self, number: int | None = None) -> DeltaTable:
        from deltalake import DeltaTable  # noqa: PLC0415

        return DeltaTable(self._location.uri, version=number, storage_options=self._location.options)

    def _unread(self, error: BaseException) -> StoreProblem:
        match = _NETWORK_ERROR.search(str(error)) if self._location.shared else None
        if match:
            return unreachable(self._location, match[0])
        return damaged_table(self._log, f"cannot be read: {_summary(error)}")

    def _refused(self, what: str, error: Exception) -> StoreProblem:
        """Return the problem of a write that Delta refused."""
        number = _OS_ERROR.search(str(error))
        if number:
            return unwritable(self._log, OSError(int(number[1]), os.strerror(int(number[1]))))
        match = _NETWORK_ERROR.search(str(error)) if self._location.shared else None
        if match:
            return unreachable(self._location, match[0])
        return damaged_table(self._log, f"does not take a {what}: {_summary(error)}")


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Writes partitions as Parquet files of the table: in this process, or in a task."""

    location: Location

    def __call__(self, key: PartitionKey, table: pa.Table) -> PartitionFile:
        """Write a file, named by the SHA-256 of its bytes; it is durable when this returns."""
        staging = self.location.staging()
        file = write_partition(self.location, slice_of(key, table), staging)
        staging.sync()
        return file


@dataclass(frozen=True, slots=True)
class StoredPartitions:
    """Partitions in files of the table, each checked when it is read: in this process, or in a task."""

    location: Location
    files: tuple[str, ...]
    owners: Mapping[str, frozenset[str]]

    def sizes(self) -> list[int]:
        """Return the bytes of each file; a missing file is reported when it is read."""
        sizes = {file.name: file.bytes for file in self.location.listed()}
        return [sizes.get(name, 0) for name in self.files]

    def chosen(self, files: Sequence[str]) -> StoredPartitions:
        """Return the partitions in a selection of the files."""
        return StoredPartitions(self.location, tuple(files), self.owners)

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the partitions file by file."""
        for name, read in self.location.read_all(self.files):
            path = self.location.display_name(name)
            yield from read_partitions(path, name, checked(path, name, read), self.owners)


def _summary(error: BaseException) -> str:
    # The first line: Delta adds a stack trace.
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _add_actions(delta: DeltaTable) -> pa.Table:
    return pa.table(delta.get_add_actions(flatten=True))


def _add_action(folder: str, file: PartitionFile, now: int) -> AddAction:
    from deltalake.transaction import AddAction  # noqa: PLC0415

    relation, segment = (name.split("=", 1)[1] for name in folder.split("/"))
    statistics = json.dumps({"numRecords": file.rows})
    values = {"relation": relation, "segment": segment}
    return AddAction(file.path, file.bytes, values, now, True, statistics)  # noqa: FBT003


def _schema(arity: int) -> pa.Schema:
    texts = ["relation", "segment", "kind", "predicate"]
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("arity", pa.int32()),
            *((name, pa.string()) for name in column_names(arity)),
        ]
    )


def _properties(document: Mapping[str, object], *, exclusive: bool = True) -> Any:  # noqa: ANN401 - a type of a library loaded late
    from deltalake import CommitProperties  # noqa: PLC0415

    metadata = {_METADATA: json.dumps(document, ensure_ascii=False)}
    # A retry would commit after the commit of another process.
    return CommitProperties(custom_metadata=metadata, max_commit_retries=None if exclusive else 0)


def _hooks() -> Any:  # noqa: ANN401 - as above
    from deltalake import PostCommitHookProperties  # noqa: PLC0415

    # `versions.vacuum` removes commits, because it knows which files a version needs.
    return PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
