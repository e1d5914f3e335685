"""The knowledge base: the façade that users import.

A knowledge base holds rules and explicit facts and maintains the derived facts. A change is one transaction:
it is committed as a whole, or refused without effect.

Threads may share it. Changes are serialised; concurrent readers see the version before. Only one thread works
in the engine at a time, and a change yields to waiting readers.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from zodiacedge.engine.api import KnowsWhatIsDue, ListsFrames
from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.engine.select import engine_named
from zodiacedge.errors import Diagnostic, StratificationProblem, UsageProblem, counted
from zodiacedge.explain.explainer import (
    MOST_FACTS,
    MOST_VERSIONS,
    Explainer,
    Version,
    asked_fact,
    is_visible,
)
from zodiacedge.explain.history import History
from zodiacedge.extras import need
from zodiacedge.io import spark_frame
from zodiacedge.kb.answers import Answers, session_for
from zodiacedge.kb.apply import CurrentVersion, evaluate_change, failing
from zodiacedge.kb.arguments import given_function_name, given_limit, given_message, given_text, in_memory
from zodiacedge.kb.change import Change, ChangeNote
from zodiacedge.kb.locks import WriterGate
from zodiacedge.kb.query import CheckedQuery, Prepared, answerable, checked_query, columns_of
from zodiacedge.kb.report import ChangeReport, per_predicate
from zodiacedge.kb.rule_base import RuleBase
from zodiacedge.kb.slice import cut_slice, matching_facts, parse_slice
from zodiacedge.kb.subscribe import Subscribers, predicate_name
from zodiacedge.kb.tables.predicates import arrow_table_of, columns_for, predicate_of
from zodiacedge.kb.time.clock import clock_of, system_time
from zodiacedge.kb.time.hidden import is_hidden_name, shown
from zodiacedge.kb.time.retention import next_forgotten, retention_of
from zodiacedge.kb.transaction import Transaction, given_change
from zodiacedge.kb.verify import Verification, verified
from zodiacedge.kb.warnings import mistaken_constants, unknown_predicates
from zodiacedge.language.ast import Atom, Variable, body_atoms
from zodiacedge.language.checks import Host
from zodiacedge.language.names import full_name
from zodiacedge.language.printer import format_predicate
from zodiacedge.language.vocabulary import AGGREGATES, CHOOSING, DEFAULT_PREFIXES, LATEST
from zodiacedge.language.windows import at_time, is_hidden
from zodiacedge.packs.file import read_pack
from zodiacedge.packs.install import InForce, message_of, naming_packs, pack_change, way_back
from zodiacedge.terms import IRI, RDF_TYPE, from_python
from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime
    from types import TracebackType

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from zodiacedge.engine.api import (
        Batch,
        Engine,
        FactDelta,
        Lookups,
        MemoryUse,
        Settings,
        State,
        UncommittedState,
    )
    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.missing import WhyNot
    from zodiacedge.explain.proof import Proof, Statement
    from zodiacedge.graph import HyperGraph
    from zodiacedge.kb.apply import EvaluatedChange
    from zodiacedge.kb.slice import Slice
    from zodiacedge.kb.subscribe import Notice, Subscription
    from zodiacedge.kb.time.retention import Retention
    from zodiacedge.kb.transaction import Facts
    from zodiacedge.language.ast import Fact, Predicate, Rule
    from zodiacedge.packs.delta import PackDelta
    from zodiacedge.packs.manifest import Check, Manifest
    from zodiacedge.packs.owners import Packs
    from zodiacedge.packs.pack import Pack


_LOGGER = logging.getLogger(__name__)
_Callable = TypeVar("_Callable", bound="Callable[..., object]")
# Attributes of `store.knowledge_base.StoredKnowledgeBase` only.
_STORE_ONLY = frozenset(
    {"at", "diff", "flush", "log", "recovered", "refresh", "retain", "retained", "rollback"}
    | {"store", "stream", "streams", "vacuum"}
)


def log_change(report: ChangeReport) -> None:
    """Log a change that was made here, or by another process before a refresh."""
    _LOGGER.info(
        "%s: rules +%d -%d, explicit facts +%d -%d, hyper-nodes visited %d, %.3f s",
        report.versions,
        len(report.rules_added),
        len(report.rules_removed),
        report.facts_added,
        report.facts_removed,
        len(report.nodes),
        report.seconds,
    )


class _Commit(NamedTuple):
    # A change in force: its report, its ticket in the log, and an interruption to raise at the end.
    report: ChangeReport
    ticket: int = 0
    interruption: KeyboardInterrupt | None = None


def _has_content(change: Change) -> bool:
    """Whether a change of a user asks for anything."""
    return not change.accepted and bool(change.loaded or change.unloaded or change != Change())


class KnowledgeBase:
    """Rules, explicit facts (EDB) and derived facts (IDB)."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        """Start empty; use `zodiacedge.open` instead."""
        self.ticks_itself = False
        """Whether each change moves the clock to the time of the system: `open(…, clock="system")`."""
        self._engine = engine
        self._settings = settings
        self._program = RuleBase()
        self._prefixes: dict[str, str] = {}
        # Those that changes have declared; `add_prefixes` adds others, which the next change declares.
        self._declared: dict[str, str] = {}
        self._version = 0
        self._explicit_facts = 0
        self._state = engine.empty()
        self._gate = WriterGate()
        self._engine_lock = self._gate.engine_lock
        self._subscribers = Subscribers()
        self._time: tuple[State, datetime | None] | None = None
        self._retention: tuple[State, Retention] | None = None
        self._due: tuple[State, datetime | None] | None = None
        self._explained: tuple[State, Settings, Explainer] | None = None
        self._changing: tuple[Settings, Settings, Host] | None = None

    def __enter__(self) -> Self:
        """Return the knowledge base; the end of the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the knowledge base."""
        self.close()

    def __repr__(self) -> str:
        """Return the engine, the version and the numbers of rules and explicit facts."""
        rules, facts = len(self._program.rules), self._explicit_facts
        return (
            f"<{self._described()}, engine {self.engine}, version {self._version}: "
            f"{counted(rules, 'rule')}, {counted(facts, 'explicit fact')}>"
        )

    def tick_when_due(self) -> ChangeReport | None:
        """Tick to the time of the system if a moment enters or leaves a window by then, or a fact must go.

        Only with `clock="system"`, on an engine that knows what is due: long-running commands call it.
        """
        if not self.ticks_itself:
            return None
        with self._locked_state():
            due = self._next_due()
        present = system_time()
        if due is None or due > present:
            return None
        try:
            return self.tick(present)
        except UsageProblem:
            if (self.now or present) <= present:
                raise
            # A change of another thread has ticked meanwhile, and did what was due.
            return None

    def _next_due(self) -> datetime | None:
        state, now = self._state, self._clock()
        if not isinstance(state, KnowsWhatIsDue) or now is None:
            return None
        if self._due is None or self._due[0] is not state:
            forgotten = next_forgotten(self._kept(), state, now)
            found = [moment for moment in (state.next_due(), forgotten) if moment is not None]
            self._due = state, min(found, default=None)
        return self._due[1]

    def _described(self) -> str:
        return type(self).__name__

    def close(self) -> None:
        """Release resources outside memory; a knowledge base in memory has none."""

    def matching(self, query: str, /, **values: object) -> frozenset[Fact]:
        """Return the facts that the atoms of a query match in its answers, explicit or derived.

            kb.matching("?- near(T, N), reading(N, V) .", T=ze.iri("wt1"))

        Args:
            query: `?- body .`; atoms under `not` and in an AGGREGATE only filter.
            values: Values for variables of it.
        """
        terms = {name: from_python(value) for name, value in values.items()}
        selections = parse_slice([given_text(query)], terms, prefixes=self._prefixes, host=self._host())
        with self._locked_state() as state:
            return matching_facts(selections, state, self._settings)

    @property
    def version(self) -> int:
        """The number of committed changes."""
        return self._version

    @property
    def engine(self) -> str:
        """The name of the engine."""
        return self._engine.name

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force."""
        return tuple(rule for rule in self._program.rules.values() if not is_hidden(rule))

    @property
    def now(self) -> datetime | None:
        """The time of the knowledge base, in UTC; None before the first tick."""
        with self._locked_state():
            return self._clock()

    def _clock(self) -> datetime | None:
        if self._time is None or self._time[0] is not self._state:
            self._time = self._state, clock_of(self._state, self._settings)
        return self._time[1]

    def tick(self, moment: datetime | str | None = None, *, message: str = "") -> ChangeReport:
        """Move the clock to a moment, `"2026-01-01T12:00:00Z"` or a datetime; the system's time if not given.

            kb.tick("2026-01-01T12:10:00Z")

        It is a change like any other: rules with windows are brought up to date, what `@keep` no longer keeps
        is removed, and a store logs it. The clock cannot go back; to the present time it has no effect.
        """
        transaction = Transaction(self, message)
        with transaction:
            transaction.tick(moment)
        return transaction.report

    @property
    def explicit(self) -> frozenset[Fact]:
        """The explicit facts."""
        with self._locked_state() as state:
            return state.explicit()

    def explicit_counts(self, *, prefixed: bool = False) -> dict[str, int]:
        """Count the explicit facts per predicate, without listing them; names in full, or as in programs."""
        with self._locked_state() as state:
            return per_predicate(state.explicit_counts(), show=self._shown if prefixed else str)

    def held(self) -> tuple[MemoryUse, ...]:
        """Return what this knowledge base holds in memory, and how much of that could be given back."""
        with self._locked_state() as state:
            return state.held()

    @property
    def state(self) -> State:
        """The engine's state; if threads share the knowledge base, use it only within `reading`."""
        return self._state

    def graph(self) -> HyperGraph:
        """Return the hyper rule dependency graph."""
        return self._program.graph

    def facts(self) -> frozenset[Fact]:
        """Return all visible facts."""
        with self._locked_state() as state:
            facts = state.visible()
        if any(is_hidden(rule) for rule in self._program.rules.values()):
            facts = frozenset(fact for fact in facts if not is_hidden_name(fact.relation))
        return facts

    def derived(self, *, prefixed: bool = False) -> dict[str, int]:
        """Count derived facts per predicate, also explicit ones; names in full, or as programs write them.

        All predicates with rules are listed.
        """
        with self._locked_state() as state:
            # rdf:type with a variable class is not a predicate of its own: its facts belong to classes.
            heads = {rule.head.predicate for rule in self.rules if rule.head.predicate.name != RDF_TYPE}
            counts = dict.fromkeys(heads, 0) | dict(state.derived_counts())
            return per_predicate(shown(counts), self._known(), self._shown if prefixed else str)

    def _shown(self, name: str) -> str:
        return format_predicate(name, {**DEFAULT_PREFIXES, **self._prefixes})

    def reading(self) -> AbstractContextManager[object]:
        """Let all reads of a `with` block see one version: changes of other threads wait."""
        return self._engine_lock

    def change(self, message: str = "") -> Transaction:
        """Begin a change: `with kb.change() as c: …` commits at the end of the block.

        The log of a store keeps the message.
        """
        return Transaction(self, message)

    def apply(
        self,
        change: Change,
        *,
        message: str = "",
        prefixes: Mapping[str, str] | None = None,
        committed: Callable[[ChangeReport], None] | None = None,
        stream: tuple[str, int] | None = None,
    ) -> ChangeReport:
        """Commit a change as one transaction, or raise without effect.

        A change without effect creates no version, unless it brings prefixes or belongs to a stream.
        A change of a store is durable when this returns. Subscribers are called before; their exceptions are
        raised as one `ExceptionGroup`, and the change stays committed.

        Args:
            change: Rules and facts to insert and to delete.
            message: A text for the log of a store.
            prefixes: Prefixes for later texts, once the change is committed.
            committed: Called with the report, before subscribers are called.
            stream: The stream and batch number of the change, recorded with it: see `streams`.
        """
        message, change = given_message(message), given_change(change)
        with self._gate.exclusive():
            usable = {**self._prefixes, **(prefixes or {})}
            if self.ticks_itself and change.tick is None and _has_content(change):
                present = self.now
                change = replace(change, tick=max(system_time(), present) if present else system_time())
            done = self._commit(change, ChangeNote(message, usable, stream), committed)
            report = done.report
            log_change(report)
            if not report.committed:
                return report
            self._before_notifying(done.ticket)
            self._subscribers.notify(report)
            self._after_notifying()
        # Outside the lock, so that concurrent changes share one wait for the disk.
        self._make_durable(done.ticket)
        if done.interruption:
            raise done.interruption
        return report

    def _commit(
        self, change: Change, note: ChangeNote, committed: Callable[[ChangeReport], None] | None = None
    ) -> _Commit:
        """Evaluate a change and bring it into force; subscribers are not called yet."""
        with self._locked_state():
            new_prefixes = self._new_prefixes(note.prefixes)
            if len(new_prefixes) != len(note.prefixes):
                note = replace(note, prefixes=new_prefixes)
            program, fact_delta, uncommitted, report, now, kept = self._evaluated(change, note)
            if not report.committed:
                if committed:
                    committed(report)
                return _Commit(report)
            # Steps that can fail come first; the commit itself cannot be interrupted.
            uncommitted.prepare()
            try:
                ticket = self._record(fact_delta, uncommitted, report, note)
                with uninterrupted():
                    self._program, self._state = program, uncommitted.commit()
                    self._time = self._state, now
                    self._retention = (self._state, kept) if kept else None
                    self._explained = self._due = None
                    self._version = report.version_after
                    self._explicit_facts += report.facts_added - report.facts_removed
                    self._prefixes.update(note.prefixes)
                    self._declared.update(note.prefixes)
                    self._committed(note)
                    if committed:
                        committed(report)
                    self._state.reclaim(program.rules)
            except BaseException as problem:
                if self._version != report.version_after:
                    self._withdraw()
                    raise
                if not isinstance(problem, KeyboardInterrupt):
                    raise
                # The interruption was deferred and the change is in force: notify subscribers first.
                return _Commit(report, ticket, problem)
        return _Commit(report, ticket)

    def dry_run(
        self,
        change: Change | None = None,
        *,
        add_rules: str | os.PathLike[str] = "",
        remove_rules: str | os.PathLike[str] = "",
        add_facts: Facts | None = None,
        remove_facts: Facts | None = None,
    ) -> ChangeReport:
        """Evaluate a change without committing it, or raise if it would be refused.

        The change is given as a whole, or in pieces as for a `Transaction`. The report is that of the change,
        except that both versions are the current one, and `report.dry_run` is true.
        """
        if change is None:
            transaction = Transaction(self)
            if add_rules:
                transaction.add_rules(add_rules)
            if remove_rules:
                transaction.remove_rules(remove_rules)
            if add_facts is not None:
                transaction.add_facts(add_facts)
            if remove_facts is not None:
                transaction.remove_facts(remove_facts)
            change = transaction.collected()
        elif add_rules or remove_rules or add_facts is not None or remove_facts is not None:
            hint = "give a whole change, or its pieces: add_rules, remove_rules, add_facts, remove_facts"
            raise UsageProblem(Diagnostic("U013", "expected a change or its pieces, found both", hint))
        change = given_change(change)
        with self._gate.exclusive(), self._locked_state():
            evaluated = self._evaluated(change, None)
            return replace(evaluated.report, questions=partial(self._dry_explainer, evaluated, self._state))

    @property
    def installed(self) -> Packs:
        """The packs in force and what they own, as a value."""
        return self._program.packs

    def packs(self) -> tuple[Manifest, ...]:
        """Return what the packs in force say about themselves, in the order of their names."""
        return tuple(pack.manifest for pack in self._program.packs.installed.values())

    def install(
        self,
        *packs: Pack | PackDelta | str | os.PathLike[str],
        remove: Collection[str] = (),
        message: str = "",
        older: bool = False,
        checked: bool = True,
        dry_run: bool = False,
    ) -> ChangeReport:
        """Install or upgrade packs as one change; commit it as a whole, or raise without effect.

            kb.install("diagnosis-8.zpack")

        Args:
            packs: Packs, deltas of packs that are installed, or their files.
            remove: The names of packs to remove in the same change.
            message: A text for the log of a store; by default it names the packs.
            older: Whether a version may replace a later one.
            checked: Whether the checks of the packs must hold; a way back leads to what was in force,
                whatever its checks say by now.
            dry_run: Whether to evaluate the change only.
        """
        given = [read_pack(pack) if isinstance(pack, str | os.PathLike) else pack for pack in packs]
        with self._gate.exclusive():
            program, now = self._program, self._in_force()
            planned = pack_change(now, given, tuple(remove), older=older)
            change = Change(planned.added, planned.removed, packs=planned.delta, checked=checked)
            prefixes = {p: base for pack in given for p, base in pack.manifest.prefixes.items()}
            try:
                if dry_run:
                    return self.dry_run(change)
                message = message or message_of(program.packs, planned.after)
                return self.apply(change, message=message, prefixes=prefixes | self._prefixes)
            except StratificationProblem as problem:
                raise naming_packs(problem, planned.after) from None

    def remove_pack(self, name: str, *, message: str = "", dry_run: bool = False) -> ChangeReport:
        """Remove a pack as one change: of its rules, those go that nothing else owns."""
        return self.install(remove=(given_text(name),), message=message, dry_run=dry_run)

    def way_back(self, pack: Pack | PackDelta) -> PackDelta | None:
        """Return the delta that leads back from a pack to the version that is in force; None if none is."""
        return way_back(self._in_force(), pack)

    def _in_force(self) -> InForce:
        program = self._program
        return InForce(program.packs, program.rules, program.labels, program.graph, self._host())

    def failing_checks(self) -> tuple[tuple[Manifest, Check], ...]:
        """Return the checks of installed packs that do not hold, with their packs."""
        with self._locked_state() as state:
            lookups = state.lookups(self._settings)
            return tuple((m, check) for m in self.packs() for check in failing(m, lookups))

    def subscribe(
        self, predicate: str | IRI | Predicate | None, callback: Callable[[Notice], object]
    ) -> Subscription:
        """Call a function after each commit that changes the visible facts of a predicate.

            kb.subscribe("alarm/1", lambda notice: print(notice.version, notice.inserted, notice.deleted))

        Args:
            predicate: `p`, `p/1`, `ex:p`, `<http://e/p>` or an IRI; a bare name means any arity,
                `rdf:type` all classes, None all predicates.
            callback: Called by the committing thread, before the next change, if such facts changed. It may
                read and change the knowledge base; callbacks for its own commits follow later.
        """
        return self._subscribers.add(predicate_name(predicate, self._prefixes), callback)

    def verify(self, against: str = "") -> Verification:
        """Evaluate the program from scratch and compare all visible facts and every segment.

        Changes wait for the verification, readers do not.

        Args:
            against: The engine that evaluates, such as `reference`; the current one if not given.
        """
        against = given_text(against)
        engine = self._engine if against in {"", self._engine.name} else engine_named(against)
        with self._gate.exclusive(), self._locked_state() as state:
            settings = replace(self._settings, yield_point=self._engine_lock)
            return verified(self._version, state, self._program, engine, settings)

    def _record(
        self, fact_delta: FactDelta, uncommitted: UncommittedState, report: ChangeReport, note: ChangeNote
    ) -> int:
        """Write a change to the log before it is in force, and return its ticket; 0 without a log."""
        del fact_delta, uncommitted, report, note
        return 0

    def _committed(self, note: ChangeNote) -> None:
        """Record the metadata of a committed change."""

    def _before_notifying(self, ticket: int) -> None:
        """Make a change durable before subscribers see it."""

    def _after_notifying(self) -> None:
        """Run maintenance after a change, before the next change begins."""

    def _make_durable(self, ticket: int) -> None:
        """Wait until the change of a ticket is on disk."""

    def _withdraw(self) -> None:
        """Remove log entries after this version: their change failed."""

    def _check_changes(self, *, dry: bool) -> None:
        """Raise if changes, or dry runs, are not possible."""

    def _kept(self) -> Retention:
        if self._retention is None or self._retention[0] is not self._state:
            self._retention = self._state, retention_of(self._state, self._settings)
        return self._retention[1]

    def _new_prefixes(self, prefixes: Mapping[str, str]) -> dict[str, str]:
        return {prefix: base for prefix, base in prefixes.items() if self._declared.get(prefix) != base}

    def _evaluated(self, change: Change, note: ChangeNote | None) -> EvaluatedChange:
        self._check_changes(dry=note is None)
        version, now = self._version, self._clock()
        kept = self._kept()
        current = CurrentVersion(
            version, self._program, self._state, self._prefixes, self._declared, now, kept
        )
        if self._changing is None or self._changing[0] is not self._settings:
            # Every change would make the same settings and host.
            registry = self._settings.registry
            self._changing = (
                self._settings,
                replace(self._settings, yield_point=self._engine_lock),
                Host(tuple(registry.functions), tuple(registry.folds)),
            )
        _, settings, host = self._changing
        return evaluate_change(current, change, host, settings, note)

    @contextmanager
    def _locked_state(self) -> Iterator[State]:
        """Hold the engine's lock and yield the current state."""
        with self._gate.inside():
            yield self._state

    def query(self, query: str | CheckedQuery, *, limit: int | None = None, name: str = "<query>") -> Answers:
        """Answer a conjunctive query: `?- body .`, the body alone, or `ans(X, Y) :- body .`.

        Args:
            query: The query; declarations of prefixes may precede it.
            limit: The most rows to return; evaluation stops when there are so many. Which rows of more these
                are is not defined.
            name: The name of the query in diagnostics, such as that of its file.
        """
        checked = query if isinstance(query, CheckedQuery) else self._checked(query, name=name)
        asked = replace(checked.query, limit=given_limit(limit))
        warnings = list(checked.warnings)
        with self._locked_state() as state:
            warnings += unknown_predicates(body_atoms(asked.body), state.predicates(), self.rules)
            warnings += mistaken_constants(asked.body, state.holds)
            answer = state.answer(answerable(asked, (), state), self._settings)
        shown = self._prefixes | dict(checked.query.prefixes)
        session = (lambda: state.session) if isinstance(state, ListsFrames) else None
        return Answers(columns_of(asked), answer.rows, tuple(warnings), answer.dropped, shown, session)

    def table(self, predicate: str | IRI | Predicate, **columns: object) -> DataFrame:
        """Return the visible facts of a predicate as a DataFrame of Spark, of this version.

            kb.table("alarm"), kb.table("alarm", sensor=ze.iri("http://farm/{sensor}"), value=...)

        A column has a type if all its terms have, and cells otherwise. Large tables are read when Spark needs
        them, as long as this knowledge base is there.

        Args:
            predicate: `p`, `p/1`, `ex:p`, `<http://e/p>` or an IRI.
            columns: The names of the columns in the order of the arguments, each `...` or the template that
                its terms were made of, as for `add_facts`; `c1`, `c2` and so on if not given.
        """
        with self._locked_state() as state:
            if isinstance(state, ListsFrames):
                found = predicate_of(predicate, self._known(), self._prefixes, len(columns))
                return state.frame(found, columns_for(found, columns))
        return spark_frame(session_for(None), self.arrow_table(predicate, **columns))

    def arrow_table(self, predicate: str | IRI | Predicate, **columns: object) -> pa.Table:
        """Return the visible facts of a predicate as an Arrow table, with columns as for `table`."""
        with self._locked_state() as state:
            found = predicate_of(predicate, self._known(), self._prefixes, len(columns))
            return arrow_table_of(state, found, columns_for(found, columns))

    def prepare(self, text: str, *parameters: str) -> Prepared:
        """Check and plan a query once, for repeated use with values for its parameters.

            near = kb.prepare("?- neighbour(X, Y) .", "X")
            near(X=ze.iri("wt1"))

        The answers are those of the query with the values in place of the parameters.

        Args:
            text: The query.
            parameters: The names of variables that each call gives values to.
        """
        variables = {name: Variable(name) for name in parameters}
        query, _ = self._checked(text, variables.values())
        return Prepared(query, variables, self._locked_state, lambda: self._settings, lambda: self._prefixes)

    def _checked(self, text: str, given: Collection[Variable] = (), name: str = "<query>") -> CheckedQuery:
        return checked_query(given_text(text), self._prefixes, self._host(), given, name)

    def explain(
        self, fact: str | Fact | Atom, *, limit: int = MOST_FACTS, budget: Budget | None = None
    ) -> Proof:
        """Explain why a fact is there: return a proof of least height.

            kb.explain("alarm(wt1)")

        Args:
            fact: The fact, or a pattern such as `alarm(X)`, whose facts are explained together.
            limit: The most facts of a pattern to explain; `proof.more` says that there are further ones.
            budget: What the search may spend. When it ends, the proof may not be of least height, or not be
                complete: `proof.least` and `proof.complete` say so.
        """
        with self._locked_state() as state:
            return self._explainer(state).explain(fact, given_limit(limit) or MOST_FACTS, budget)

    def why_not(self, fact: str | Fact | Atom, *, budget: Budget | None = None) -> WhyNot:
        """Explain why a fact is not there: for each rule, what of its body holds and what fails first.

            kb.why_not("alarm(wt2)")

        Args:
            fact: The fact, or a pattern that no fact matches.
            budget: What the search may spend. When it ends, closer bindings may exist.
        """
        with self._locked_state() as state:
            return self._explainer(state).why_not(fact, budget)

    def why_changed(
        self, fact: str | Fact | Atom, *, versions: int = MOST_VERSIONS, budget: Budget | None = None
    ) -> History:
        """Explain since when a fact is there or not: the versions that inserted or deleted it, and the edits.

        The history is that of a store; a knowledge base in memory knows its current version only.

        Args:
            fact: The fact.
            versions: How many versions to look back.
            budget: What the search for one proof may spend.
        """
        del versions, budget
        asked = asked_fact(fact, self._prefixes)
        with self._locked_state() as state:
            there = is_visible(asked, state.lookups(self._settings))
            note = "" if there else self._unknown(asked)
            version = self._version
            return History(asked, there, (), version, version, note=note, prefixes=self.prefixes)

    def _explainer(self, state: State) -> Explainer:
        """Return what explains the current version; lookups that were planned are kept for the next time."""
        settings = self._settings
        if (
            self._explained is None
            or self._explained[0] is not state
            or self._explained[1] is not settings
            or self._explained[2].version.prefixes != self._prefixes
        ):
            number, now = self._version, self._clock()
            version = self._explained_version(self._program, state.lookups(settings), number, now)
            self._explained = state, settings, Explainer(version)
        return self._explained[2]

    @contextmanager
    def _dry_explainer(self, evaluated: EvaluatedChange, before: State) -> Iterator[Explainer]:
        """Hold the engine's lock and yield what explains the facts that a dry run would lead to."""
        with self._locked_state() as state:
            if state is not before:
                note = "run it again on the current version"
                raise UsageProblem(Diagnostic("X005", "the version of the dry run is not in force", note))
            lookups = evaluated.uncommitted.lookups(self._settings)
            yield Explainer(self._explained_version(evaluated.program, lookups, None, evaluated.now))

    def _explained_version(
        self, program: RuleBase, lookups: Lookups, number: int | None, now: datetime | None
    ) -> Version:
        timed = {key: rule for key, rule in program.rules.items() if rule.source}
        at_that_time = {key: at_time(rule, now) for key, rule in timed.items()}
        return Version(
            {**program.rules, **at_that_time} if timed else program.rules,
            program.graph,
            lookups,
            self._settings.registry,
            number,
            dict(self._prefixes),
            self._statements,
            self._unknown,
        )

    def _statements(self, facts: Collection[Fact]) -> Mapping[Fact, Statement]:
        """Return who stated explicit facts and when; a knowledge base in memory does not know."""
        del facts
        return {}

    def _unknown(self, atom: Atom | Fact) -> str:
        """Return a note about a predicate that no rule and no fact uses, or an empty text."""
        findings = unknown_predicates([Atom(atom.relation, atom.args)], self._state.predicates(), self.rules)
        return next((finding.note for finding in findings), "")

    def function(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register a Python function; rules call it as `func:name(…)`. May be used as a decorator."""
        named = Function(given_function_name(call, name), call, vectorised)
        self._register(self._settings.registry.with_function(named))
        return call

    def aggregate(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register an aggregate function of the list of a group's values, in the total order."""
        named = AggregateFunction(
            given_function_name(call, name, reserved=(*AGGREGATES, *CHOOSING, LATEST)), call, vectorised
        )
        self._register(self._settings.registry.with_fold(named))
        return call

    def iri(self, name: str) -> IRI:
        """Return the IRI of a name, with the prefixes of the knowledge base: `kb.iri("ex:wt1")`."""
        return IRI(full_name(given_text(name), self._prefixes))

    def add_prefixes(self, prefixes: Iterable[tuple[str, str]]) -> None:
        """Add prefixes for later queries and changes; a store keeps them with the next change."""
        self._prefixes.update(prefixes)

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that texts may use."""
        return dict(self._prefixes)

    @property
    def settings(self) -> Settings:
        """The engine's settings: registered functions, limits, and so on."""
        return self._settings

    def _register(self, registry: Registry) -> None:
        self._settings = replace(self._settings, registry=registry)

    def _host(self) -> Host:
        registry = self._settings.registry
        return Host(tuple(registry.functions), tuple(registry.folds))

    @contextmanager
    def loading(self) -> Iterator[tuple[Batch, Callable[[], None]]]:
        """Lock the engine for reading files into a batch; the function yields to waiting threads."""
        with self._engine_lock:
            yield self._state.batch(), self._engine_lock.yield_to_waiters

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raise an error that says which operations need a store."""
            if name in _STORE_ONLY:
                raise in_memory()
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def export_slice(self, path: str | os.PathLike[str], /, *slices: str, **values: object) -> Slice:
        """Write the slice that one device needs as a new store for the embedded engine.

            kb.export_slice("wt1.zodiac", "?- near(T, N), reading(N, V) .", T=ze.iri("wt1"))

        Args:
            path: The folder of the new store or its address, empty or not existing.
            slices: Texts that select facts: `?- body .`, or an atom alone, the facts that its atoms match;
                `about(X) :- body .` the explicit facts that mention its answers. `docs/store.md` says which
                rules the slice holds.
            values: Values for variables of these texts.
        """
        need("store", "a slice")
        terms = {name: from_python(value) for name, value in values.items()}
        texts = [given_text(text) for text in slices]
        selections = parse_slice(texts, terms, prefixes=self._prefixes, host=self._host())
        with self._locked_state() as state:
            slice_ = cut_slice(selections, self._program, state, self._settings)
            message = f"version {self._version}: {' '.join(texts)}"
        # The store is a layer above, and loads Delta and Arrow.
        from zodiacedge.store.export_slice import write_slice  # noqa: PLC0415

        write_slice(path, slice_, message, self._prefixes, self._settings, self._host())
        return slice_

    def _known(self) -> frozenset[Predicate]:
        return self._state.predicates() | {
            a.predicate for r in self.rules for a in (r.head, *body_atoms(r.body))
        }
