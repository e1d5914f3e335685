"""A store as a whole: open it, append a version, fold, find versions again, sweep."""

from __future__ import annotations

import getpass
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.keeping import EmbeddedKeeping
from zodiacedge.engine.keeping import Capturing, PartFile
from zodiacedge.errors import StoreProblem
from zodiacedge.language.printer import format_rule
from zodiacedge.store import log
from zodiacedge.store.entry import Entry, FactChange, LogFiles, packed
from zodiacedge.store.folding import Folding
from zodiacedge.store.layout import Layout
from zodiacedge.store.lock import WriterLock
from zodiacedge.store.making import make
from zodiacedge.store.problems import (
    damaged_log,
    damaged_table,
    no_version,
    read_only,
    unregistered,
    unusable,
)
from zodiacedge.store.records import said
from zodiacedge.store.restore import graph_digest, owners_of, program_of, state_of
from zodiacedge.store.sweep import doomed_files, sweep, tell
from zodiacedge.store.table import Commit, FactTable, Snapshot, place_of, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from zodiacedge.engine.api import Attempt, Effect, State
    from zodiacedge.engine.keeping import Keeping
    from zodiacedge.engine.parts import PartKey
    from zodiacedge.engine.registry import Registry
    from zodiacedge.errors import Diagnostic
    from zodiacedge.language.checks import Host
    from zodiacedge.maintenance.program import Program
    from zodiacedge.maintenance.report import ChangeReport
    from zodiacedge.store.entry import Remarks
    from zodiacedge.store.log import Record
    from zodiacedge.store.sweep import Swept
    from zodiacedge.store.table import Renewed

# A log of more bytes is folded: what is left to replay takes seconds at most.
FOLD_BYTES = 4 << 20
# While that goes on beside the work, it may become so many times as long.
_TOO_LONG = 4
KEPT = timedelta(days=7)
# A reader looks again so often if what it reads is swept away meanwhile.
_TRIES = 10
# A part of more files than this is written anew when the table is next brought up to date.
_MOST_FILES = 16


@dataclass(frozen=True, slots=True)
class Base:
    """What a commit holds: the program and the state that replaying goes on from."""

    version: int
    program: Program
    prefixes: dict[str, str]
    state: State
    unregistered: tuple[Diagnostic, ...]
    streams: dict[str, int]


class DurableStore:
    """A store that is open: for its one writer, or for reading."""

    def __init__(
        self, root: Path, *, writable: bool, keeping: Keeping | None = None, lock: WriterLock | None = None
    ) -> None:
        """Open what is there; the states of the embedded engine are kept, if not those of another."""
        self.layout = Layout(root)
        self.layout.check()
        self.fold_bytes = FOLD_BYTES
        self.keeping: Keeping = keeping or EmbeddedKeeping()
        self._table = FactTable(self.layout)
        self._lock = (lock or WriterLock(self.layout.lock)) if writable else None
        self._writer: log.LogWriter | None = None
        self._signatures: Mapping[PartKey, object] = {}
        self._seconds: dict[str, float] = {}
        self._files: list[str] = []
        self._folded = 0
        # Bytes of facts beside the log that the table does not have yet.
        self._beside = 0
        self._closed = False
        self.recovered: tuple[Diagnostic, ...] = ()

    @classmethod
    def open(
        cls, root: Path, *, create: bool, writable: bool, keeping: Keeping | None = None
    ) -> DurableStore:
        """Open a store, or make it if there is none and that is wanted."""
        if create and writable and not Layout(root).marker.exists():
            return cls.create(root, keeping)
        return cls(root, writable=writable, keeping=keeping)

    @classmethod
    def create(cls, root: Path, keeping: Keeping | None = None) -> DurableStore:
        """Make a store in a folder that is empty or not there yet."""
        lock = make(root, Snapshot(0, (), {}, moment=_now()))
        return cls(root, writable=True, keeping=keeping, lock=lock)

    @property
    def root(self) -> Path:
        """The folder."""
        return self.layout.root

    @property
    def writable(self) -> bool:
        """Whether this is the writer."""
        return self._lock is not None

    # Versions

    def base(
        self, at: int | None, empty: Callable[[], State], host: Host, registry: Registry
    ) -> tuple[Base, list[Record]]:
        """Load the last commit, of those up to a version if one is given, and the records behind it.

        While somebody else sweeps, what was there a moment ago may be gone: then there is something newer.
        """
        for _ in range(_TRIES):
            there = self.layout.logged()
            try:
                return self._base(at, empty(), host, registry)
            except StoreProblem:
                if self.writable or self.layout.logged() == there:
                    raise
        return self._base(at, empty(), host, registry)

    def _base(
        self, at: int | None, empty: State, host: Host, registry: Registry
    ) -> tuple[Base, list[Record]]:
        commits = list(self._table.commits())
        if not commits:
            raise damaged_table(self.layout.delta_log, "holds no commit of a store")
        found = next((one for one in commits if at is None or one.snapshot.version <= at), None)
        if found is None:
            raise no_version(at or 0, commits[-1].snapshot.version, self._last(commits))
        records = self._records(found.snapshot.version, at, self._scan(found))
        last = records[-1].version if records else found.snapshot.version
        if at is not None and last != at:
            raise no_version(at, commits[-1].snapshot.version, self._last(commits))
        program, unregistered = program_of(self.root, found.snapshot, host)
        files = self._table.files(found)
        parts = self._table.parts(files, owners_of(program))
        state = state_of(self.root, self.keeping, empty, (program, found.snapshot, parts), registry)
        if self.writable:
            self._files, self._folded = files, found.snapshot.version
            self._signatures = self._known(state, program)
            self._seconds = found.snapshot.seconds
        snapshot = found.snapshot
        base = Base(
            snapshot.version, program, dict(snapshot.prefixes), state, unregistered, dict(snapshot.streams)
        )
        return base, records

    def _known(self, state: State, program: Program) -> Mapping[PartKey, object]:
        """Return the signatures of parts as they are on disk, but for those of too many small files."""
        files = Counter(name.rsplit("/", 1)[0] for name in self._files)
        found = self.keeping.signatures(state, program.rules)
        return {key: one for key, one in found.items() if files[place_of(key)] <= _MOST_FILES}

    def _scan(self, commit: Commit) -> log.Scan:
        linked = bytes.fromhex(commit.snapshot.chain) if commit.snapshot.chain else log.NO_CHAIN
        return log.Scan(0, linked, commit.snapshot.version, follows=True)

    def _last(self, commits: list[Commit]) -> int:
        records = self._records(commits[0].snapshot.version, None, self._scan(commits[0]))
        return records[-1].version if records else commits[0].snapshot.version

    def _records(self, after: int, upto: int | None, scan: log.Scan) -> list[Record]:
        """Return the records of the versions behind one, up to another; start the writer if that is all."""
        if upto is not None and upto <= after:
            return []
        files = log.files(self.layout.log)
        begin = max((n for n, (first, _) in enumerate(files) if first <= after + 1), default=0)
        found: list[Record] = []
        path: Path | None = None
        base = replace(scan)
        for number, (first, path) in enumerate(files[begin:], begin):
            if first > scan.version + 1:
                why = f"version {scan.version + 1} is missing before it"
                raise damaged_log(path, 0, 0, why, scan.version)
            for record in log.read_file(path, first, scan, last=number == len(files) - 1):
                if record.version > after:
                    found.append(record)
                if record.version == upto:
                    # What follows, damaged or not, is nothing to this version.
                    return found
        if self.writable and upto is None and self._writer is None:
            if scan.torn:
                self.recovered += (scan.torn,)
            if scan.version < base.version:
                # The table is ahead of the log: somebody took its files away.
                scan, path = base, None
            if not found and not scan.torn:
                # The table has all of it: what comes now begins a file that is swept by itself one day.
                path = None
            self._writer = log.LogWriter(self.layout.log, scan, path)
        return found

    def entries(self) -> Iterator[Entry]:
        """Yield what the log says of each version that is kept, the oldest first."""
        files = log.files(self.layout.log)
        for number, (first, path) in enumerate(files):
            for record in log.read_file(path, first, log.Scan(), last=number == len(files) - 1):
                yield said(record)

    def records(self, after: int, upto: int) -> list[Record]:
        """Return the records of the versions behind one, up to another."""
        files = log.files(self.layout.log)
        if not files or files[0][0] > after + 1:
            first = files[0][0] - 1 if files else upto
            raise no_version(after, first, upto)
        return self._records(after, upto, log.Scan(version=after))

    # Writing

    def check_changes(self, missing: tuple[Diagnostic, ...], *, dry: bool) -> None:
        """Raise where nothing may be changed, or where rules call what nobody registered."""
        if missing:
            raise unregistered(self.root, missing)
        if not dry:
            self._required_writer()

    def record(self, report: ChangeReport, effect: Effect, attempt: Attempt, remarks: Remarks) -> int:
        """Write the record of a version; return a ticket for `sync`."""
        writer = self._required_writer()
        explicit, derived = self.keeping.counts_after(effect, attempt)
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
        sides = self.keeping.came_and_went(effect, LogFiles(self.layout.log))
        facts = [
            FactChange(comes, *one) for comes, side in zip((True, False), sides, strict=True) for one in side
        ]
        ticket = writer.append(packed(entry, facts))
        self._beside += sum(one.facts.bytes for one in facts if isinstance(one.facts, PartFile))
        return ticket

    def withdraw(self) -> None:
        """Take the last record back: its change did not come about."""
        self._required_writer().withdraw()

    def sync(self, ticket: int) -> None:
        """Wait until a record is on disk."""
        self._required_writer().sync(ticket)

    @property
    def is_long(self) -> bool:
        """Whether the log is worth folding."""
        return self._behind > self.fold_bytes

    @property
    def is_too_long(self) -> bool:
        """Whether the log must be folded before it grows more."""
        return self._behind > _TOO_LONG * self.fold_bytes

    @property
    def _behind(self) -> int:
        return self._writer.size + self._beside if self._writer is not None else 0

    def folding(self, base: Base, turn: AbstractContextManager[object]) -> Folding | None:
        """Take hold of what the table lacks of the version that the log has; nothing if it has all of it.

        Nothing may change meanwhile. What comes afterwards goes to a log file of its own.

        Args:
            base: The version, with its state.
            turn: Held whenever `fold` needs the engine.
        """
        writer = self._required_writer()
        if base.version == self._folded:
            return None
        writer.sync_all()
        program, state, keeping = base.program, base.state, self.keeping
        before, now = self._signatures, keeping.signatures(state, program.rules)
        there = owners_of(program)
        explicit, derived = keeping.counts(state)
        seconds = {name: taken for name, taken in self._seconds.items() if name in there}
        seconds |= {segment_name(keys): taken for keys, taken in keeping.seconds(state).items()}
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
        captures = isinstance(keeping, Capturing)
        renewed: Iterator[Renewed] = (
            keeping.captured(state, now, before)(turn)
            if isinstance(keeping, Capturing)
            else keeping.renewed(state, now, before, self._table.writer)
        )
        writer.rotate()
        beside, self._beside = self._beside, 0
        return Folding(snapshot, now, chain(gone, renewed), beside, captured=captures)

    def fold(self, folding: Folding) -> None:
        """Bring the table up to what was taken hold of."""
        try:
            self._files = self._table.commit(folding.snapshot, self._files, folding.parts)
        except StoreProblem:
            # Not again with every change: the log may grow a while.
            self.fold_bytes *= 2
            self._beside += folding.beside
            raise
        self._signatures, self._folded = folding.signatures, folding.snapshot.version
        self._seconds = folding.snapshot.seconds

    def close(self) -> None:
        """Let others write."""
        self._closed = True
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _required_writer(self) -> log.LogWriter:
        if self._closed:
            raise unusable(self.root, "it is closed")
        if self._writer is None:
            raise read_only(self.root)
        return self._writer

    def vacuum(self, kept: timedelta = KEPT, *, dry: bool = False) -> Swept:
        """Remove what no version of the last time needs, or only tell how much that is."""
        self._required_writer()
        doomed = doomed_files(self.layout, self._table, kept)
        return tell(doomed) if dry else sweep(self.layout, self._table, doomed)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _author() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # An account without a name, as containers have.
        return "unknown"
