"""The knowledge base of a store: a change is logged before it is in force, and versions can be read.

Opening loads the last commit of the Delta table and replays the later records of the log. The log is flushed
in the background when it is long, and when the knowledge base is closed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.kb.arguments import given_time, given_version
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.store.flush import Flusher
from zodiacedge.store.store import DurableStore, LoadedVersion
from zodiacedge.store.versions import replay
from zodiacedge.store.versions.diff import VersionDiff
from zodiacedge.store.versions.restore import check_counts, missing_calls
from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from datetime import timedelta

    from zodiacedge.engine.api import Engine, FactDelta, Settings, UncommittedState
    from zodiacedge.engine.registry import Registry
    from zodiacedge.errors import Diagnostic
    from zodiacedge.kb.change import ChangeNote
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.store.log.record import Entry
    from zodiacedge.store.table.pending_flush import PendingFlush
    from zodiacedge.store.versions.vacuum import VacuumReport


class StoredKnowledgeBase(KnowledgeBase):
    """A knowledge base in a store that outlives the process."""

    def __init__(
        self, engine: Engine, settings: Settings, store: DurableStore, at: int | None = None
    ) -> None:
        """Load a version of a store, by default the last; use `zodiacedge.open` instead."""
        super().__init__(engine, settings)
        self._store = store
        self._flusher = Flusher()
        # Replayed changes are in the log already.
        self._is_replaying = True
        try:
            loaded, records = store.load(at, engine.empty, self._host(), settings.registry)
            self._program, self._state, self._version = loaded.program, loaded.state, loaded.version
            self._prefixes, self._unregistered = loaded.prefixes, loaded.unregistered
            self._streams = loaded.streams
            if records:
                store.check_changes(self._unregistered, dry=True)
            # An accepted change is not checked for evaluation errors again.
            self._settings = replace(settings, strict=False)
            for change, entries in replay.replayed_changes(records, lambda: self._state, store.persistence):
                self.apply(change)
                self._version = entries[-1].version
                check_counts(store.location, entries[-1], store.persistence.counts(self._state))
                for entry in entries:
                    self._prefixes |= entry.prefixes
                    self._streams |= {entry.stream: entry.batch} if entry.stream else {}
            self._settings = settings
        except BaseException:
            store.close()
            raise
        self._is_replaying = False

    def close(self) -> None:
        """Flush the log into the table, and let other processes write. The state stays readable."""
        try:
            if self._store.writable:
                self.flush()
        finally:
            self._store.close()

    def flush(self) -> None:
        """Flush the log into the table."""
        with self._gate.exclusive():
            self._flusher.flush(self._store, self._pending_flush)

    def _pending_flush(self) -> PendingFlush | None:
        """Capture the changes that the table lacks."""
        with self._locked_state() as state:
            loaded = LoadedVersion(
                self._version, self._program, self.prefixes, state, (), dict(self._streams)
            )
            return self._store.pending_flush(loaded, self._engine_lock)

    @property
    def store(self) -> DurableStore:
        """The store that changes are recorded in."""
        return self._store

    @property
    def streams(self) -> dict[str, int]:
        """The last applied batch of each stream, by which a repeated batch is recognised."""
        return dict(self._streams)

    @property
    def recovered(self) -> tuple[Diagnostic, ...]:
        """The damage that was repaired when the store was opened; a reader reports it and leaves it."""
        return self._store.recovered

    def log(self) -> tuple[Entry, ...]:
        """Return the entries of the log that the store keeps, in the order of versions."""
        return self._store.entries()

    def at(self, version: int) -> StoredKnowledgeBase:
        """Open an earlier version of the store for reading."""
        version = given_version(version)
        store = DurableStore(self._store.location, writable=False, persistence=self._store.persistence)
        return StoredKnowledgeBase(self._engine, self._settings, store, version)

    def rollback(self, version: int, message: str = "") -> ChangeReport:
        """Commit a version with the rules and explicit facts of an earlier one."""
        version = given_version(version)
        with self._gate.exclusive():
            records = self._store.records(version, self._version)
            with self._locked_state() as state:
                change = replay.change_back(records, state, self._store.persistence)
            return self.apply(change, message=message or f"back to version {version}")

    def diff(self, before: int, after: int) -> VersionDiff:
        """Compare the rules and visible facts of two versions."""
        return VersionDiff.between(self.at(before), self.at(after))

    def vacuum(self, kept: timedelta | None = None, *, dry_run: bool = False) -> VacuumReport:
        """Flush, and remove the files that no version of the retention time (a week by default) needs.

        A dry run counts those files without flushing.
        """
        kept = None if kept is None else given_time(kept)
        with self._gate.exclusive():
            if dry_run:
                self._flusher.wait()
            else:
                self.flush()
            return self._store.vacuum(dry=dry_run) if kept is None else self._store.vacuum(kept, dry=dry_run)

    def _record(
        self, fact_delta: FactDelta, uncommitted: UncommittedState, report: ChangeReport, note: ChangeNote
    ) -> int:
        if self._is_replaying:
            return 0
        known = self._prefixes.items()
        note = replace(
            note, prefixes={p: base for p, base in note.prefixes.items() if (p, base) not in known}
        )
        return self._store.record(report, fact_delta, uncommitted, note, self._engine_lock.yield_to_waiters)

    def _committed(self, note: ChangeNote) -> None:
        self._streams.update([note.stream] if note.stream else [])

    def _before_notifying(self, ticket: int) -> None:
        if not self._is_replaying and (self._subscribers or self._store.is_long):
            self._store.sync(ticket)

    def _after_notifying(self) -> None:
        if not self._is_replaying and self._store.is_long:
            self._flusher.flush_in_background(self._store, self._pending_flush)

    def _make_durable(self, ticket: int) -> None:
        if not self._is_replaying:
            self._store.sync(ticket)

    def _withdraw(self) -> None:
        if not self._is_replaying:
            with uninterrupted():
                self._store.withdraw(self._version)

    def _check_changes(self, *, dry: bool) -> None:
        if not self._is_replaying:
            self._store.check_changes(self._unregistered, dry=dry)

    def _register(self, registry: Registry) -> None:
        super()._register(registry)
        if self._unregistered:
            self._unregistered = missing_calls(self.rules, self._host())
