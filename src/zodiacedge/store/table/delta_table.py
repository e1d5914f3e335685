"""The Delta table of a store: parts as Parquet files, and commits that hold everything else.

A file is named by the SHA-256 of its bytes, so whatever is read is what was written. A commit's metadata
holds rules, prefixes, counts and a digest over the names of all files; the digest is checked whenever a
version is loaded. Commits of other programs are passed over, and what they did is found by the digest.

Where several may write, a commit is made behind the one that it builds on or not at all.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from zodiacedge.engine.persistence import PartitionFile, PartitionFiles, PartitionKey, column_names
from zodiacedge.store.layout import DELTA_LOG
from zodiacedge.store.problems import damaged_table, unreachable, unwritable
from zodiacedge.store.table.commit_info import Commit, digest_of, digested, read_snapshot
from zodiacedge.store.table.file_changes import FileChanges
from zodiacedge.store.table.parquet_files import (
    FEW_ROWS,
    TOGETHER,
    FileSlice,
    checked,
    piece_of,
    pieces_of,
    place_of,
    read_parts,
    write_alone,
    write_together,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

    from zodiacedge.errors import StoreProblem
    from zodiacedge.store.location.base import Location, Staging
    from zodiacedge.store.table.commit_info import Snapshot

_METADATA = "zodiac"
_FIRST_ARITY = 4
_PARTITIONS = ["relation", "segment"]
# More small parts than this, written at once, go into one file.
_MANY = 64
_SAFE_PATH = re.compile(r"relation=[A-Za-z0-9_-]+/segment=[A-Za-z0-9_-]+/(?P<sum>[0-9a-f]{64})\.parquet")
# How Delta tells of what the system refused.
_SYSTEM = re.compile(r"\(os error (\d+)\)")
# How it tells of a network, or of what is at its other end.
_REMOTE = re.compile(r"Error performing [^\n]*|error sending request[^\n]*")
# What its library raises, a class of no module, where it did not expect what it read.
_BROKEN = "PanicException"
_COMMIT = re.compile(DELTA_LOG + r"/(?P<number>[0-9]{20})\.json")
_CHECKPOINT = re.compile(DELTA_LOG + r"/(?P<number>[0-9]{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class Built:
    """What the next commit builds on: the number of the last one of ours, and its files."""

    number: int = 0
    files: tuple[str, ...] = ()


class BehindError(Exception):
    """Somebody else made a commit meanwhile."""


# A part that was written anew, or is to be, or is gone.
Renewed = tuple[PartitionKey, "pa.Table | PartitionFiles | None"]


class FactTable:
    """The Delta table of a store."""

    def __init__(self, location: Location) -> None:
        """Name the place; nothing is read yet."""
        self._place = location
        self._log = location.display_name(DELTA_LOG)
        # The parts of files that many are in, as far as they were looked at: a file never changes.
        self._places: dict[str, frozenset[str]] = {}

    def create(self, snapshot: Snapshot) -> None:
        """Make the table, without facts."""
        from deltalake import Schema  # noqa: PLC0415 - heavy, and only stores need it
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
        from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

        try:
            create_table_with_add_actions(
                self._place.uri,
                Schema.from_arrow(_schema(_FIRST_ARITY)),
                [],
                mode="error",
                partition_by=_PARTITIONS,
                name="zodiac",
                description="A knowledge base of ZodiacEdge",
                storage_options=_options(self._place),
                commit_properties=_properties(digested(snapshot, ())),
            )
        except (DeltaError, OSError) as error:
            raise self._refused("first commit", error) from error
        self._place.settle_log(DELTA_LOG)

    def commits(self) -> Iterator[Commit]:
        """Yield our commits, the newest first."""
        found = [match for one in self._place.listed(DELTA_LOG) if (match := _COMMIT.fullmatch(one.name))]
        for match in reversed(found):
            snapshot = self._snapshot(match[0])
            if snapshot is not None:
                yield Commit(int(match["number"]), snapshot)

    def _snapshot(self, name: str) -> Snapshot | None:
        path = self._place.display_name(name)
        try:
            for line in self._place.read(name).decode().splitlines():
                if '"commitInfo"' in line:
                    said = json.loads(line)["commitInfo"].get(_METADATA)
                    return read_snapshot(path, said) if said else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged_table(path, f"cannot be read: {error}") from error
        return None

    def files(self, commit: Commit) -> list[str]:
        """Return the files that the facts of a commit are in, if they are what its digest says."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        self._look_at_checkpoint(commit.number)
        try:
            table = self._delta(commit.number)
            found = sorted(_told(table).column("path").to_pylist())
        except (DeltaError, OSError) as error:
            raise self._unread(error) from error
        except BaseException as error:
            if type(error).__name__ != _BROKEN:
                raise
            raise self._unread(error) from error
        for path in found:
            if not _SAFE_PATH.fullmatch(path):
                raise damaged_table(self._log, f"names {path!r}, which is no file of a store")
        if commit.snapshot.digest != digest_of(found):
            version = commit.snapshot.version
            raise damaged_table(self._place, f"does not hold the files of version {version}")
        return found

    def _look_at_checkpoint(self, number: int) -> None:
        """Raise if what Delta starts from up to a commit is damaged: it may not say so, but break."""
        there = (_CHECKPOINT.fullmatch(one.name) for one in self._place.listed(DELTA_LOG))
        names = [match[0] for match in there if match and int(match["number"]) <= number]
        if not names:
            return
        try:
            data = self._place.read(names[-1])
            pq.ParquetFile(pa.BufferReader(data)).read().validate(full=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged_table(
                self._place.display_name(names[-1]), f"cannot be read: {_gist(error)}"
            ) from error

    def parts(self, files: Iterable[str], owners: Mapping[str, frozenset[str]]) -> StoredParts:
        """Return the parts of some files; `owners` are the rules of each segment by its name."""
        return StoredParts(self._place, tuple(files), dict(owners))

    @property
    def writer(self) -> TableWriter:
        """What writes parts as files that a commit can name."""
        return TableWriter(self._place)

    def checkpoint(self, commit: Commit) -> None:
        """Let Delta start from a commit, without those before."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            self._delta(commit.number).create_checkpoint()
        except (DeltaError, OSError) as error:
            raise self._refused("checkpoint", error) from error

    def commit(self, snapshot: Snapshot, before: Built, parts: Iterable[Renewed], *, whole: bool) -> Built:
        """Write parts, each in place of what it was before, none where it is gone, as one commit.

        Args:
            snapshot: What the commit says; its digest is found here.
            before: What it builds on. `BehindError` is raised if somebody else built on that.
            parts: The parts that changed.
            whole: Whether there are no parts but these.
        """
        writing = self._place.staging()
        try:
            actions, files, widest = self._actions(before.files, parts, writing, whole=whole)
            writing.settle()
            return self._committed(snapshot, before, (actions, files, widest))
        except OSError as error:
            raise unwritable(self._place, error) from error
        finally:
            writing.drop()

    def _actions(
        self, before: Iterable[str], parts: Iterable[Renewed], writing: Staging, *, whole: bool
    ) -> tuple[list[AddAction | RemoveAction], tuple[str, ...], int]:
        """Write the files of parts; return what comes and goes, all files then, and the most arguments."""
        from deltalake.transaction import RemoveAction  # noqa: PLC0415

        now = int(time.time() * 1000)
        files = FileChanges(before)
        small: dict[str, FileSlice] = {}
        stale: set[str] = set()
        widest = 0
        for key, given in parts:
            location = place_of(key)
            widest = max(widest, key.arity)
            beside = isinstance(given, PartitionFiles) and given.beside
            if not beside:
                stale.add(location)
            if given is None or isinstance(given, PartitionFiles):
                files.renew(location, given.files if given else (), beside=beside)
            elif len(given) <= FEW_ROWS:
                small[location] = piece_of(key, given)
            else:
                files.renew(location, [write_alone(self._place, piece_of(key, given), writing)])
        self._write_small(small, stale, files, writing, whole=whole)
        actions: list[AddAction | RemoveAction] = [
            _added(location, one, now) for location, one in files.inserted
        ]
        actions += [RemoveAction(path, data_change=True, deletion_timestamp=now) for path in files.deleted]
        return actions, files.all, widest

    def _write_small(
        self,
        small: Mapping[str, FileSlice],
        stale: set[str],
        files: FileChanges,
        writing: Staging,
        *,
        whole: bool,
    ) -> None:
        """Write small parts: into one file if they are many, or were in such a file, and alone otherwise."""
        there = {name: self._parts_in(name) for name in files.of(TOGETHER)}
        together = set(small)
        if len(small) <= _MANY:
            together &= frozenset[str]().union(*there.values())
        for location in small.keys() - together:
            files.renew(location, [write_alone(self._place, small[location], writing)])
        for location in together:
            files.renew(location, ())
        if whole:
            files.leave(lambda location: location in stale or location == TOGETHER)
        opened = [name for name, places in there.items() if whole or places & stale]
        if not opened and not together:
            return
        old = (one for name in opened for one in self._pieces(name))
        pieces = [one for one in old if one.location not in stale and not whole]
        pieces += [small[location] for location in sorted(together)]
        new = []
        for file, places in write_together(self._place, pieces, writing):
            self._places[file.path] = places
            new.append(file)
        files.renew(TOGETHER, new, kept=[name for name in there if name not in opened])

    def _parts_in(self, name: str) -> frozenset[str]:
        """Return the folders that the parts of a file would have alone."""
        if name not in self._places:
            self._places[name] = frozenset(one.location for one in self._pieces(name))
        return self._places[name]

    def _pieces(self, name: str) -> list[FileSlice]:
        path = self._place.display_name(name)
        try:
            data = self._place.read(name)
        except OSError as error:
            raise damaged_table(path, f"cannot be read: {error.strerror or error}") from error
        return pieces_of(path, checked(path, name, data))

    def _committed(
        self,
        snapshot: Snapshot,
        before: Built,
        found: tuple[list[AddAction | RemoveAction], tuple[str, ...], int],
    ) -> Built:
        from deltalake import Field  # noqa: PLC0415
        from deltalake.exceptions import CommitFailedError, DeltaError  # noqa: PLC0415
        from deltalake.schema import PrimitiveType  # noqa: PLC0415

        actions, files, widest = found
        try:
            delta = self._delta()
            self._check_last(before)
            there = {field.name for field in delta.schema().fields}
            missing = [name for name in column_names(widest) if name not in there]
            if missing:
                delta.alter.add_columns([Field(name, PrimitiveType("string")) for name in missing])
                delta = self._delta()
                self._check_last(before)
            delta.create_write_transaction(
                self._undoing(delta, before, actions, files),
                mode="append",
                schema=delta.schema(),
                partition_by=_PARTITIONS,
                commit_properties=_properties(digested(snapshot, files), alone=not self._place.shared),
                post_commithook_properties=_hooks(),
            )
        except (DeltaError, OSError) as error:
            # What Delta does behind a commit, a checkpoint now and then, may fail when the commit is there.
            if self._number(snapshot, files) is None:
                if self._place.shared and isinstance(error, CommitFailedError):
                    raise BehindError from error
                raise self._refused("commit", error) from error
        # Until it is on disk for sure, the log has all of it.
        with suppress(OSError):
            self._place.settle_log(DELTA_LOG)
        number = self._number(snapshot, files)
        if number is None:
            raise damaged_table(self._log, "has lost a commit that was just made")
        return Built(number, files)

    def _undoing(
        self,
        delta: DeltaTable,
        before: Built,
        actions: list[AddAction | RemoveAction],
        files: Iterable[str],
    ) -> list[AddAction | RemoveAction]:
        """Return what to do so that the table has some files and no others, whatever others did to it."""
        from deltalake.transaction import AddAction, RemoveAction  # noqa: PLC0415

        there = set(_told(delta).column("path").to_pylist())
        if there == set(before.files):
            return actions
        now = int(time.time() * 1000)
        mended = [one for one in actions if isinstance(one, AddAction) or one.path in there]
        going = {one.path for one in mended if isinstance(one, RemoveAction)}
        foreign = sorted(there - {*files, *going})
        mended += [RemoveAction(path, data_change=True, deletion_timestamp=now) for path in foreign]
        lost = set(files) - there - {one.path for one in mended if isinstance(one, AddAction)}
        for row in _told(self._delta(before.number)).to_pylist():
            if row["path"] in lost:
                path = str(row["path"])
                file = PartitionFile(path, int(row["size_bytes"]), int(row["num_records"]))
                mended.append(_added(path.rpartition("/")[0], file, now))
        return mended

    def _number(self, snapshot: Snapshot, files: Iterable[str]) -> int | None:
        """Return the number of a commit if it is there; others may have been made behind it."""
        said = snapshot.version, digest_of(files)
        for one in self.commits():
            if (one.snapshot.version, one.snapshot.digest) == said:
                return one.number
            if one.snapshot.version < snapshot.version:
                break
        return None

    def _check_last(self, before: Built) -> None:
        """Raise if a commit of ours is behind the one that we know; where there is a lock there is none."""
        if self._place.shared:
            newest = next(self.commits(), None)
            if newest is None or newest.number != before.number:
                raise BehindError

    def _delta(self, number: int | None = None) -> DeltaTable:
        from deltalake import DeltaTable  # noqa: PLC0415

        return DeltaTable(self._place.uri, version=number, storage_options=_options(self._place))

    def _unread(self, error: BaseException) -> StoreProblem:
        said = _REMOTE.search(str(error)) if self._place.shared else None
        if said:
            return unreachable(self._place, said[0])
        return damaged_table(self._log, f"cannot be read: {_gist(error)}")

    def _refused(self, what: str, error: Exception) -> StoreProblem:
        """Return the problem of something that Delta could not write: the system's, or the table's."""
        number = _SYSTEM.search(str(error))
        if number:
            return unwritable(self._log, OSError(int(number[1]), os.strerror(int(number[1]))))
        said = _REMOTE.search(str(error)) if self._place.shared else None
        if said:
            return unreachable(self._place, said[0])
        return damaged_table(self._log, f"does not take a {what}: {_gist(error)}")


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Writes parts as Parquet files of the table: in this process, or in a task."""

    location: Location

    def __call__(self, key: PartitionKey, table: pa.Table) -> PartitionFile:
        """Write a file, named by the SHA-256 of its bytes; it is there for good when this returns."""
        writing = self.location.staging()
        found = write_alone(self.location, piece_of(key, table), writing)
        writing.settle()
        return found


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The parts of some files of the table, each checked when it is read: here, or in a task."""

    location: Location
    files: tuple[str, ...]
    owners: Mapping[str, frozenset[str]]

    def sizes(self) -> list[int]:
        """Return how many bytes each file has; one that is not there is told when it is read."""
        there = {one.name: one.bytes for one in self.location.listed()}
        return [there.get(name, 0) for name in self.files]

    def chosen(self, files: Sequence[str]) -> StoredParts:
        """Return those of some files only."""
        return StoredParts(self.location, tuple(files), self.owners)

    def __iter__(self) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """Yield the parts file by file."""
        for name, read in self.location.read_all(self.files):
            path = self.location.display_name(name)
            try:
                data = read()
            except OSError as error:
                raise damaged_table(path, f"cannot be read: {error.strerror or error}") from error
            yield from read_parts(path, name, checked(path, name, data), self.owners)


def _gist(error: BaseException) -> str:
    # Delta adds a trace of its own calls.
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _told(delta: DeltaTable) -> pa.Table:
    return pa.table(delta.get_add_actions(flatten=True))


def _added(location: str, file: PartitionFile, now: int) -> AddAction:
    from deltalake.transaction import AddAction  # noqa: PLC0415

    relation, segment = (part.split("=", 1)[1] for part in location.split("/"))
    said = json.dumps({"numRecords": file.rows})
    values = {"relation": relation, "segment": segment}
    return AddAction(file.path, file.bytes, values, now, True, said)  # noqa: FBT003


def _schema(arity: int) -> pa.Schema:
    texts = ["relation", "segment", "kind", "predicate"]
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("arity", pa.int32()),
            *((name, pa.string()) for name in column_names(arity)),
        ]
    )


def _options(location: Location) -> dict[str, str] | None:
    return dict(location.options) if location.options else None


def _properties(document: Mapping[str, object], *, alone: bool = True) -> Any:  # noqa: ANN401 - a type of a library loaded late
    from deltalake import CommitProperties  # noqa: PLC0415

    said = {_METADATA: json.dumps(document, ensure_ascii=False)}
    # Delta would go on behind whatever somebody else has done meanwhile.
    return CommitProperties(custom_metadata=said, max_commit_retries=None if alone else 0)


def _hooks() -> Any:  # noqa: ANN401 - as above
    from deltalake import PostCommitHookProperties  # noqa: PLC0415

    # Commits are swept by vacuum, which knows what versions need.
    return PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
