"""The knowledge base: the façade that users import.

A knowledge base holds rules and explicit facts and maintains the derived facts. A change is one transaction:
it is committed as a whole, or refused without effect.

Threads may share it. Changes are serialised; concurrent readers see the version before. Only one thread works
in the engine at a time, and a change yields to waiting readers.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.engine.select import engine_named
from zodiacedge.errors import Diagnostic, UsageProblem, ZodiacError
from zodiacedge.kb.answers import Answers
from zodiacedge.kb.apply import CurrentVersion, evaluate_change
from zodiacedge.kb.arguments import given_limit, given_message, given_text, in_memory
from zodiacedge.kb.change import Change, ChangeNote
from zodiacedge.kb.locks import WriterGate
from zodiacedge.kb.query import CheckedQuery, Prepared, checked_query, columns_of
from zodiacedge.kb.report import ChangeReport, per_predicate
from zodiacedge.kb.rule_base import RuleBase
from zodiacedge.kb.slice import cut_slice, matching_facts, parse_slice
from zodiacedge.kb.subscribe import Subscribers, predicate_name
from zodiacedge.kb.transaction import Transaction, given_change
from zodiacedge.kb.verify import Verification, verified
from zodiacedge.kb.warnings import mistaken_constants, unknown_predicates
from zodiacedge.language.ast import Variable, body_atoms
from zodiacedge.language.checks import Host
from zodiacedge.language.names import full_name
from zodiacedge.language.printer import abbreviated, format_predicate
from zodiacedge.language.safety import resolve_query
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.terms import IRI, RDF_TYPE, from_python
from zodiacedge.util.uninterrupted import uninterrupted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

    from zodiacedge.engine.api import Batch, Engine, FactDelta, Settings, State, UncommittedState
    from zodiacedge.graph import HyperGraph
    from zodiacedge.kb.apply import EvaluatedChange
    from zodiacedge.kb.slice import Slice
    from zodiacedge.kb.subscribe import Notice, Subscription
    from zodiacedge.kb.transaction import Facts
    from zodiacedge.language.ast import Fact, Predicate, Rule


_LOGGER = logging.getLogger(__name__)
_Callable = TypeVar("_Callable", bound="Callable[..., object]")
# Attributes of `store.knowledge_base.StoredKnowledgeBase` only.
_STORE_ONLY = frozenset(
    {"at", "diff", "flush", "log", "recovered", "refresh", "rollback", "store", "streams", "vacuum"}
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


class KnowledgeBase:
    """Rules, explicit facts (EDB) and derived facts (IDB)."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        """Start empty; use `zodiacedge.open` instead."""
        self._engine = engine
        self._settings = settings
        self._program = RuleBase()
        self._prefixes: dict[str, str] = {}
        self._version = 0
        self._state = engine.empty()
        self._gate = WriterGate()
        self._engine_lock = self._gate.engine_lock
        self._subscribers = Subscribers()

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
        return tuple(self._program.rules.values())

    @property
    def explicit(self) -> frozenset[Fact]:
        """The explicit facts."""
        with self._locked_state() as state:
            return state.explicit()

    def explicit_counts(self, *, prefixed: bool = False) -> dict[str, int]:
        """Count the explicit facts per predicate, without listing them; names in full, or as in programs."""
        with self._locked_state() as state:
            return per_predicate(state.explicit_counts(), show=self._shown if prefixed else str)

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
            return state.visible()

    def derived(self, *, prefixed: bool = False) -> dict[str, int]:
        """Count derived facts per predicate, also explicit ones; names in full, or as programs write them.

        All predicates with rules are listed.
        """
        with self._locked_state() as state:
            # rdf:type with a variable class is not a predicate of its own: its facts belong to classes.
            heads = {rule.head.predicate for rule in self.rules if rule.head.predicate.name != RDF_TYPE}
            counts = dict.fromkeys(heads, 0) | dict(state.derived_counts())
            return per_predicate(counts, self._known(), self._shown if prefixed else str)

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
            done = self._commit(change, ChangeNote(message, prefixes or {}, stream), committed)
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
            note = replace(note, prefixes=self._new_prefixes(note.prefixes))
            program, fact_delta, uncommitted, report = self._evaluated(change, note)
            if not report.committed:
                if committed:
                    committed(report)
                return _Commit(report)
            # Steps that can fail come first; the commit itself cannot be interrupted.
            try:
                ticket = self._record(fact_delta, uncommitted, report, note)
                with uninterrupted():
                    self._program, self._state = program, uncommitted.commit()
                    self._version = report.version_after
                    self._prefixes.update(note.prefixes)
                    self._committed(note)
                    if committed:
                        committed(report)
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
            return self._evaluated(change, None).report

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

    def _new_prefixes(self, prefixes: Mapping[str, str]) -> dict[str, str]:
        return {prefix: base for prefix, base in prefixes.items() if self._prefixes.get(prefix) != base}

    def _evaluated(self, change: Change, note: ChangeNote | None) -> EvaluatedChange:
        self._check_changes(dry=note is None)
        current = CurrentVersion(self._version, self._program, self._state)
        settings = replace(self._settings, yield_point=self._engine_lock)
        prefixes = self._prefixes | dict(note.prefixes if note else {})
        try:
            evaluated = evaluate_change(current, change, self._host(), settings, note)
        except ZodiacError as problem:
            problem.diagnostics = tuple(abbreviated(finding, prefixes) for finding in problem.diagnostics)
            raise
        warnings = (*evaluated.report.warnings, *self._redefined(note.prefixes if note else {}))
        return evaluated._replace(report=replace(evaluated.report, prefixes=prefixes, warnings=warnings))

    def _redefined(self, prefixes: Mapping[str, str]) -> Iterator[Diagnostic]:
        for prefix, base in prefixes.items():
            if self._prefixes.get(prefix, base) != base:
                yield Diagnostic(
                    "W019",
                    f"the prefix {prefix}: now means {base}, and meant {self._prefixes[prefix]} before",
                    "queries and later changes use the new meaning; choose another prefix to keep both",
                    severity="warning",
                )

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
            warnings += unknown_predicates(body_atoms(asked.body), self._known())
            warnings += mistaken_constants(asked.body, state.holds)
            answer = state.answer(resolve_query(asked), self._settings)
        shown = self._prefixes | dict(checked.query.prefixes)
        return Answers(columns_of(asked), answer.rows, tuple(warnings), answer.dropped, shown)

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
        resolved = resolve_query(query, variables.values())
        return Prepared(
            resolved, variables, self._locked_state, lambda: self._settings, lambda: self._prefixes
        )

    def _checked(self, text: str, given: Collection[Variable] = (), name: str = "<query>") -> CheckedQuery:
        return checked_query(given_text(text), self._prefixes, self._host(), given, name)

    def function(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register a Python function; rules call it as `func:name(…)`. May be used as a decorator."""
        named = Function(name or call.__name__, call, vectorised)
        self._register(self._settings.registry.with_function(named))
        return call

    def aggregate(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register an aggregate function of the list of a group's values, in the total order."""
        named = AggregateFunction(name or call.__name__, call, vectorised)
        self._register(self._settings.registry.with_fold(named))
        return call

    def iri(self, name: str) -> IRI:
        """Return the IRI of a name, with the prefixes of the knowledge base: `kb.iri("ex:wt1")`."""
        return IRI(full_name(given_text(name), self._prefixes))

    def add_prefixes(self, prefixes: Iterable[tuple[str, str]]) -> None:
        """Add prefixes for later queries and changes."""
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
