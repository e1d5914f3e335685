"""The knowledge base of a store: a change is logged before it is in force, and versions can be read.

Opening loads the last commit of the Delta table and replays the later records of the log. The log is flushed
in the background when it is long, and when the knowledge base is closed.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Progress
from zodiacedge.engine.reference import ReferenceNetChange
from zodiacedge.engine.yield_point import ALONE
from zodiacedge.errors import StoreProblem
from zodiacedge.explain.explainer import MOST_VERSIONS, asked_fact, is_visible
from zodiacedge.explain.history import History
from zodiacedge.kb.apply import CurrentVersion, evaluate_change
from zodiacedge.kb.arguments import given_bytes, given_time, given_version, given_versions
from zodiacedge.kb.change import Change, ChangeNote
from zodiacedge.kb.knowledge_base import KnowledgeBase, log_change
from zodiacedge.kb.report import ChangeReport
from zodiacedge.kb.tables.frame_stream import follow
from zodiacedge.packs.owners import moves
from zodiacedge.store.flush import Flusher
from zodiacedge.store.store import DurableStore, LoadedVersion
from zodiacedge.store.versions import replay
from zodiacedge.store.versions.diff import VersionDiff
from zodiacedge.store.versions.fact_history import Statements, fact_change
from zodiacedge.store.versions.restore import check_counts, missing_calls
from zodiacedge.store.versions.retention import Kept
from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from zodiacedge.engine.api import Engine, FactDelta, Settings, UncommittedState
    from zodiacedge.engine.registry import Registry
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.errors import Diagnostic
    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.history import FactChange
    from zodiacedge.explain.proof import Statement
    from zodiacedge.language.ast import Atom, Fact
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
        self._stated = Statements()
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

    def _described(self) -> str:
        return f"{type(self).__name__} {self._store.location}"

    def _load(self, at: int | None) -> None:
        """Load a version: the commit before it, and the records after that."""
        store = self._store
        self._tell("reading the store")
        current, records = store.load(at, self._engine.empty, self._host(), self._settings.registry)

        def committed(version: LoadedVersion, _: ChangeReport) -> None:
            nonlocal current
            current = version

        settings = self._replay_settings(self._engine_lock)
        changes = replay.replayed_changes(records, lambda: current.state, store.persistence)
        replayed = 0
        for change, entries in changes:
            self._tell("replaying the log", replayed, len(records), "change")
            replayed += len(entries)
            self._replay(current, change, entries, settings, committed)
        self._publish(current)

    def _publish(self, current: LoadedVersion) -> None:
        """Let readers see a version instead of the one before it; not while a thread is within `reading`."""
        explicit, _ = self._store.persistence.counts(current.state)
        with self._engine_lock, uninterrupted():
            declared, before = current.prefixes, self._declared
            # Prefixes that were added here stay, unless a change has declared them since.
            own = {p: base for p, base in self._prefixes.items() if p in declared or p not in before}
            new = {p: base for p, base in declared.items() if before.get(p) != base}
            self._prefixes, self._declared = own | new, dict(declared)
            self._program, self._state, self._version = current.program, current.state, current.version
            self._explicit_facts = explicit
            self._unregistered = current.unregistered
            self._streams = dict(current.streams)

    def _replay_settings(self, yield_point: YieldPoint) -> Settings:
        """Return settings for changes of the log: those were accepted, so evaluation errors fail none."""
        return replace(self._settings, strict=False, warn=None, yield_point=yield_point)

    def _replay(
        self,
        before: LoadedVersion,
        change: Change,
        entries: Sequence[Entry],
        settings: Settings,
        committed: Callable[[LoadedVersion, ChangeReport], None],
    ) -> None:
        """Replay the change of some entries of the log on a version, whose state is used up.

        `committed` is called with the new version and its report, and is not interrupted.
        """
        store, entry = self._store, entries[-1]
        store.check_changes(before.unregistered, dry=True)
        prefixes = {prefix: base for each in entries for prefix, base in each.prefixes.items()}
        streams = {each.stream: each.batch for each in entries if each.stream}
        usable = self._prefixes | before.prefixes
        current = CurrentVersion(before.version, before.program, before.state, usable, before.prefixes)
        with self._gate.inside():
            program, fact_delta, uncommitted, report, *_ = evaluate_change(
                current, change, self._host(), settings, ChangeNote(entry.message, prefixes)
            )
            check_counts(store.location, entry, store.persistence.counts_after(fact_delta, uncommitted))
            with uninterrupted():
                after = LoadedVersion(
                    entry.version,
                    program,
                    before.prefixes | prefixes,
                    uncommitted.commit(),
                    before.unregistered,
                    before.streams | streams,
                )
                committed(after, replace(report, version_after=entry.version))
                after.state.reclaim(program.rules)

    def stream(
        self,
        frame: DataFrame,
        relation: str,
        /,
        *,
        checkpoint: str,
        trigger: Mapping[str, object] | None = None,
        applied: Callable[[ChangeReport], object] | None = None,
        **columns: object,
    ) -> StreamingQuery:
        """Apply the batches of a streaming DataFrame as changes, each exactly once; return Spark's query.

            kb.stream(df, "reading", checkpoint="farm.checkpoint", sensor=ze.iri("{sensor}"), value=...)

        Args:
            frame: A DataFrame of `spark.readStream`, on a session with its driver in this process.
            relation: The relation of its rows.
            checkpoint: A folder where Spark notes what it has delivered.
            trigger: When batches begin, as for `writeStream.trigger`; what is there now if not given.
            applied: Called with the report of each change.
            columns: The columns, as for `add_facts`.
        """
        return follow(self, frame, relation, columns, checkpoint, trigger or {}, applied)

    def refresh(self) -> tuple[ChangeReport, ...]:
        """Move a knowledge base that is open for reading to the newest version that was committed.

        New records of the log are replayed. If the log no longer has them, because of a vacuum, the newest
        version is loaded and compared. Other threads read the version before or the newest one, none in
        between: they wait while the second and later records are replayed. If a record cannot be replayed,
        the knowledge base is at the version before it.

        Subscribers are called for each new version in turn, once the newest is in force.

        Returns:
            The report of each new version; one report for all of them if the newest version was loaded.
        """
        with self._gate.exclusive():
            records = self._store.new_records(self._version)
            reports: list[ChangeReport] = []
            try:
                if records is None:
                    reports += self._reloaded()
                else:
                    self._replay_records(records, reports)
            finally:
                for report in reports:
                    log_change(report)
                self._subscribers.notify(*reports)
            return tuple(reports)

    def _replay_records(self, records: Iterable[Record], reports: list[ChangeReport]) -> None:
        """Replay records on the version in force, and append the report of each."""
        store, current = self._store, self._current()
        # A commit changes the state in place: no reader may come between the first and the last.
        with self._engine_lock:
            try:
                for record in records:
                    change, entry = replay.replayed_change(record, current.state, store.persistence)

                    def committed(version: LoadedVersion, report: ChangeReport, of: Record = record) -> None:
                        nonlocal current
                        current = version
                        reports.append(report)
                        store.replayed(of)

                    settings = self._replay_settings(ALONE if reports else self._engine_lock)
                    self._replay(current, change, [entry], settings, committed)
            finally:
                self._publish(current)

    def _current(self) -> LoadedVersion:
        return LoadedVersion(
            self._version,
            self._program,
            dict(self._declared),
            self._state,
            self._unregistered,
            dict(self._streams),
        )

    def _reloaded(self) -> tuple[ChangeReport, ...]:
        """Load the newest version, and report its differences from the version before, if it is another."""
        started = time.perf_counter()
        with self._locked_state() as before:
            version, rules, explicit = self._version, self.rules, before.explicit()
            packs = self.installed
        self._load(None)
        with self._locked_state() as after:
            inserted, deleted = after.diff(before)
            now = after.explicit()
        report = ChangeReport(
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
            packs=moves(packs, self.installed),
            packs_delta=packs.delta_to(self.installed),
        )
        return (report,) if report.committed else ()

    def close(self) -> None:
        """Flush the log into the table, and let other processes write. The state stays readable."""
        try:
            if self._store.writable:
                self.flush()
                self._store.forget_old_versions()
        finally:
            self._store.close()
            _LOGGER.debug("closed %s at version %d", self._store.location, self._version)

    def flush(self) -> None:
        """Flush the log into the table."""
        with self._gate.exclusive():
            self._flusher.flush(self._store, self._reported_flush)

    def _reported_flush(self) -> PendingFlush | None:
        """Capture the changes that the table lacks, and report each partition that is written."""
        pending = self._pending_flush()
        if pending is None or self._settings.progress is None:
            return pending
        return replace(pending, partitions=self._reported(pending.partitions, pending.count))

    def _reported(self, partitions: Iterator[ChangedPartition], count: int) -> Iterator[ChangedPartition]:
        self._tell("writing the store", 0, count, "partition")
        for done, partition in enumerate(partitions, 1):
            yield partition
            self._tell("writing the store", done, count, "partition")

    def _tell(self, stage: str, done: int = 0, total: int = 0, unit: str = "") -> None:
        if self._settings.progress:
            self._settings.progress(Progress.of_stage(stage, done, total, unit))

    def _pending_flush(self) -> PendingFlush | None:
        """Capture the changes that the table lacks."""
        with self._locked_state():
            return self._store.pending_flush(self._current(), self._engine_lock)

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
        """Commit a version with the rules and explicit facts of an earlier one.

        Prefixes get the meaning that they had in that version; those that were declared since stay.
        """
        version = given_version(version)
        with self._gate.exclusive():
            records = self._store.records(version, self._version)
            with self._locked_state() as state:
                change = replay.change_back(records, state, self._store.persistence)
            change = replace(change, packs=self._program.packs.delta_to(self._store.packs_at(version)))
            prefixes = self._store.prefixes_at(version)
            return self.apply(change, message=message or f"back to version {version}", prefixes=prefixes)

    def diff(self, before: int, after: int) -> VersionDiff:
        """Compare the rules and visible facts of two versions."""
        return VersionDiff.between(self.at(before), self.at(after))

    def why_changed(
        self, fact: str | Fact | Atom, *, versions: int = MOST_VERSIONS, budget: Budget | None = None
    ) -> History:
        """Explain since when a fact is there or not: the versions that inserted or deleted it, and the edits.

            kb.why_changed("alarm(wt1)")

        Args:
            fact: The fact.
            versions: How many versions to look back; those that the log keeps, at most.
            budget: What the search for one proof may spend.
        """
        asked = asked_fact(fact, self._prefixes)
        most = given_versions(versions)
        with self._locked_state() as state:
            upto, there = self._version, is_visible(asked, state.lookups(self._settings))
        oldest = self._store.first_version(upto)
        since = max(oldest, upto - most)
        changes: list[FactChange] = []
        with self.at(since) as walk:
            for record in self._store.records(since, upto):
                report = walk._step(record)  # noqa: SLF001 - of this very class
                inserted, deleted = report.net.facts(lambda predicate: predicate == asked.predicate)
                if asked in inserted:
                    changes.append(fact_change(record, walk.explain(asked, budget=budget), inserted=True))
                elif asked in deleted:
                    with self.at(report.version_after - 1) as before:
                        changes.append(
                            fact_change(record, before.explain(asked, budget=budget), inserted=False)
                        )
        # A predicate that is unknown now, but was known, has changes.
        note = "" if changes or there else self._unknown(asked)
        return History(asked, there, tuple(changes[::-1]), since, upto, since == oldest, note, self.prefixes)

    def _step(self, record: Record) -> ChangeReport:
        """Move a knowledge base that is open at a version to the next one, whose record is given."""
        reports: list[ChangeReport] = []
        with self._gate.exclusive():
            self._replay_records([record], reports)
        return reports[0]

    def _statements(self, facts: Collection[Fact]) -> Mapping[Fact, Statement]:
        stated = self._stated
        if facts and stated.version != self._version:
            after = stated.version or self._store.first_version(self._version)
            with suppress(StoreProblem):
                stated.read(self._store.records(after, self._version))
        return stated.of(facts)

    def retain(self, kept: timedelta, *, most_bytes: int | None = None) -> None:
        """Set how long versions are kept, for this process and later ones: `kb.retain(timedelta(days=7))`.

        Older versions are removed while the store is written, a part of them after a flush. The last version
        is always kept. A store whose owner sets no time keeps the versions of a week.

        Args:
            kept: How long.
            most_bytes: How many bytes the folder of the store may take: the oldest versions go where it takes
                more after a flush, however young they are. No bound if not given.
        """
        keeps = Kept(given_time(kept), given_bytes(most_bytes))
        with self._gate.exclusive():
            self._store.keep(keeps)

    @property
    def retained(self) -> timedelta:
        """How long versions are kept."""
        return self._store.keeps.time

    @property
    def retained_bytes(self) -> int | None:
        """How many bytes the store may take, older versions included; None if there is no bound."""
        return self._store.keeps.most_bytes

    def vacuum(self, kept: timedelta | None = None, *, dry_run: bool = False) -> VacuumReport:
        """Flush, and remove the files that no version of the retention time needs; see `retain`.

        A dry run counts those files without flushing.
        """
        kept = None if kept is None else given_time(kept)
        with self._gate.exclusive():
            if dry_run:
                self._flusher.wait()
            else:
                self.flush()
            return self._store.vacuum(kept, dry=dry_run)

    def _record(
        self, fact_delta: FactDelta, uncommitted: UncommittedState, report: ChangeReport, note: ChangeNote
    ) -> int:
        self._tell("writing the log")
        return self._store.record(report, fact_delta, uncommitted, note, self._engine_lock.yield_to_waiters)

    def _committed(self, note: ChangeNote) -> None:
        self._streams.update([note.stream] if note.stream else [])

    def _before_notifying(self, ticket: int) -> None:
        if self._subscribers or self._store.is_long:
            self._store.sync(ticket)

    def _after_notifying(self) -> None:
        if self._store.is_long:
            self._flusher.flush_in_background(self._store, self._pending_flush)

    def _make_durable(self, ticket: int) -> None:
        self._store.sync(ticket)

    def _withdraw(self) -> None:
        with uninterrupted():
            self._store.withdraw(self._version)

    def _check_changes(self, *, dry: bool) -> None:
        self._store.check_changes(self._unregistered, dry=dry)

    def _register(self, registry: Registry) -> None:
        super()._register(registry)
        if self._unregistered:
            self._unregistered = missing_calls(self.rules, self._host())
