"""The open store: appends versions to the log, flushes them into the table, loads and vacuums versions."""

from __future__ import annotations

import getpass
import logging
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence
from zodiacedge.engine.persistence import PartitionFile
from zodiacedge.errors import StoreBusy, StoreProblem
from zodiacedge.kb.arguments import printable
from zodiacedge.kb.time.clock import times_in
from zodiacedge.language.printer import format_rule
from zodiacedge.language.windows import is_hidden
from zodiacedge.store.create import create_store
from zodiacedge.store.layout import DELTA_LOG, LOG_FOLDER, MARKER, RELATION_PREFIX
from zodiacedge.store.location.marker import check_store, log_file_names
from zodiacedge.store.log import record_format
from zodiacedge.store.log.large_facts import LogFileWriter
from zodiacedge.store.log.open_log import open_log
from zodiacedge.store.log.record import Entry, FactChange, encode_record, read_entry
from zodiacedge.store.log.record_format import UnflushedLog
from zodiacedge.store.problems import (
    damaged_table,
    left_out,
    no_bound_of_bytes,
    no_refresh,
    no_version,
    only_logged,
    read_only,
    unregistered,
    unusable,
)
from zodiacedge.store.table.commit_info import Commit, Snapshot
from zodiacedge.store.table.delta_table import BaseCommit, CommitConflictError, FactTable
from zodiacedge.store.table.parquet_files import folder_of, segment_name
from zodiacedge.store.table.pending_flush import PendingFlush
from zodiacedge.store.versions import retention
from zodiacedge.store.versions.restore import graph_digest, owners_of, packs_in, program_of, state_of
from zodiacedge.store.versions.vacuum import state_retention, unused_files, vacuum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from zodiacedge.engine.api import FactDelta, State, UncommittedState
    from zodiacedge.engine.persistence import AnyPersistence, PartitionKey
    from zodiacedge.engine.registry import Registry
    from zodiacedge.errors import Diagnostic
    from zodiacedge.kb.change import ChangeNote
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.kb.rule_base import RuleBase
    from zodiacedge.language.checks import Host
    from zodiacedge.packs.owners import Packs
    from zodiacedge.store.layout import FileInfo
    from zodiacedge.store.location.base import Location, WriterLease
    from zodiacedge.store.log.open_log import Log
    from zodiacedge.store.log.record_format import Record
    from zodiacedge.store.table.delta_table import ChangedPartition
    from zodiacedge.store.versions.retention import Kept
    from zodiacedge.store.versions.vacuum import VacuumReport

_LOGGER = logging.getLogger(__name__)
# A longer log is flushed, so that a replay takes seconds at most.
FLUSH_BYTES = 4 << 20
# The log may grow to this multiple of the flush size while a flush runs in the background.
_TOO_LONG = 4
# The most files that an automatic vacuum removes at once.
_MOST_REMOVED = 1000
# Retries of a reader if a vacuum removes the files that it reads.
_TRIES = 10
# The time that a reader gives a writer to finish a record.
_RETRY_SECONDS = 0.05
# The time between two attempts to become the writer.
_WAIT_SECONDS = 0.1
# A partition of more files is rewritten by the next flush.
_MOST_FILES = 16
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A version with its program and state; a replay starts from that of a commit."""

    version: int
    program: RuleBase
    prefixes: dict[str, str]
    state: State
    unregistered: tuple[Diagnostic, ...]
    streams: dict[str, int]


@dataclass(frozen=True, slots=True)
class StoreSizes:
    """The bytes of the table, older versions included, and of the log; and the number of files."""

    table: int
    log: int
    files: int


class DurableStore:
    """A store that is open for reading, or for its only writer."""

    def __init__(
        self,
        location: Location,
        *,
        writable: bool,
        persistence: AnyPersistence | None = None,
        lease: WriterLease | None = None,
    ) -> None:
        """Open an existing store with the persistence adapter of an engine, by default the embedded one."""
        self.location = location
        check_store(location)
        self.flush_bytes = FLUSH_BYTES
        self.persistence: AnyPersistence = persistence or EmbeddedPersistence()
        self._table = FactTable(location)
        self._lease = (lease or location.lock()) if writable else None
        self._writer: Log | None = None
        self._signatures: Mapping[PartitionKey, object] = {}
        # Whether these cover the table; otherwise the next flush writes all partitions.
        self._knows_all = True
        self._seconds: dict[str, float] = {}
        self._base = BaseCommit()
        self._flushed = 0
        # Bytes of unflushed facts in files beside the log.
        self._bytes_beside_log = 0
        self._closed = False
        self._retention = retention.Retention()
        self._kept: Kept | None = None
        # Where a reader is in the log: the chain of its version, and the files as it saw them last.
        self._chain = record_format.NO_CHAIN
        self._seen: tuple[int, list[FileInfo]] | None = None
        self.recovered: tuple[Diagnostic, ...] = ()

    @classmethod
    def open(
        cls,
        location: Location,
        *,
        create: bool,
        writable: bool,
        persistence: AnyPersistence | None = None,
        wait: float = 0.0,
    ) -> DurableStore:
        """Open a store, or create it if it does not exist and `create` is set.

        If another process writes to it, try again for `wait` seconds.
        """
        deadline = time.monotonic() + wait
        while True:
            try:
                if create and writable and not location.has(MARKER):
                    return cls.create(location, persistence)
                return cls(location, writable=writable, persistence=persistence)
            except StoreBusy:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise
                _LOGGER.debug("waiting for the writer of %s", location)
                time.sleep(min(remaining, _WAIT_SECONDS))

    @classmethod
    def create(cls, location: Location, persistence: AnyPersistence | None = None) -> DurableStore:
        """Create a store in an empty or missing location."""
        lease = create_store(location, Snapshot(0, (), {}, moment=_now()))
        return cls(location, writable=True, persistence=persistence, lease=lease)

    @property
    def writable(self) -> bool:
        """Whether this is the writer."""
        return self._lease is not None and self._lease.held

    def sizes(self) -> StoreSizes:
        """Measure the files of the store."""
        files = self.location.listed()
        table = [file.bytes for file in files if file.name.startswith(RELATION_PREFIX)]
        logs = [file.bytes for file in files if file.name.startswith(f"{LOG_FOLDER}/")]
        return StoreSizes(sum(table), sum(logs), len(table) + len(logs))

    # Versions

    def load(
        self, at: int | None, empty: Callable[[], State], host: Host, registry: Registry
    ) -> tuple[LoadedVersion, list[Record]]:
        """Load the last commit, or the last one up to a version, and the records after it."""
        return self._with_retries(lambda: self._load(at, empty(), host, registry))

    def _with_retries(self, read: Callable[[], _Result]) -> _Result:
        """Read; read again if a concurrent vacuum removed files that were listed before."""
        for _ in range(_TRIES):
            names = log_file_names(self.location)
            try:
                return read()
            except StoreProblem:
                if log_file_names(self.location) == names:
                    raise
        return read()

    def _load(
        self, at: int | None, empty: State, host: Host, registry: Registry
    ) -> tuple[LoadedVersion, list[Record]]:
        commit, newest = None, None
        for candidate in self._table.commits():
            newest = newest or candidate
            if at is None or candidate.snapshot.version <= at:
                commit = candidate
                break
        if newest is None:
            raise damaged_table(self.location.display_name(DELTA_LOG), "holds no commit of a store")
        if commit is None:
            raise self._missing_version(at or 0)
        snapshot = commit.snapshot
        records, scan, unflushed = self._records_after(commit, at, newest)
        if scan.torn and not self.writable:
            # A writer may be in the middle of the record.
            time.sleep(_RETRY_SECONDS)
            records, scan, unflushed = self._records_after(commit, at, newest)
            self.recovered = (left_out(scan.torn),) if scan.torn else ()
        last = records[-1].version if records else snapshot.version
        if at is not None and last != at:
            raise self._missing_version(at)
        self._chain = scan.chain if scan.version == last else _chain_of(snapshot)
        program, unregistered = program_of(self.location, snapshot, host, by_rows=empty.keeps_windows)
        files = self._table.files(commit)
        partitions = self._table.partitions(files, owners_of(program))
        state = state_of(self.location, self.persistence, empty, (program, snapshot, partitions), registry)
        if self.writable:
            self._base, self._flushed = BaseCommit(commit.number, tuple(files)), snapshot.version
            self._signatures, self._knows_all = self._known_signatures(state, program), True
            self._seconds = snapshot.seconds
            self._writer = self._reopen_log(commit, scan, unflushed)
        loaded = LoadedVersion(
            snapshot.version, program, dict(snapshot.prefixes), state, unregistered, dict(snapshot.streams)
        )
        return loaded, records

    def _known_signatures(self, state: State, program: RuleBase) -> Mapping[PartitionKey, object]:
        """Return the signatures of the partitions on disk, None for a partition of too many small files."""
        files = Counter(name.rsplit("/", 1)[0] for name in self._base.files)
        signatures = self.persistence.signatures(state, program.rules)
        return {key: s if files[folder_of(key)] <= _MOST_FILES else None for key, s in signatures.items()}

    def _missing_version(self, wanted: int) -> StoreProblem:
        files = record_format.files(self.location)
        last = self._newest_version()
        for record in record_format.read_files(self.location, files[-1:], ends=True):
            last = max(last, record.version)
        return no_version(wanted, self._oldest_version(), last)

    def _records_after(
        self, commit: Commit, upto: int | None, newest: Commit
    ) -> tuple[list[Record], record_format.Scan, UnflushedLog]:
        """Return the records after a commit, up to a version if given, and the end of the scan."""
        snapshot, flushed = commit.snapshot, newest.snapshot.version
        scan = record_format.Scan(0, _chain_of(snapshot), snapshot.version, follows=True, flushed=flushed)
        return self._records(snapshot.version, upto, scan)

    def _records(
        self, after: int, upto: int | None, scan: record_format.Scan
    ) -> tuple[list[Record], record_format.Scan, UnflushedLog]:
        """Return the records of the versions after `after` up to `upto`, and the end of the scan."""
        if upto is not None and upto <= after:
            return [], scan, UnflushedLog()
        files = record_format.files(self.location)
        begin = max((n for n, (first, _) in enumerate(files) if first <= after + 1), default=0)
        records: list[Record] = []
        for record in record_format.read_files(self.location, files[begin:], scan, ends=True):
            if record.version > after:
                records.append(record)
            if record.version == upto:
                # Later records may be damaged, and are not needed.
                break
        size = sum(len(record.payload) for record in records)
        last = files[-1][1] if files else ""
        return records, scan, UnflushedLog(last, len({record.file for record in records}), size)

    def _reopen_log(self, commit: Commit, scan: record_format.Scan, unflushed: UnflushedLog) -> Log:
        """Open the log for the next record."""
        if scan.torn:
            self.recovered = (scan.torn,)
        if scan.version < commit.snapshot.version:
            # The table is ahead of the log: files of the log were removed.
            _, scan, _ = self._records_after(commit, commit.snapshot.version, commit)
            unflushed = UnflushedLog()
        elif not unflushed.files and not scan.torn:
            # The log is flushed: the next record begins a file, so that a vacuum can remove this one.
            unflushed = UnflushedLog()
        return open_log(self.location, scan, unflushed, self._newest_version)

    def _newest_version(self) -> int:
        """Return the version of the table."""
        return max((commit.snapshot.version for commit in self._table.commits()), default=0)

    def _oldest_version(self) -> int:
        """Return the first version that can be opened."""
        return min((commit.snapshot.version for commit in self._table.commits()), default=0)

    def first_version(self, upto: int) -> int:
        """Return the first version that can be opened and from which on the log is kept."""
        files = record_format.files(self.location)
        first = min(files[0][0] - 1, upto) if files else upto
        return max(first, min(self._oldest_version(), upto))

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries of the log, the oldest version first."""

        def read() -> tuple[Entry, ...]:
            files = record_format.files(self.location)
            return tuple(map(read_entry, record_format.read_files(self.location, files, ends=True)))

        return self._with_retries(read)

    def prefixes_at(self, version: int) -> dict[str, str]:
        """Return the prefixes of a version: those of the last commit up to it, and of the records since."""
        snapshot = self._commit_before(version).snapshot
        prefixes = dict(snapshot.prefixes)
        scan = record_format.Scan(version=snapshot.version)
        for record in self._records(snapshot.version, version, scan)[0]:
            prefixes |= read_entry(record).prefixes
        return prefixes

    def packs_at(self, version: int) -> Packs:
        """Return the packs of a version: those of the last commit up to it, and the changes since."""
        commit = self._commit_before(version)
        packs = packs_in(self.location, commit.snapshot)
        scan = record_format.Scan(version=commit.snapshot.version)
        for record in self._records(commit.snapshot.version, version, scan)[0]:
            packs = packs.changed(read_entry(record).packs)
        return packs

    def _commit_before(self, version: int) -> Commit:
        """Return the last commit up to a version; raise if it was removed."""
        for commit in self._table.commits():
            if commit.snapshot.version <= version:
                return commit
        # The log may still have the changes since.
        raise self._missing_version(version)

    def records(self, after: int, upto: int) -> list[Record]:
        """Return the records of the versions after `after` up to `upto`."""
        files = record_format.files(self.location)
        first = min(files[0][0] - 1, upto) if files else upto
        if not first <= after <= upto:
            # A file of the log may begin with versions that can no longer be opened.
            raise no_version(after, max(first, self._oldest_version()), upto)
        return self._records(after, upto, record_format.Scan(version=after))[0]

    def new_records(self, after: int) -> list[Record] | None:
        """Return the complete records after the version of a reader, in order.

        Returns None if the log does not continue that version: it was vacuumed, or its last record withdrawn.
        """
        if self._closed:
            raise unusable(self.location, "it is closed")
        if self.writable:
            raise no_refresh(self.location)
        listed = self.location.listed(LOG_FOLDER)
        if self._seen == (after, listed):
            return []
        self._seen = None
        files = record_format.files(self.location)
        begin = max((n for n, (first, _) in enumerate(files) if first <= after + 1), default=0)
        scan = record_format.Scan(0, self._chain, after, follows=True)
        records: list[Record] = []
        try:
            for record in record_format.read_files(self.location, files[begin:], scan, ends=True):
                if record.version == after and scan.chain != self._chain:
                    return None
                if record.version > after:
                    records.append(record)
        except StoreProblem:
            # Loading the newest version raises if the log is damaged.
            return None
        if scan.version < after:
            return None
        self._seen = (scan.version, listed)
        return records

    def replayed(self, record: Record) -> None:
        """Note that a reader has replayed the record after its version."""
        self._chain = record_format.chained(self._chain, record.payload)

    # Writing

    def check_changes(self, missing: tuple[Diagnostic, ...], *, dry: bool) -> None:
        """Raise if the store is not writable, or if rules call unregistered functions or aggregates."""
        if missing:
            raise unregistered(self.location, missing)
        if not dry:
            self._required_writer()

    def record(
        self,
        report: ChangeReport,
        fact_delta: FactDelta,
        uncommitted: UncommittedState,
        note: ChangeNote,
        meanwhile: Callable[[], None],
    ) -> int:
        """Append the record of a version; return a ticket for `sync`.

        `meanwhile` is called repeatedly during a long wait.
        """
        writer = self._required_writer()
        explicit, derived = self.persistence.counts_after(fact_delta, uncommitted)
        entry = Entry(
            report.version_after,
            _now(),
            _author(),
            note.message,
            tuple(format_rule(rule, {}) for rule in report.rules_added),
            tuple(format_rule(rule, {}) for rule in report.rules_removed),
            report.facts_added,
            report.facts_removed,
            explicit,
            derived,
            dict(note.prefixes),
            *(note.stream or ("", -1)),
            report.packs_delta,
        )
        inserted, deleted = self.persistence.explicit_delta(fact_delta, LogFileWriter(self.location))
        changes = [FactChange(True, *partition) for partition in inserted]  # noqa: FBT003 - its first field
        changes += [FactChange(False, *partition) for partition in deleted]  # noqa: FBT003 - as above
        ticket = writer.append(encode_record(entry, changes), meanwhile)
        files = [change.facts for change in changes if isinstance(change.facts, PartitionFile)]
        self._bytes_beside_log += sum(file.bytes for file in files)
        return ticket

    def withdraw(self, version: int) -> None:
        """Remove the record after a version, if there is one: its change failed."""
        if self._writer is not None:
            self._writer.withdraw(version)

    def sync(self, ticket: int) -> None:
        """Wait until a record is durable; closing the store makes all records durable."""
        if self._writer is not None:
            self._writer.sync(ticket)

    @property
    def is_long(self) -> bool:
        """Whether the log is worth a flush."""
        return self._unflushed_bytes > self.flush_bytes

    @property
    def is_too_long(self) -> bool:
        """Whether the log must be flushed before it grows more."""
        return self._unflushed_bytes > _TOO_LONG * self.flush_bytes

    @property
    def _unflushed_bytes(self) -> int:
        return self._writer.size + self._bytes_beside_log if self._writer is not None else 0

    def pending_flush(
        self, current: LoadedVersion, engine_lock: AbstractContextManager[object]
    ) -> PendingFlush | None:
        """Capture the changes that the table lacks; return None if it lacks none.

        No change may be made meanwhile. Later records go to a new file of the log.

        Args:
            current: The last version of the log.
            engine_lock: Held whenever `flush` needs the engine.
        """
        writer = self._required_writer()
        if current.version <= self._flushed:
            return None
        writer.sync_all()
        program, state, persistence = current.program, current.state, self.persistence
        before, after = self._signatures, persistence.signatures(state, program.rules)
        names = owners_of(program)
        explicit, derived = persistence.counts(state)
        seconds = {name: taken for name, taken in self._seconds.items() if name in names}
        seconds |= {segment_name(keys): taken for keys, taken in persistence.seconds(state).items()}
        snapshot = Snapshot(
            current.version,
            tuple(format_rule(rule, {}) for rule in program.rules.values() if not is_hidden(rule)),
            current.prefixes,
            seconds,
            {key: (dropped.count, dropped.example) for key, dropped in state.dropped.items()},
            explicit,
            derived,
            graph_digest(program),
            chain=writer.chain.hex(),
            moment=_now(),
            streams=current.streams,
            packs=program.packs.to_dict(),
            times=times_in(state),
        )
        deleted: list[ChangedPartition] = [(key, None) for key in before if key not in after]
        changed = persistence.changed_partitions(state, after, before, self._table.writer, engine_lock)
        writer.rotate()
        bytes_beside_log, self._bytes_beside_log = self._bytes_beside_log, 0
        return PendingFlush(
            snapshot,
            after,
            chain(deleted, changed),
            bytes_beside_log,
            captured=persistence.captures,
            full=not self._knows_all,
            count=len(deleted) + sum(before.get(key) != signature for key, signature in after.items()),
        )

    def flush(self, pending: PendingFlush) -> bool:
        """Bring the table up to a captured version; return whether it is.

        In a shared location, another process may have flushed meanwhile. If the table has an older version
        then, all partitions must be captured again.
        """
        try:
            built = self._table.commit(pending.snapshot, self._base, pending.partitions, full=pending.full)
        except CommitConflictError:
            return self._adopt_flush(pending)
        except StoreProblem as problem:
            # Let the log grow, so that not every change tries again.
            self.flush_bytes *= 2
            self._bytes_beside_log += pending.bytes_beside_log
            raise only_logged(problem) from problem
        _LOGGER.info("flushed version %d into the table of %s", pending.snapshot.version, self.location)
        self._base, self._knows_all = built, True
        self._signatures, self._flushed = pending.signatures, pending.snapshot.version
        self._seconds = pending.snapshot.seconds
        return True

    def _adopt_flush(self, pending: PendingFlush) -> bool:
        """Adopt the commit of another process; return whether it is of this version or a newer one."""
        newest = next(self._table.commits())
        self._base = BaseCommit(newest.number, tuple(self._table.files(newest)))
        self._signatures, self._knows_all = {}, False
        self._flushed = newest.snapshot.version
        if self._flushed >= pending.snapshot.version:
            return True
        self._bytes_beside_log += pending.bytes_beside_log
        return False

    def close(self) -> None:
        """Close the store and release its lock."""
        self._closed = True
        if self._writer is not None:
            self._writer.close()
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def _required_writer(self) -> Log:
        if self._closed:
            raise unusable(self.location, "it is closed")
        if self._lease is not None and not self._lease.held:
            raise unusable(self.location, "it belongs to the process that this one was forked off")
        if self._writer is None:
            raise read_only(self.location)
        return self._writer

    @property
    def keeps(self) -> Kept:
        """What is kept of versions: their retention time, and the bytes that they may take."""
        if self._kept is None:
            self._kept = retention.kept(self.location)
        return self._kept

    def keep(self, keeps: Kept) -> None:
        """Set what is kept of versions."""
        self._required_writer()
        if keeps.most_bytes is not None and self.location.shared:
            raise no_bound_of_bytes(self.location)
        retention.keep(self.location, keeps)
        self._kept = keeps
        self._retention.hurry()

    def forget_old_versions(self) -> None:
        """Remove a bounded number of files that no version of the retention time needs, if it is time."""
        try:
            if not self._retention.is_due(self.location, self.keeps):
                return
            unused = unused_files(self.location, self._table, self.keeps)
            if len(unused.entries) + len(unused.facts) > _MOST_REMOVED:
                unused = unused.first(_MOST_REMOVED)
                self._retention.hurry()
            report = vacuum(self.location, self._table, unused)
            state_retention(self.location, self._table, unused.oldest)
        except StoreProblem as problem:
            # No version is lost, and the next attempt may succeed.
            message = problem.diagnostics[0].message
            _LOGGER.warning("old versions of %s are not removed: %s", self.location, message)
            return
        _LOGGER.info("forgot versions of %s: %d files, %d bytes", self.location, report.files, report.bytes)

    def unused(self) -> VacuumReport:
        """Count the files that a vacuum would remove."""
        return unused_files(self.location, self._table, self.keeps).report

    def vacuum(self, kept: timedelta | None = None, *, dry: bool = False) -> VacuumReport:
        """Remove the files that no version of a time, or what is kept, needs; a dry run counts them."""
        self._required_writer()
        keeps = self.keeps if kept is None else retention.Kept(kept)
        unused = unused_files(self.location, self._table, keeps)
        if dry:
            return unused.report
        report = vacuum(self.location, self._table, unused)
        _LOGGER.info("vacuum of %s: removed %d files, %d bytes", self.location, report.files, report.bytes)
        return report


def _chain_of(snapshot: Snapshot) -> bytes:
    return bytes.fromhex(snapshot.chain) if snapshot.chain else record_format.NO_CHAIN


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _author() -> str:
    try:
        return printable(getpass.getuser())
    except (OSError, KeyError):
        # In containers, an account may have no name.
        return "unknown"
