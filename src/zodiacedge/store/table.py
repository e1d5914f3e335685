"""The Delta table of a store: parts as Parquet files, and commits that hold everything else.

A file is named by the SHA-256 of its bytes, so whatever is read is what was written. A commit's metadata
holds rules, prefixes, counts and a digest over the names of all files; the digest is checked whenever a
version is loaded. Commits of other programs are passed over, and what they did is found by the digest.
"""

from __future__ import annotations

import io
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from zodiacedge.engine.keeping import PartFile, PartFiles
from zodiacedge.engine.parts import PartKey, column_names
from zodiacedge.store.layout import FORMAT, Layout, WholeFiles, folder_name, short_hash, sync_folder
from zodiacedge.store.problems import damaged_table, newer_format, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from deltalake.transaction import AddAction

    from zodiacedge.errors import StoreProblem

_METADATA = "zodiac"
_CHECK = "check"
_FIRST_ARITY = 4
_PARTITIONS = ["relation", "segment"]
_EXPLICIT = "explicit"
_SAFE_PATH = re.compile(r"relation=[A-Za-z0-9_-]+/segment=[A-Za-z0-9_-]+/(?P<sum>[0-9a-f]{64})\.parquet")
_CHAIN = re.compile(r"([0-9a-f]{32})?")
_KINDS = ("explicit", "derived", "aggregate")
_ROWS_TOGETHER = 1 << 18
_LARGE = 1 << 20
# How Delta tells of what the system refused.
_SYSTEM = re.compile(r"\(os error (\d+)\)")
_COMMITS = "[0-9]" * 20 + ".json"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a commit says beside the facts."""

    version: int
    rules: tuple[str, ...]
    prefixes: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    """What evaluating each segment, by its name, from nothing took."""
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Bindings that evaluation errors dropped, by rule key: how many, and an example."""
    explicit: int = 0
    derived: int = 0
    graph: str = ""
    """A digest of the hyper-nodes."""
    digest: str = ""
    """A digest of all files."""
    chain: str = ""
    """The checksum of the log's last record, for the next one to go on from."""
    moment: str = ""
    format: int = FORMAT
    streams: dict[str, int] = field(default_factory=dict)
    """The last batch of each stream that is in."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of ours: its number in the table's log, and what it says."""

    number: int
    snapshot: Snapshot


# A part that was written anew, or is to be, or is gone.
Renewed = tuple[PartKey, "pa.Table | PartFiles | None"]


def segment_name(owner: frozenset[str]) -> str:
    """Return the name of a segment: that of the explicit facts, or a hash of the rules of a node."""
    return f"node-{short_hash(owner)}" if owner else _EXPLICIT


class FactTable:
    """The Delta table in the folder of a store."""

    def __init__(self, layout: Layout) -> None:
        """Name the place; nothing is read yet."""
        self._layout = layout
        self._root = str(layout.root)

    def create(self, snapshot: Snapshot) -> None:
        """Make the table, without facts."""
        from deltalake import Schema  # noqa: PLC0415 - heavy, and only stores need it
        from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

        create_table_with_add_actions(
            self._root,
            Schema.from_arrow(_schema(_FIRST_ARITY)),
            [],
            mode="error",
            partition_by=_PARTITIONS,
            name="zodiac",
            description="A knowledge base of ZodiacEdge",
            commit_properties=_properties(_digested(snapshot, ())),
        )
        self._sync_log()

    def commits(self) -> Iterator[Commit]:
        """Yield our commits, the newest first."""
        names = sorted(self._layout.delta_log.glob(_COMMITS), reverse=True)
        for path in names:
            snapshot = self._snapshot(path)
            if snapshot is not None:
                yield Commit(int(path.stem), snapshot)

    def _snapshot(self, path: Path) -> Snapshot | None:
        try:
            for line in path.read_text(encoding="utf-8").splitlines():
                if '"commitInfo"' in line:
                    said = json.loads(line)["commitInfo"].get(_METADATA)
                    return _read_snapshot(path, said) if said else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged_table(path, f"cannot be read: {error}") from error
        return None

    def files(self, commit: Commit) -> list[str]:
        """Return the files that the facts of a commit are in, if they are what its digest says."""
        from deltalake import DeltaTable  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            table = DeltaTable(self._root, version=commit.number)
            found = sorted(pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist())
        except (DeltaError, OSError) as error:
            raise damaged_table(self._layout.delta_log, f"cannot be read: {error}") from error
        for path in found:
            if not _SAFE_PATH.fullmatch(path):
                raise damaged_table(self._layout.delta_log, f"names {path!r}, which is no file of a store")
        if commit.snapshot.digest != _digest(found):
            version = commit.snapshot.version
            raise damaged_table(self._layout.root, f"does not hold the files of version {version}")
        return found

    def parts(self, files: Iterable[str], owners: Mapping[str, frozenset[str]]) -> StoredParts:
        """Return the parts of some files; `owners` are the rules of each segment by its name."""
        return StoredParts(self._layout.root, tuple(files), dict(owners))

    @property
    def writer(self) -> TableWriter:
        """What writes parts as files that a commit can name."""
        return TableWriter(self._layout.root)

    def checkpoint(self, commit: Commit) -> None:
        """Let Delta start from a commit, without those before."""
        from deltalake import DeltaTable  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            DeltaTable(self._root, version=commit.number).create_checkpoint()
        except (DeltaError, OSError) as error:
            raise self._refused("checkpoint", error) from error

    def commit(self, snapshot: Snapshot, before: Iterable[str], parts: Iterable[Renewed]) -> list[str]:
        """Write parts, each in place of what it was before, none where it is gone, as one commit.

        Args:
            snapshot: What the commit says; its digest is found here.
            before: The files of the commit before.
            parts: The parts that changed.
        """
        writing = WholeFiles(self._layout.root)
        try:
            return self._commit(snapshot, before, parts, writing)
        except OSError as error:
            raise unwritable(self._layout.root, error) from error
        finally:
            writing.drop()

    def _commit(
        self, snapshot: Snapshot, before: Iterable[str], parts: Iterable[Renewed], writing: WholeFiles
    ) -> list[str]:
        from deltalake import DeltaTable, Field  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
        from deltalake.schema import PrimitiveType  # noqa: PLC0415
        from deltalake.transaction import RemoveAction  # noqa: PLC0415

        by_folder: dict[str, list[str]] = {}
        for path in before:
            by_folder.setdefault(path.rsplit("/", 1)[0], []).append(path)
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = []
        widest = 0
        for key, given in parts:
            place = place_of(key)
            old = by_folder.pop(place, [])
            if given is None or isinstance(given, PartFiles):
                new = given.files if given else ()
            else:
                new = (_staged(self._layout.root, key, given, writing),)
            widest = max(widest, key.arity)
            kept = old if isinstance(given, PartFiles) and given.beside else []
            names = [*kept, *(file.path for file in new if file.path not in kept)]
            if names:
                by_folder[place] = names
            actions += [
                RemoveAction(path, data_change=True, deletion_timestamp=now)
                for path in old
                if path not in names
            ]
            actions += [_added(place, file, now) for file in new if file.path not in old]
        files = sorted(path for paths in by_folder.values() for path in paths)
        writing.settle()
        try:
            delta = DeltaTable(self._root)
            there = {field.name for field in delta.schema().fields}
            missing = [name for name in column_names(widest) if name not in there]
            if missing:
                delta.alter.add_columns([Field(name, PrimitiveType("string")) for name in missing])
                delta = DeltaTable(self._root)
            delta.create_write_transaction(
                actions,
                mode="append",
                schema=delta.schema(),
                partition_by=_PARTITIONS,
                commit_properties=_properties(_digested(snapshot, files)),
                post_commithook_properties=_hooks(),
            )
        except (DeltaError, OSError) as error:
            # What Delta does behind a commit, a checkpoint now and then, may fail when the commit is there.
            if not self._has(snapshot.version, files):
                raise self._refused("commit", error) from error
        # Until it is on disk for sure, the log has all of it.
        with suppress(OSError):
            self._sync_log()
        return files

    def _has(self, version: int, files: Sequence[str]) -> bool:
        newest = next(self.commits(), None)
        return newest is not None and (newest.snapshot.version, newest.snapshot.digest) == (
            version,
            _digest(files),
        )

    def _refused(self, what: str, error: Exception) -> StoreProblem:
        """Return the problem of something that Delta could not write: the system's, or the table's."""
        number = _SYSTEM.search(str(error))
        if number:
            return unwritable(self._layout.delta_log, OSError(int(number[1]), os.strerror(int(number[1]))))
        return damaged_table(self._layout.delta_log, f"does not take a {what}: {error}")

    def _sync_log(self) -> None:
        """Make sure that Delta's log is on disk: it does not see to that itself."""
        newest = max(self._layout.delta_log.glob("*.json"))
        handle = os.open(newest, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_folder(self._layout.delta_log)


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Writes parts as Parquet files of the table: in this process, or in a task."""

    root: Path

    def __call__(self, key: PartKey, table: pa.Table) -> PartFile:
        """Write a file, named by the SHA-256 of its bytes; it is on disk when this returns."""
        writing = WholeFiles(self.root)
        found = _staged(self.root, key, table, writing)
        writing.settle()
        return found


def _staged(root: Path, key: PartKey, table: pa.Table, writing: WholeFiles) -> PartFile:
    """Write a part as a file that is named by the SHA-256 of its bytes, unless it is there."""
    count = len(table)
    columns = {
        "kind": _repeated(key.kind, count),
        "predicate": _repeated(key.predicate, count),
        "arity": pa.array([key.arity], pa.int32()).take(pa.nulls(count, pa.int32()).fill_null(0)),
    }
    columns |= {name: table.column(name) for name in column_names(key.arity)}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="zstd", row_group_size=_ROWS_TOGETHER)
    data = out.getvalue()
    path = f"{place_of(key)}/{sha256(data).hexdigest()}.parquet"
    if not (root / path).exists():
        writing.add(root / path, data)
    return PartFile(path, len(data), count)


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The parts of some files of the table, each checked when it is read: here, or in a task."""

    root: Path
    files: tuple[str, ...]
    owners: Mapping[str, frozenset[str]]

    def sizes(self) -> list[int]:
        """Return how many bytes each file has; one that is not there is told when it is read."""
        paths = [self.root / name for name in self.files]
        return [path.stat().st_size if path.exists() else 0 for path in paths]

    def chosen(self, files: Sequence[str]) -> StoredParts:
        """Return those of some files only."""
        return StoredParts(self.root, tuple(files), self.owners)

    def __iter__(self) -> Iterator[tuple[PartKey, pa.Table]]:
        """Yield the parts file by file."""
        for name in self.files:
            path = self.root / name
            try:
                data = path.read_bytes()
            except OSError as error:
                raise damaged_table(path, f"cannot be read: {error.strerror or error}") from error
            if f"{sha256(data).hexdigest()}.parquet" != path.name:
                raise damaged_table(path, "is damaged: its checksum is not its name")
            yield _read_part(path, data, self.owners)


def _added(place: str, file: PartFile, now: int) -> AddAction:
    from deltalake.transaction import AddAction  # noqa: PLC0415

    relation, segment = (part.split("=", 1)[1] for part in place.split("/"))
    said = json.dumps({"numRecords": file.rows})
    values = {"relation": relation, "segment": segment}
    return AddAction(file.path, file.bytes, values, now, True, said)  # noqa: FBT003


def place_of(key: PartKey) -> str:
    """Return the folder of a part."""
    name = folder_name(key.predicate, key.arity, key.kind)
    return f"relation={name}/segment={segment_name(key.owner)}"


def _schema(arity: int) -> pa.Schema:
    texts = ["relation", "segment", "kind", "predicate"]
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("arity", pa.int32()),
            *((name, pa.string()) for name in column_names(arity)),
        ]
    )


def _repeated(text: str, count: int) -> pa.Array:
    return pa.array([text]).take(pa.nulls(count, pa.int32()).fill_null(0))


def _digest(files: Iterable[str]) -> str:
    return sha256("\n".join(sorted(files)).encode()).hexdigest()


def _digested(snapshot: Snapshot, files: Iterable[str]) -> dict[str, object]:
    return checked_document(asdict(snapshot) | {"digest": _digest(files)})


def checked_document(document: Mapping[str, object]) -> dict[str, object]:
    """Return what a commit says with a checksum of it: a flipped bit in a rule would be another rule."""
    said = {name: value for name, value in document.items() if name != _CHECK}
    return said | {_CHECK: sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()}


def _properties(document: Mapping[str, object]) -> Any:  # noqa: ANN401 - a type of a library loaded late
    from deltalake import CommitProperties  # noqa: PLC0415

    return CommitProperties(custom_metadata={_METADATA: json.dumps(document, ensure_ascii=False)})


def _hooks() -> Any:  # noqa: ANN401 - as above
    from deltalake import PostCommitHookProperties  # noqa: PLC0415

    # Commits are swept by vacuum, which knows what versions need.
    return PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


def _read_snapshot(path: Path, said: str) -> Snapshot:
    document = json.loads(said)
    made = document["format"]
    if not isinstance(made, int) or made > FORMAT:
        raise newer_format(path, made, FORMAT)
    if checked_document(document)[_CHECK] != document[_CHECK]:
        raise damaged_table(path, "is damaged: what it says does not fit its checksum")
    chain, moment = str(document["chain"]), str(document["moment"])
    if not _CHAIN.fullmatch(chain) or int(document["version"]) < 0:
        raise damaged_table(path, "does not say what a commit says")
    datetime.fromisoformat(moment)
    return Snapshot(
        int(document["version"]),
        tuple(map(str, document["rules"])),
        {str(prefix): str(base) for prefix, base in document["prefixes"].items()},
        {str(name): float(taken) for name, taken in document["seconds"].items()},
        {str(key): (int(count), str(example)) for key, (count, example) in document["dropped"].items()},
        int(document["explicit"]),
        int(document["derived"]),
        str(document["graph"]),
        str(document["digest"]),
        chain,
        moment,
        made,
        {str(stream): int(batch) for stream, batch in document.get("streams", {}).items()},
    )


def _read_part(path: Path, data: bytes, owners: Mapping[str, frozenset[str]]) -> tuple[PartKey, pa.Table]:
    try:
        table = _parquet(data)
        # A file from elsewhere may have any name that fits it, and anything inside.
        table.validate(full=True)
        kind, predicate, arity = (table.column(name)[0].as_py() for name in ("kind", "predicate", "arity"))
        owner = owners[path.parent.name.split("=", 1)[1]]
        table = table.drop_columns(["kind", "predicate", "arity"]) if arity else table
        key = PartKey(kind, owner, predicate, arity)
    except (pa.ArrowException, OSError, KeyError, IndexError, TypeError, ValueError) as error:
        raise damaged_table(path, f"is no part of a store: {error}") from error
    if kind not in _KINDS or not isinstance(predicate, str) or place_of(key) != str(_folder(path)):
        raise damaged_table(path, "is no part of a store: it stands in another place")
    return key, table


def _parquet(data: bytes) -> pa.Table:
    # Threads are worth their start for large files only.
    large = len(data) > _LARGE
    return pq.ParquetFile(pa.BufferReader(data), pre_buffer=large).read(use_threads=large)


def _folder(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.parent.name}"
