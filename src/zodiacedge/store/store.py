"""A store as a whole: open it, append a version, fold, find versions again, sweep."""

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
from zodiacedge.store.layout import DELTA_LOG, MARKER
from zodiacedge.store.location.marker import check, logged
from zodiacedge.store.log import record_format
from zodiacedge.store.log.entry import Entry, FactChange, packed
from zodiacedge.store.log.large_facts import LogFiles
from zodiacedge.store.log.open_log import open_log
from zodiacedge.store.log.record_format import Behind
from zodiacedge.store.log.records import said
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
from zodiacedge.store.table.parquet_files import place_of, segment_name
from zodiacedge.store.table.pending_flush import PendingFlush
from zodiacedge.store.versions.restore import graph_digest, owners_of, program_of, state_of
from zodiacedge.store.versions.vacuum import tell, unused_files, vacuum

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
    from zodiacedge.store.log.entry import Remarks
    from zodiacedge.store.log.record_format import Log, Record
    from zodiacedge.store.table.delta_table import Renewed
    from zodiacedge.store.versions.vacuum import VacuumReport

# A log of more bytes is folded: what is left to replay takes seconds at most.
FOLD_BYTES = 4 << 20
# While that goes on beside the work, it may become so many times as long.
_TOO_LONG = 4
KEPT = timedelta(days=7)
# A reader looks again so often if what it reads is swept away meanwhile.
_TRIES = 10
# Seconds in which a writer gets on with a record.
_MOMENT = 0.05
# A part of more files than this is written anew when the table is next brought up to date.
_MOST_FILES = 16
_Seen = TypeVar("_Seen")


@dataclass(frozen=True, slots=True)
class Base:
    """What a commit holds: the program and the state that replaying goes on from."""

    version: int
    program: RuleBase
    prefixes: dict[str, str]
    state: State
    unregistered: tuple[Diagnostic, ...]
    streams: dict[str, int]


class DurableStore:
    """A store that is open: for its one writer, or for reading."""

    def __init__(
        self,
        location: Location,
        *,
        writable: bool,
        persistence: AnyPersistence | None = None,
        held: WriterLease | None = None,
    ) -> None:
        """Open what is there; the states of the embedded engine are kept, if not those of another."""
        self.location = location
        check(location)
        self.flush_bytes = FOLD_BYTES
        self.persistence: AnyPersistence = persistence or EmbeddedPersistence()
        self._table = FactTable(location)
        self._held = (held or location.lock()) if writable else None
        self._writer: Log | None = None
        self._signatures: Mapping[PartitionKey, object] = {}
        # Whether those are all that the table has; if not, all parts are written when it is next folded.
        self._knows_all = True
        self._seconds: dict[str, float] = {}
        self._built = Built()
        self._folded = 0
        # Bytes of facts beside the log that the table does not have yet.
        self._beside = 0
        self._closed = False
        self.recovered: tuple[Diagnostic, ...] = ()

    @classmethod
    def open(
        cls, location: Location, *, create: bool, writable: bool, persistence: AnyPersistence | None = None
    ) -> DurableStore:
        """Open a store, or make it if there is none and that is wanted."""
        if create and writable and not location.has(MARKER):
            return cls.create(location, persistence)
        return cls(location, writable=writable, persistence=persistence)

    @classmethod
    def create(cls, location: Location, persistence: AnyPersistence | None = None) -> DurableStore:
        """Make a store in a place that is empty or not there yet."""
        held = make(location, Snapshot(0, (), {}, moment=_now()))
        return cls(location, writable=True, persistence=persistence, held=held)

    @property
    def writable(self) -> bool:
        """Whether this is the writer."""
        return self._held is not None and self._held.held

    # Versions

    def base(
        self, at: int | None, empty: Callable[[], State], host: Host, registry: Registry
    ) -> tuple[Base, list[Record]]:
        """Load the last commit, of those up to a version if one is given, and the records behind it."""
        return self._undisturbed(lambda: self._base(at, empty(), host, registry))

    def _undisturbed(self, look: Callable[[], _Seen]) -> _Seen:
        """Look at what is there, whatever others do to it.

        While another process or thread sweeps, what was there a moment ago may be gone: then there is
        something newer.
        """
        for _ in range(_TRIES):
            there = logged(self.location)
            try:
                return look()
            except StoreProblem:
                if logged(self.location) == there:
                    raise
        return look()

    def _base(
        self, at: int | None, empty: State, host: Host, registry: Registry
    ) -> tuple[Base, list[Record]]:
        found, newest = None, None
        for one in self._table.commits():
            newest = newest or one
            if at is None or one.snapshot.version <= at:
                found = one
                break
        if newest is None:
            raise damaged_table(self.location.display_name(DELTA_LOG), "holds no commit of a store")
        if found is None:
            raise self._no_version(at or 0)
        records, scan, behind = self._behind_commit(found, at, newest)
        if scan.torn and not self.writable:
            # A writer may be at it this moment: then there is more of it in the next.
            time.sleep(_MOMENT)
            records, scan, behind = self._behind_commit(found, at, newest)
            self.recovered = (left_out(scan.torn),) if scan.torn else ()
        last = records[-1].version if records else found.snapshot.version
        if at is not None and last != at:
            raise self._no_version(at)
        program, unregistered = program_of(self.location, found.snapshot, host)
        files = self._table.files(found)
        parts = self._table.parts(files, owners_of(program))
        state = state_of(self.location, self.persistence, empty, (program, found.snapshot, parts), registry)
        snapshot = found.snapshot
        if self.writable:
            self._built, self._folded = Built(found.number, tuple(files)), snapshot.version
            self._signatures, self._knows_all = self._known(state, program), True
            self._seconds = snapshot.seconds
            self._writer = self._begun(found, scan, behind)
        base = Base(
            snapshot.version, program, dict(snapshot.prefixes), state, unregistered, dict(snapshot.streams)
        )
        return base, records

    def _known(self, state: State, program: RuleBase) -> Mapping[PartitionKey, object]:
        """Return the signatures of parts as they are on disk, and none for those of too many small files."""
        files = Counter(name.rsplit("/", 1)[0] for name in self._built.files)
        found = self.persistence.signatures(state, program.rules)
        return {key: one if files[place_of(key)] <= _MOST_FILES else None for key, one in found.items()}

    def _no_version(self, wanted: int) -> StoreProblem:
        files = record_format.files(self.location)
        last = self._newest()
        for record in record_format.read_files(self.location, files[-1:], ends=True):
            last = max(last, record.version)
        return no_version(wanted, self._oldest(), last)

    def _behind_commit(
        self, commit: Commit, upto: int | None, newest: Commit
    ) -> tuple[list[Record], record_format.Scan, Behind]:
        """Return the records behind a commit, up to a version if one is given, and where they end."""
        snapshot = commit.snapshot
        chain = bytes.fromhex(snapshot.chain) if snapshot.chain else record_format.NO_CHAIN
        scan = record_format.Scan(0, chain, snapshot.version, follows=True, folded=newest.snapshot.version)
        return self._records(snapshot.version, upto, scan)

    def _records(
        self, after: int, upto: int | None, scan: record_format.Scan
    ) -> tuple[list[Record], record_format.Scan, Behind]:
        """Return the records of the versions behind one, up to another, and where they end."""
        if upto is not None and upto <= after:
            return [], scan, Behind()
        files = record_format.files(self.location)
        begin = max((n for n, (first, _) in enumerate(files) if first <= after + 1), default=0)
        found: list[Record] = []
        for record in record_format.read_files(self.location, files[begin:], scan, ends=True):
            if record.version > after:
                found.append(record)
            if record.version == upto:
                # What follows, damaged or not, is nothing to this version.
                break
        size = sum(len(one.payload) for one in found)
        last = files[-1][1] if files else ""
        return found, scan, Behind(last, len({one.file for one in found}), size)

    def _begun(self, commit: Commit, scan: record_format.Scan, behind: Behind) -> Log:
        """Return the log to go on with."""
        if scan.torn:
            self.recovered = (scan.torn,)
        if scan.version < commit.snapshot.version:
            # The table is ahead of the log: somebody took its files away.
            _, scan, _ = self._behind_commit(commit, commit.snapshot.version, commit)
            behind = Behind()
        elif not behind.files and not scan.torn:
            # The table has all of it: what comes now begins a file that is swept by itself one day.
            behind = Behind()
        return open_log(self.location, scan, behind, self._newest)

    def _newest(self) -> int:
        """Return the version that the table has."""
        return max((one.snapshot.version for one in self._table.commits()), default=0)

    def _oldest(self) -> int:
        """Return the first version that can be opened."""
        return min((one.snapshot.version for one in self._table.commits()), default=0)

    def entries(self) -> tuple[Entry, ...]:
        """Return what the log says of each version that is kept, the oldest first."""
        return self._undisturbed(
            lambda: tuple(
                map(
                    said,
                    record_format.read_files(self.location, record_format.files(self.location), ends=True),
                )
            )
        )

    def records(self, after: int, upto: int) -> list[Record]:
        """Return the records of the versions behind one, up to another."""
        files = record_format.files(self.location)
        first = min(files[0][0] - 1, upto) if files else upto
        if not first <= after <= upto:
            # A file of the log may begin with versions that were swept: undone they can be, not opened.
            raise no_version(after, max(first, self._oldest()), upto)
        return self._records(after, upto, record_format.Scan(version=after))[0]

    # Writing

    def check_changes(self, missing: tuple[Diagnostic, ...], *, dry: bool) -> None:
        """Raise where nothing may be changed, or where rules call what nobody registered."""
        if missing:
            raise unregistered(self.location, missing)
        if not dry:
            self._required_writer()

    def record(
        self,
        report: ChangeReport,
        effect: FactDelta,
        attempt: UncommittedState,
        remarks: Remarks,
        meanwhile: Callable[[], None],
    ) -> int:
        """Write the record of a version; return a ticket for `sync`.

        Where that takes long, `meanwhile` is called now and then.
        """
        writer = self._required_writer()
        explicit, derived = self.persistence.counts_after(effect, attempt)
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
        sides = self.persistence.explicit_delta(effect, LogFiles(self.location))
        facts = [
            FactChange(comes, *one) for comes, side in zip((True, False), sides, strict=True) for one in side
        ]
        ticket = writer.append(packed(entry, facts), meanwhile)
        self._beside += sum(one.facts.bytes for one in facts if isinstance(one.facts, PartitionFile))
        return ticket

    def withdraw(self, version: int) -> None:
        """Take the record behind a version back, if there is one: its change did not come about."""
        if self._writer is not None:
            self._writer.withdraw(version)

    def sync(self, ticket: int) -> None:
        """Wait until a record is on disk; another thread may have closed the store meanwhile, with it."""
        if self._writer is not None:
            self._writer.sync(ticket)

    @property
    def is_long(self) -> bool:
        """Whether the log is worth folding."""
        return self._behind > self.flush_bytes

    @property
    def is_too_long(self) -> bool:
        """Whether the log must be folded before it grows more."""
        return self._behind > _TOO_LONG * self.flush_bytes

    @property
    def _behind(self) -> int:
        return self._writer.size + self._beside if self._writer is not None else 0

    def pending_flush(self, base: Base, turn: AbstractContextManager[object]) -> PendingFlush | None:
        """Take hold of what the table lacks of the version that the log has; nothing if it has all of it.

        Nothing may change meanwhile. What comes afterwards goes to a log file of its own.

        Args:
            base: The version, with its state.
            turn: Held whenever `flush` needs the engine.
        """
        writer = self._required_writer()
        if base.version <= self._folded:
            return None
        writer.sync_all()
        program, state, persistence = base.program, base.state, self.persistence
        before, now = self._signatures, persistence.signatures(state, program.rules)
        there = owners_of(program)
        explicit, derived = persistence.counts(state)
        seconds = {name: taken for name, taken in self._seconds.items() if name in there}
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
        gone: list[Renewed] = [(key, None) for key in before if key not in now]
        changed = persistence.changed_partitions(state, now, before, self._table.writer, turn)
        writer.rotate()
        beside, self._beside = self._beside, 0
        return PendingFlush(
            snapshot,
            now,
            chain(gone, changed),
            beside,
            captured=persistence.captures,
            whole=not self._knows_all,
        )

    def flush(self, folding: PendingFlush) -> bool:
        """Bring the table up to what was taken hold of; tell whether it has it now.

        Where several may write, somebody else may have folded meanwhile. If the table has an older version
        then, hold must be taken of all parts again.
        """
        try:
            built = self._table.commit(folding.snapshot, self._built, folding.parts, whole=folding.whole)
        except BehindError:
            return self._caught_up(folding)
        except StoreProblem as problem:
            # Not again with every change: the log may grow a while.
            self.flush_bytes *= 2
            self._beside += folding.beside
            raise only_logged(problem) from problem
        self._built, self._knows_all = built, True
        self._signatures, self._folded = folding.signatures, folding.snapshot.version
        self._seconds = folding.snapshot.seconds
        return True

    def _caught_up(self, folding: PendingFlush) -> bool:
        """Take note of what somebody else folded; tell whether that is what was to be folded, or newer."""
        newest = next(self._table.commits())
        self._built = Built(newest.number, tuple(self._table.files(newest)))
        self._signatures, self._knows_all = {}, False
        self._folded = newest.snapshot.version
        if self._folded >= folding.snapshot.version:
            return True
        self._beside += folding.beside
        return False

    def close(self) -> None:
        """Let others write."""
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
        """Remove what no version of the last time needs, or only tell how much that is."""
        self._required_writer()
        doomed = unused_files(self.location, self._table, kept)
        return tell(doomed) if dry else vacuum(self.location, self._table, doomed)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _author() -> str:
    try:
        return printable(getpass.getuser())
    except (OSError, KeyError):
        # An account without a name, as containers have.
        return "unknown"
