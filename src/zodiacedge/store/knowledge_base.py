"""The knowledge base of a store: a change is logged before it is in force, and versions can be read.

Opening loads the last commit of the Delta table and replays the later records of the log. The log is flushed
in the background when it is long, and when the knowledge base is closed.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Progress
from zodiacedge.engine.reference import ReferenceNetChange
from zodiacedge.kb.arguments import given_time, given_version
from zodiacedge.kb.change import Change, ChangeNote
from zodiacedge.kb.knowledge_base import KnowledgeBase, log_change
from zodiacedge.kb.report import ChangeReport
from zodiacedge.store.flush import Flusher
from zodiacedge.store.store import DurableStore, LoadedVersion
from zodiacedge.store.versions import replay
from zodiacedge.store.versions.diff import VersionDiff
from zodiacedge.store.versions.restore import check_counts, missing_calls
from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from zodiacedge.engine.api import Engine, FactDelta, Settings, UncommittedState
    from zodiacedge.engine.registry import Registry
    from zodiacedge.errors import Diagnostic
    from zodiacedge.store.log.record import Entry
    from zodiacedge.store.log.record_format import Record
    from zodiacedge.store.table.delta_table import ChangedPartition
    from zodiacedge.store.table.pending_flush import PendingFlush
    from zodiacedge.store.versions.vacuum import VacuumReport


_LOGGER = logging.getLogger(__name__)


class StoredKnowledgeBase(KnowledgeBase):
    """A knowledge base in a store that outlives the process."""

    def __init__(
        self, engine: Engine, settings: Settings, store: DurableStore, at: int | None = None
    ) -> None:
        """Load a version of a store, by default the last; use `zodiacedge.open` instead."""
        super().__init__(engine, settings)
        self._store = store
        self._flusher = Flusher()
        self._unregistered: tuple[Diagnostic, ...] = ()
        self._streams: dict[str, int] = {}
        # Replayed changes are in the log already.
        self._is_replaying = False
        started = time.perf_counter()
        try:
            self._load(at)
        except BaseException:
            store.close()
            raise
        purpose, seconds = "writing" if store.writable else "reading", time.perf_counter() - started
        _LOGGER.info(
            "opened %s at version %d for %s, %.3f s", store.location, self._version, purpose, seconds
        )

    def _load(self, at: int | None) -> None:
        """Load a version: the commit before it, and the records after that."""
        store, settings = self._store, self._settings
        self._tell("reading the store")
        loaded, records = store.load(at, self._engine.empty, self._host(), settings.registry)
        # A refresh replaces the version that readers see: not while a thread is within `reading`.
        with self._engine_lock:
            self._program, self._state, self._version = loaded.program, loaded.state, loaded.version
            self._prefixes, self._unregistered = loaded.prefixes, loaded.unregistered
            self._streams = loaded.streams
        with self._replaying():
            if records:
                store.check_changes(self._unregistered, dry=True)
            replayed = 0
            for change, entries in replay.replayed_changes(records, lambda: self._state, store.persistence):
                self._tell("replaying the log", replayed, len(records), "change")
                replayed += len(entries)
                self._replay(change, ChangeNote())
                self._version = entries[-1].version
                check_counts(store.location, entries[-1], store.persistence.counts(self._state))
                for entry in entries:
                    self._prefixes |= entry.prefixes
                    self._streams |= {entry.stream: entry.batch} if entry.stream else {}

    @contextmanager
    def _replaying(self) -> Iterator[None]:
        """Commit changes of the log in the block; an accepted change has no evaluation errors to fail it."""
        settings = self._settings
        self._is_replaying, self._settings = True, replace(settings, strict=False)
        try:
            yield
        finally:
            self._is_replaying, self._settings = False, settings

    def refresh(self) -> tuple[ChangeReport, ...]:
        """Move a knowledge base that is open for reading to the newest version that was committed.

        Subscribers are called for each new version, as if its change were made here. New records of the log
        are replayed. If the log no longer has them, because of a vacuum, the newest version is loaded and
        compared.

        Returns:
            The report of each new version; one report for all of them if the newest version was loaded.
        """
        with self._gate.exclusive():
            records = self._store.new_records(self._version)
            if records is None:
                report = self._reloaded()
                log_change(report)
                if report.committed:
                    self._subscribers.notify(report)
                return (report,) if report.committed else ()
            reports = []
            for record in records:
                report = self._replayed(record)
                reports.append(report)
                log_change(report)
                self._subscribers.notify(report)
            return tuple(reports)

    def _replayed(self, record: Record) -> ChangeReport:
        """Replay the record of the next version."""
        store = self._store
        with self._replaying():
            store.check_changes(self._unregistered, dry=True)
            with self._locked_state() as state:
                change, entry = replay.replayed_change(record, state, store.persistence)
            stream = (entry.stream, entry.batch) if entry.stream else None
            report = self._replay(change, ChangeNote(entry.message, entry.prefixes, stream))
            check_counts(store.location, entry, store.persistence.counts(self._state))
            self._version = entry.version
            store.replayed(record)
        return replace(report, version_after=entry.version)

    def _replay(self, change: Change, note: ChangeNote) -> ChangeReport:
        done = self._commit(change, note)
        if done.interruption:
            raise done.interruption
        return done.report

    def _reloaded(self) -> ChangeReport:
        """Load the newest version, and report its differences from the version before."""
        started = time.perf_counter()
        with self._locked_state() as before:
            version, rules, explicit = self._version, self.rules, before.explicit()
        self._load(None)
        with self._locked_state() as after:
            inserted, deleted = after.diff(before)
            now = after.explicit()
        return ChangeReport(
            version,
            self._version,
            tuple(rule for rule in self.rules if rule not in rules),
            tuple(rule for rule in rules if rule not in self.rules),
            len(now - explicit),
            len(explicit - now),
            ReferenceNetChange(inserted, deleted),
            (),
            {},
            (),
            time.perf_counter() - started,
        )

    def close(self) -> None:
        """Flush the log into the table, and let other processes write. The state stays readable."""
        try:
            if self._store.writable:
                self.flush()
        finally:
            self._store.close()
            _LOGGER.debug("closed %s at version %d", self._store.location, self._version)

    def flush(self) -> None:
        """Flush the log into the table."""
        with self._gate.exclusive():
            self._flusher.flush(self._store, self._told_flush)

    def _told_flush(self) -> PendingFlush | None:
        """Capture the changes that the table lacks, and report each partition that is written."""
        pending = self._pending_flush()
        if pending is None or self._settings.progress is None:
            return pending
        return replace(pending, partitions=self._told(pending.partitions, pending.count))

    def _told(self, partitions: Iterator[ChangedPartition], count: int) -> Iterator[ChangedPartition]:
        self._tell("writing the store", 0, count, "partition")
        for done, partition in enumerate(partitions, 1):
            yield partition
            self._tell("writing the store", done, count, "partition")

    def _tell(self, stage: str, done: int = 0, total: int = 0, unit: str = "") -> None:
        if self._settings.progress:
            self._settings.progress(Progress.of_stage(stage, done, total, unit))

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
        self._tell("writing the log")
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
