"""A store as a whole: opened, versions appended and read, flushed, vacuumed."""

from __future__ import annotations

import getpass
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence
from zodiacedge.engine.persistence import PartitionFile
from zodiacedge.errors import StoreProblem
from zodiacedge.kb.arguments import printable
from zodiacedge.language.printer import format_rule
from zodiacedge.store.create import make
from zodiacedge.store.layout import DELTA_LOG, LOG_FOLDER, MARKER, RELATION_PREFIX
from zodiacedge.store.location.marker import check, logged
from zodiacedge.store.log import record_format
from zodiacedge.store.log.large_facts import LogFileWriter
from zodiacedge.store.log.open_log import open_log
from zodiacedge.store.log.record import Entry, FactChange, encode_record, read_entry
from zodiacedge.store.log.record_format import Behind
from zodiacedge.store.problems import (
    damaged_table,
    left_out,
    no_version,
    only_logged,
    read_only,
    unregistered,
    unusable,
)
from zodiacedge.store.table.commit_info import Commit, Snapshot
from zodiacedge.store.table.delta_table import BehindError, Built, FactTable
from zodiacedge.store.table.parquet_files import folder_of, segment_name
from zodiacedge.store.table.pending_flush import PendingFlush
from zodiacedge.store.versions.restore import graph_digest, owners_of, program_of, state_of
from zodiacedge.store.versions.vacuum import report, unused_files, vacuum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from zodiacedge.engine.api import FactDelta, State, UncommittedState
    from zodiacedge.engine.persistence import AnyPersistence, PartitionKey
    from zodiacedge.engine.registry import Registry
    from zodiacedge.errors import Diagnostic
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.kb.rule_base import RuleBase
    from zodiacedge.language.checks import Host
    from zodiacedge.store.location.base import Location, WriterLease
    from zodiacedge.store.log.record import Remarks
    from zodiacedge.store.log.record_format import Log, Record
    from zodiacedge.store.table.delta_table import ChangedPartition
    from zodiacedge.store.versions.vacuum import VacuumReport

# A log of more bytes is flushed: what is left to replay takes seconds at most.
FLUSH_BYTES = 4 << 20
# While a flush runs in the background, the log may become so many times as long.
_TOO_LONG = 4
KEPT = timedelta(days=7)
# A reader tries again so often if a vacuum removes what it reads.
_TRIES = 10
# Seconds for a writer to get on with a record.
_MOMENT = 0.05
# A partition of more files than this is rewritten by the next flush.
_MOST_FILES = 16
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Base:
    """A version: its program and its state. Replaying starts from that of a commit."""

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
    """A store that is open, for its one writer or for reading."""

    def __init__(
        self,
        location: Location,
        *,
        writable: bool,
        persistence: AnyPersistence | None = None,
        held: WriterLease | None = None,
    ) -> None:
        """Open an existing store with the persistence adapter of an engine, by default the embedded one."""
        self.location = location
        check(location)
        self.flush_bytes = FLUSH_BYTES
        self.persistence: AnyPersistence = persistence or EmbeddedPersistence()
        self._table = FactTable(location)
        self._held = (held or location.lock()) if writable else None
        self._writer: Log | None = None
        self._signatures: Mapping[PartitionKey, object] = {}
        # Whether those are all that the table has; if not, the next flush writes all partitions.
        self._knows_all = True
        self._seconds: dict[str, float] = {}
        self._built = Built()
        self._flushed = 0
        # Bytes of facts beside the log that the table does not have yet.
        self._bytes_beside_log = 0
        self._closed = False
        self.recovered: tuple[Diagnostic, ...] = ()

    @classmethod
    def open(
        cls, location: Location, *, create: bool, writable: bool, persistence: AnyPersistence | None = None
    ) -> DurableStore:
        """Open a store, or make it if there is none and `create` is set."""
        if create and writable and not location.has(MARKER):
            return cls.create(location, persistence)
        return cls(location, writable=writable, persistence=persistence)

    @classmethod
    def create(cls, location: Location, persistence: AnyPersistence | None = None) -> DurableStore:
        """Make a store in a location that is empty or does not exist."""
        held = make(location, Snapshot(0, (), {}, moment=_now()))
        return cls(location, writable=True, persistence=persistence, held=held)

    @property
    def writable(self) -> bool:
        """Whether this is the writer."""
        return self._held is not None and self._held.held

    def sizes(self) -> StoreSizes:
        """Measure the files of the store."""
        files = self.location.listed()
        table = [file.bytes for file in files if file.name.startswith(RELATION_PREFIX)]
        logs = [file.bytes for file in files if file.name.startswith(f"{LOG_FOLDER}/")]
        return StoreSizes(sum(table), sum(logs), len(table) + len(logs))

    # Versions

    def base(
        self, at: int | None, empty: Callable[[], State], host: Host, registry: Registry
    ) -> tuple[Base, list[Record]]:
        """Load the last commit, or the last one up to a version, and the records behind it."""
        return self._retrying(lambda: self._base(at, empty(), host, registry))

    def _retrying(self, read: Callable[[], _Result]) -> _Result:
        """Read, again if files were removed meanwhile.

        A vacuum of another process or thread removes files that were listed a moment ago: then there are
        newer ones.
        """
        for _ in range(_TRIES):
            names = logged(self.location)
            try:
                return read()
            except StoreProblem:
                if logged(self.location) == names:
                    raise
        return read()

    def _base(
        self, at: int | None, empty: State, host: Host, registry: Registry
    ) -> tuple[Base, list[Record]]:
        commit, newest = None, None
        for candidate in self._table.commits():
            newest = newest or candidate
            if at is None or candidate.snapshot.version <= at:
                commit = candidate
                break
        if newest is None:
            raise damaged_table(self.location.display_name(DELTA_LOG), "holds no commit of a store")
        if commit is None:
            raise self._no_version(at or 0)
        records, scan, behind = self._records_behind(commit, at, newest)
        if scan.torn and not self.writable:
            # A writer may be writing the record: then there is more of it a moment later.
            time.sleep(_MOMENT)
            records, scan, behind = self._records_behind(commit, at, newest)
            self.recovered = (left_out(scan.torn),) if scan.torn else ()
        last = records[-1].version if records else commit.snapshot.version
        if at is not None and last != at:
            raise self._no_version(at)
        program, unregistered = program_of(self.location, commit.snapshot, host)
        files = self._table.files(commit)
        partitions = self._table.partitions(files, owners_of(program))
        state = state_of(
            self.location, self.persistence, empty, (program, commit.snapshot, partitions), registry
        )
        snapshot = commit.snapshot
        if self.writable:
            self._built, self._flushed = Built(commit.number, tuple(files)), snapshot.version
            self._signatures, self._knows_all = self._known_signatures(state, program), True
            self._seconds = snapshot.seconds
            self._writer = self._continued_log(commit, scan, behind)
        base = Base(
            snapshot.version, program, dict(snapshot.prefixes), state, unregistered, dict(snapshot.streams)
        )
        return base, records

    def _known_signatures(self, state: State, program: RuleBase) -> Mapping[PartitionKey, object]:
        """Return the signatures of the partitions on disk, none for a partition of too many small files."""
        files = Counter(name.rsplit("/", 1)[0] for name in self._built.files)
        signatures = self.persistence.signatures(state, program.rules)
        return {key: one if files[folder_of(key)] <= _MOST_FILES else None for key, one in signatures.items()}

    def _no_version(self, wanted: int) -> StoreProblem:
        files = record_format.files(self.location)
        last = self._newest_version()
        for record in record_format.read_files(self.location, files[-1:], ends=True):
            last = max(last, record.version)
        return no_version(wanted, self._oldest_version(), last)

    def _records_behind(
        self, commit: Commit, upto: int | None, newest: Commit
    ) -> tuple[list[Record], record_format.Scan, Behind]:
        """Return the records behind a commit, up to a version if given, and where they end."""
        snapshot = commit.snapshot
        chain = bytes.fromhex(snapshot.chain) if snapshot.chain else record_format.NO_CHAIN
        scan = record_format.Scan(0, chain, snapshot.version, follows=True, flushed=newest.snapshot.version)
        return self._records(snapshot.version, upto, scan)

    def _records(
        self, after: int, upto: int | None, scan: record_format.Scan
    ) -> tuple[list[Record], record_format.Scan, Behind]:
        """Return the records of the versions after one, up to another, and where they end."""
        if upto is not None and upto <= after:
            return [], scan, Behind()
        files = record_format.files(self.location)
        begin = max((n for n, (first, _) in enumerate(files) if first <= after + 1), default=0)
        records: list[Record] = []
        for record in record_format.read_files(self.location, files[begin:], scan, ends=True):
            if record.version > after:
                records.append(record)
            if record.version == upto:
                # This version does not need what follows, damaged or not.
                break
        size = sum(len(record.payload) for record in records)
        last = files[-1][1] if files else ""
        return records, scan, Behind(last, len({record.file for record in records}), size)

    def _continued_log(self, commit: Commit, scan: record_format.Scan, behind: Behind) -> Log:
        """Return the log, open for the next record."""
        if scan.torn:
            self.recovered = (scan.torn,)
        if scan.version < commit.snapshot.version:
            # The table is ahead of the log: files of the log were removed.
            _, scan, _ = self._records_behind(commit, commit.snapshot.version, commit)
            behind = Behind()
        elif not behind.files and not scan.torn:
            # The table has all of it: the next record begins a file, which a vacuum can remove alone.
            behind = Behind()
        return open_log(self.location, scan, behind, self._newest_version)

    def _newest_version(self) -> int:
        """Return the version of the table."""
        return max((one.snapshot.version for one in self._table.commits()), default=0)

    def _oldest_version(self) -> int:
        """Return the first version that can be opened."""
        return min((one.snapshot.version for one in self._table.commits()), default=0)

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries of the log, the oldest version first."""
        return self._retrying(
            lambda: tuple(
                map(
                    read_entry,
                    record_format.read_files(self.location, record_format.files(self.location), ends=True),
                )
            )
        )

    def records(self, after: int, upto: int) -> list[Record]:
        """Return the records of the versions after one, up to another."""
        files = record_format.files(self.location)
        first = min(files[0][0] - 1, upto) if files else upto
        if not first <= after <= upto:
            # A file of the log may begin with versions that a vacuum removed: they are undone, not opened.
            raise no_version(after, max(first, self._oldest_version()), upto)
        return self._records(after, upto, record_format.Scan(version=after))[0]

    # Writing

    def check_changes(self, missing: tuple[Diagnostic, ...], *, dry: bool) -> None:
        """Raise if the store is not writable, or if rules call what is not registered."""
        if missing:
            raise unregistered(self.location, missing)
        if not dry:
            self._required_writer()

    def record(
        self,
        report: ChangeReport,
        fact_delta: FactDelta,
        uncommitted: UncommittedState,
        remarks: Remarks,
        meanwhile: Callable[[], None],
    ) -> int:
        """Write the record of a version; return a ticket for `sync`.

        If that takes long, `meanwhile` is called now and then.
        """
        writer = self._required_writer()
        explicit, derived = self.persistence.counts_after(fact_delta, uncommitted)
        entry = Entry(
            report.version_after,
            _now(),
            _author(),
            remarks.message,
            tuple(format_rule(rule, {}) for rule in report.rules_added),
            tuple(format_rule(rule, {}) for rule in report.rules_removed),
            report.facts_added,
            report.facts_removed,
            explicit,
            derived,
            dict(remarks.prefixes),
            remarks.stream,
            remarks.batch,
        )
        sides = self.persistence.explicit_delta(fact_delta, LogFileWriter(self.location))
        facts = [
            FactChange(inserted, *one)
            for inserted, side in zip((True, False), sides, strict=True)
            for one in side
        ]
        ticket = writer.append(encode_record(entry, facts), meanwhile)
        self._bytes_beside_log += sum(
            one.facts.bytes for one in facts if isinstance(one.facts, PartitionFile)
        )
        return ticket

    def withdraw(self, version: int) -> None:
        """Take back the record after a version, if there is one: its change failed."""
        if self._writer is not None:
            self._writer.withdraw(version)

    def sync(self, ticket: int) -> None:
        """Wait until a record is on disk; a thread that closes the store meanwhile sees to that, too."""
        if self._writer is not None:
            self._writer.sync(ticket)

    @property
    def is_long(self) -> bool:
        """Whether the log is worth a flush."""
        return self._behind > self.flush_bytes

    @property
    def is_too_long(self) -> bool:
        """Whether the log must be flushed before it grows more."""
        return self._behind > _TOO_LONG * self.flush_bytes

    @property
    def _behind(self) -> int:
        return self._writer.size + self._bytes_beside_log if self._writer is not None else 0

    def pending_flush(self, base: Base, engine_lock: AbstractContextManager[object]) -> PendingFlush | None:
        """Capture what the table lacks of the version of the log; return None if it lacks nothing.

        No change may be made meanwhile. Later records go to a new file of the log.

        Args:
            base: The version, with its state.
            engine_lock: Held whenever `flush` needs the engine.
        """
        writer = self._required_writer()
        if base.version <= self._flushed:
            return None
        writer.sync_all()
        program, state, persistence = base.program, base.state, self.persistence
        before, now = self._signatures, persistence.signatures(state, program.rules)
        names = owners_of(program)
        explicit, derived = persistence.counts(state)
        seconds = {name: taken for name, taken in self._seconds.items() if name in names}
        seconds |= {segment_name(keys): taken for keys, taken in persistence.seconds(state).items()}
        snapshot = Snapshot(
            base.version,
            tuple(format_rule(rule, {}) for rule in program.rules.values()),
            base.prefixes,
            seconds,
            {key: (one.count, one.example) for key, one in state.dropped.items()},
            explicit,
            derived,
            graph_digest(program),
            chain=writer.chain.hex(),
            moment=_now(),
            streams=base.streams,
        )
        gone: list[ChangedPartition] = [(key, None) for key in before if key not in now]
        changed = persistence.changed_partitions(state, now, before, self._table.writer, engine_lock)
        writer.rotate()
        beside, self._bytes_beside_log = self._bytes_beside_log, 0
        return PendingFlush(
            snapshot,
            now,
            chain(gone, changed),
            beside,
            captured=persistence.captures,
            whole=not self._knows_all,
        )

    def flush(self, pending: PendingFlush) -> bool:
        """Bring the table up to a captured version; return whether it is.

        In a shared location, another process may have flushed meanwhile. If the table has an older version
        then, all partitions must be captured again.
        """
        try:
            built = self._table.commit(pending.snapshot, self._built, pending.partitions, whole=pending.whole)
        except BehindError:
            return self._caught_up(pending)
        except StoreProblem as problem:
            # Not again with every change: let the log grow for a while.
            self.flush_bytes *= 2
            self._bytes_beside_log += pending.beside
            raise only_logged(problem) from problem
        self._built, self._knows_all = built, True
        self._signatures, self._flushed = pending.signatures, pending.snapshot.version
        self._seconds = pending.snapshot.seconds
        return True

    def _caught_up(self, pending: PendingFlush) -> bool:
        """Take over a flush of another process; return whether it is of this version or a newer one."""
        newest = next(self._table.commits())
        self._built = Built(newest.number, tuple(self._table.files(newest)))
        self._signatures, self._knows_all = {}, False
        self._flushed = newest.snapshot.version
        if self._flushed >= pending.snapshot.version:
            return True
        self._bytes_beside_log += pending.beside
        return False

    def close(self) -> None:
        """Close the store, and let other processes write."""
        self._closed = True
        if self._writer is not None:
            self._writer.close()
        if self._held is not None:
            self._held.release()
            self._held = None

    def _required_writer(self) -> Log:
        if self._closed:
            raise unusable(self.location, "it is closed")
        if self._held is not None and not self._held.held:
            raise unusable(self.location, "it belongs to the process that this one was forked off")
        if self._writer is None:
            raise read_only(self.location)
        return self._writer

    def vacuum(self, kept: timedelta = KEPT, *, dry: bool = False) -> VacuumReport:
        """Remove the files that no version of the retention time needs; a dry run only counts them."""
        self._required_writer()
        unused = unused_files(self.location, self._table, kept)
        return report(unused) if dry else vacuum(self.location, self._table, unused)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _author() -> str:
    try:
        return printable(getpass.getuser())
    except (OSError, KeyError):
        # An account without a name, as containers have.
        return "unknown"
