"""The knowledge base: the façade that users import.

A knowledge base holds rules and facts and keeps what follows from them. A change is one transaction:
it is committed whole, or refused and nothing has changed.

Threads may share it. Changes come one after the other; whoever reads meanwhile sees the version before.
Only one thread works in the engine at a time, the one whose turn it is, and a change passes its turn on.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar

from zodiacedge.answers import Answers, Prepared, checked_query, columns_of
from zodiacedge.engine.registry import Fold, Function, Registry
from zodiacedge.engines import engine_named
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.language.ast import Variable
from zodiacedge.language.checks import Host, body_atoms
from zodiacedge.language.safety import resolve_query
from zodiacedge.maintenance.admission import Admission
from zodiacedge.maintenance.change import Change
from zodiacedge.maintenance.hints import mistaken_constants, unknown_predicates
from zodiacedge.maintenance.program import Program
from zodiacedge.maintenance.report import ChangeReport, per_predicate
from zodiacedge.maintenance.subscribe import Subscribers, predicate_name
from zodiacedge.maintenance.uninterrupted import uninterrupted
from zodiacedge.maintenance.verify import Verification, verified
from zodiacedge.maintenance.work_out import InForce, work_out
from zodiacedge.store.arguments import given_message, given_time, given_version
from zodiacedge.store.folding import Folds
from zodiacedge.terms import from_python
from zodiacedge.transaction import Transaction, given_change, given_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from types import TracebackType

    from zodiacedge.engine.api import Attempt, Batch, Effect, Engine, Settings, State
    from zodiacedge.graph import HyperGraph
    from zodiacedge.io import Load, LoadReport
    from zodiacedge.language.ast import Fact, Predicate, Query, Rule
    from zodiacedge.maintenance.subscribe import Notice, Subscription
    from zodiacedge.maintenance.work_out import WorkedOut
    from zodiacedge.store.diff import VersionDiff
    from zodiacedge.store.durable import DurableStore
    from zodiacedge.store.entry import Entry
    from zodiacedge.store.folding import Folding
    from zodiacedge.store.slice import Slice
    from zodiacedge.store.sweep import Swept
    from zodiacedge.terms import IRI
    from zodiacedge.transaction import Facts


_Callable = TypeVar("_Callable", bound="Callable[..., object]")


class KnowledgeBase:
    """Rules, explicit facts, and all that follows from them."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        """Start empty; use `zodiacedge.open` instead."""
        self._engine = engine
        self._settings = settings
        self._program = Program()
        self._prefixes: dict[str, str] = {}
        self._version = 0
        self._state = engine.empty()
        self._admission = Admission()
        self._turn = self._admission.turn
        self._subscribers = Subscribers()
        self._store: DurableStore | None = None
        self._unregistered: tuple[Diagnostic, ...] = ()
        self._streams: dict[str, int] = {}
        self._folds = Folds()

    def open_store(self, store: DurableStore, at: int | None = None) -> None:
        """Load what a store holds, and keep every change in it; use `zodiacedge.open` instead."""
        from zodiacedge.store import replay  # noqa: PLC0415 - only who has a store pays for it

        try:
            base, records = store.base(at, self._engine.empty, self._host(), self._settings.registry)
            self._program, self._state, self._version = base.program, base.state, base.version
            self._prefixes, self._unregistered = base.prefixes, base.unregistered
            self._streams = base.streams
            if records:
                store.check_changes(self._unregistered, dry=True)
            # What was let in once is not judged again.
            settings, self._settings = self._settings, replace(self._settings, strict=False)
            for change, entries in replay.changes_again(records, lambda: self._state, store.keeping):
                self.apply(change)
                self._version = entries[-1].version
                replay.check(store.place, entries[-1], store.keeping.counts(self._state))
                for entry in entries:
                    self._prefixes |= entry.prefixes
                    self._streams |= {entry.stream: entry.batch} if entry.stream else {}
            self._settings = settings
        except BaseException:
            store.close()
            raise
        self._store = store

    def __enter__(self) -> Self:
        """Return this; the end of the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Fold the log of a store into its table, and let others write. What is in memory stays readable."""
        if self._store is None:
            return
        try:
            if self._store.writable:
                self.fold()
        finally:
            self._store.close()

    def fold(self) -> None:
        """Bring the table of a store up to this version; what is in memory only has none."""
        if self._store is None:
            return
        with self._admission.alone():
            self._folds.fold(self._store, self._folding)

    def _folding(self) -> Folding | None:
        """Take hold of what the table of the store lacks."""
        from zodiacedge.store.durable import Base  # noqa: PLC0415 - only who has a store pays for it

        with self._asking() as state:
            base = Base(self._version, self._program, self.prefixes, state, (), dict(self._streams))
            return self._required_store().folding(base, self._turn)

    @property
    def streams(self) -> dict[str, int]:
        """The last batch of each stream that was applied: what comes again after a restart is known by it."""
        return dict(self._streams)

    @property
    def store(self) -> DurableStore | None:
        """Where changes are kept, if not in memory only."""
        return self._store

    @property
    def recovered(self) -> tuple[Diagnostic, ...]:
        """What was found when the store was opened, and mended; whoever only reads leaves it as it is."""
        return self._store.recovered if self._store else ()

    def log(self) -> tuple[Entry, ...]:
        """Return who changed what, version by version, as far as the store keeps it."""
        return self._required_store().entries()

    def at(self, version: int) -> KnowledgeBase:
        """Return an earlier version of the store, for reading."""
        from zodiacedge.store.durable import DurableStore  # noqa: PLC0415

        version = given_version(version)
        there = KnowledgeBase(self._engine, self._settings)
        store = self._required_store()
        there.open_store(DurableStore(store.place, writable=False, keeping=store.keeping), version)
        return there

    def rollback(self, version: int, message: str = "") -> ChangeReport:
        """Make a new version that has the rules and explicit facts of an earlier one."""
        from zodiacedge.store.replay import change_back  # noqa: PLC0415

        version = given_version(version)
        with self._admission.alone():
            store = self._required_store()
            records = store.records(version, self._version)
            with self._asking() as state:
                change = change_back(records, state, store.keeping)
            return self.apply(change, message=message or f"back to version {version}")

    def diff(self, before: int, after: int) -> VersionDiff:
        """Return the rules and visible facts that tell two versions of the store apart."""
        from zodiacedge.store.diff import VersionDiff  # noqa: PLC0415

        return VersionDiff.between(self.at(before), self.at(after))

    def matching(self, query: str, /, **values: object) -> frozenset[Fact]:
        """Return the facts that the atoms of a query match in some answer, explicit or not.

            kb.matching("?- near(T, N), reading(N, V) .", T=ze.iri("wt1"))

        Args:
            query: `?- body .`; atoms under `not` and in an AGGREGATE only choose.
            values: Values for variables of it.
        """
        from zodiacedge.store import slice as slicing  # noqa: PLC0415 - only who needs one pays for it

        given = {name: from_python(value) for name, value in values.items()}
        wishes = slicing.read([given_text(query)], given, prefixes=self._prefixes, host=self._host())
        with self._asking() as state:
            return slicing.matched(wishes, state, self._settings)

    def export_slice(self, path: str | os.PathLike[str], /, *slices: str, **values: object) -> Slice:
        """Write the part that one device needs as a store of its own, for the engine embedded.

            kb.export_slice("wt1.zodiac", "?- near(T, N), reading(N, V) .", T=ze.iri("wt1"))

        Args:
            path: The folder of the new store or its address, empty or not there yet.
            slices: What goes along: for `?- body .`, or an atom alone, the facts that its atoms match; for
                `about(X) :- body .` the explicit facts that mention what it finds. `docs/store.md` says which
                rules go with them.
            values: Values for variables of these texts.
        """
        from zodiacedge.store import slice as slicing  # noqa: PLC0415 - only who needs one pays for it
        from zodiacedge.store.durable import DurableStore  # noqa: PLC0415
        from zodiacedge.store.place import located  # noqa: PLC0415
        from zodiacedge.store.publish import beside  # noqa: PLC0415

        place = located(path)
        given = {name: from_python(value) for name, value in values.items()}
        texts = [given_text(one) for one in slices]
        wishes = slicing.read(texts, given, prefixes=self._prefixes, host=self._host())
        with self._asking() as state:
            found = slicing.cut(wishes, self._program, state, self._settings)
            message = f"version {self._version}: {' '.join(texts)}"
        slicing.check_calls(place, found, self._host())
        with beside(place) as folder:
            there = KnowledgeBase(engine_named("embedded"), self._settings)
            there.open_store(DurableStore.create(folder))
            with there:
                change = Change(found.rules, (), tuple(found.facts))
                there.apply(change, message=message, prefixes=self._prefixes)
        return found

    def vacuum(self, kept: timedelta | None = None, *, dry_run: bool = False) -> Swept:
        """Fold, and remove from a store what no version of the last time needs: a week if not given.

        A dry run tells how much there is to remove now, and does neither.
        """
        store = self._required_store()
        kept = None if kept is None else given_time(kept)
        with self._admission.alone():
            if dry_run:
                self._folds.wait()
            else:
                self.fold()
            return store.vacuum(dry=dry_run) if kept is None else store.vacuum(kept, dry=dry_run)

    def _required_store(self) -> DurableStore:
        if self._store is None:
            raise UsageProblem(
                Diagnostic("U018", "this knowledge base is in memory and has no versions", "open a store")
            )
        return self._store

    @property
    def version(self) -> int:
        """How many changes were committed."""
        return self._version

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force."""
        return tuple(self._program.rules.values())

    @property
    def explicit(self) -> frozenset[Fact]:
        """The explicit facts."""
        with self._asking() as state:
            return state.explicit()

    def explicit_counts(self) -> dict[str, int]:
        """Count the explicit facts per predicate, without listing them."""
        with self._asking() as state:
            return per_predicate(state.explicit_counts())

    @property
    def state(self) -> State:
        """What the engine made of rules and facts; with other threads about, only within `reading`."""
        return self._state

    def graph(self) -> HyperGraph:
        """Return the hyper rule dependency graph."""
        return self._program.graph

    def facts(self) -> frozenset[Fact]:
        """Return all visible facts."""
        with self._asking() as state:
            return state.visible()

    def derived(self) -> dict[str, int]:
        """Count derived facts per predicate, explicit too or not; predicates with rules are all named."""
        with self._asking() as state:
            heads = {rule.head.predicate for rule in self.rules}
            return per_predicate(state.derived_counts(), heads, self._known())

    def reading(self) -> AbstractContextManager[object]:
        """Let all reads of a `with` block see one version: a change of another thread waits meanwhile."""
        return self._turn

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
        """Carry out a change as one transaction, or raise and leave everything as it was.

        That of a store is on disk when this returns.

        Subscribers are told before it returns; what they raise comes as one `ExceptionGroup`, and the change
        is committed all the same.

        Args:
            change: What comes and goes.
            message: What the log of a store says about it.
            prefixes: Made known to later texts, once it is committed.
            committed: Called with the report before subscribers are.
            stream: The stream that the change came from and its number there, kept with it: see `streams`.
        """
        interrupted: KeyboardInterrupt | None = None
        message, change = given_message(message), given_change(change)
        with self._admission.alone():
            with self._asking():
                program, effect, attempt, report = self._worked_out(change, dry=False)
                # Everything that can fail comes first, and nothing can interrupt what follows it.
                try:
                    ticket = self._recorded(effect, attempt, report, (message, prefixes or {}, stream))
                    with uninterrupted():
                        self._program, self._state = program, attempt.commit()
                        self._version = report.version_after
                        self._prefixes.update(prefixes or {})
                        self._streams.update([stream] if stream else [])
                        if committed:
                            committed(report)
                except BaseException as problem:
                    if self._version != report.version_after:
                        self._withdraw()
                        raise
                    if not isinstance(problem, KeyboardInterrupt):
                        raise
                    # It was put off until now, and the change is in force: all must hear of it first.
                    interrupted = problem
            if self._store and (self._subscribers or self._store.is_long):
                self._store.sync(ticket)
            self._subscribers.tell(report)
            if self._store and self._store.is_long:
                self._folds.fold_beside(self._store, self._folding)
        if self._store:
            # Outside: threads whose changes come close together wait for the disk together.
            self._store.sync(ticket)
        if interrupted:
            raise interrupted
        return report

    def dry_run(
        self,
        change: Change | None = None,
        *,
        add_rules: str = "",
        remove_rules: str = "",
        add_facts: Facts | None = None,
        remove_facts: Facts | None = None,
    ) -> ChangeReport:
        """Find out what a change would do, or why it would be refused; nothing is committed.

        The change comes as a whole, or piece by piece as a `Transaction` takes it. The report is that of the
        change, but for its versions: both are the one there is, and `report.dry_run` is true.
        """
        if change is None:
            collecting = Transaction(self)
            if add_rules:
                collecting.add_rules(add_rules)
            if remove_rules:
                collecting.remove_rules(remove_rules)
            if add_facts is not None:
                collecting.add_facts(add_facts)
            if remove_facts is not None:
                collecting.remove_facts(remove_facts)
            change = collecting.collected()
        elif add_rules or remove_rules or add_facts is not None or remove_facts is not None:
            hint = "give a whole change, or its pieces: add_rules, remove_rules, add_facts, remove_facts"
            raise UsageProblem(Diagnostic("U013", "expected a change or its pieces, found both", hint))
        change = given_change(change)
        with self._admission.alone(), self._asking():
            return self._worked_out(change, dry=True).report

    def subscribe(
        self, predicate: str | IRI | Predicate | None, callback: Callable[[Notice], object]
    ) -> Subscription:
        """Be told after each commit which facts of a predicate became visible and which are no more.

            kb.subscribe("alarm/1", lambda notice: print(notice.version, notice.inserted, notice.deleted))

        Args:
            predicate: `p`, `p/1`, `ex:p`, `<http://e/p>` or an IRI; a name alone is of any arity,
                `rdf:type` is all classes; None: all.
            callback: Called by the thread that committed, before the next change, if there are such facts. It
                may read and change the knowledge base; its own commits are told when this one has been.
        """
        return self._subscribers.add(predicate_name(predicate, self._prefixes), callback)

    def verify(self, against: str = "") -> Verification:
        """Evaluate the program from nothing and compare all visible facts and every segment.

        Changes wait until it is done, readers do not.

        Args:
            against: The engine that evaluates, `reference` for the definition; this one's own if not given.
        """
        against = given_text(against)
        engine = self._engine if against in {"", self._engine.name} else engine_named(against)
        with self._admission.alone(), self._asking() as state:
            settings = replace(self._settings, turn=self._turn)
            return verified(self._version, state, self._program, engine, settings)

    def _recorded(
        self,
        effect: Effect,
        attempt: Attempt,
        report: ChangeReport,
        said: tuple[str, Mapping[str, str], tuple[str, int] | None],
    ) -> int:
        """Write a change to the log of the store, if there is one, before it is in force."""
        if self._store is None:
            return 0
        from zodiacedge.store.entry import Remarks  # noqa: PLC0415 - only who has a store pays for it

        message, prefixes, stream = said
        known = self._prefixes.items()
        new = {prefix: base for prefix, base in prefixes.items() if (prefix, base) not in known}
        remarks = Remarks(message, new, *(stream or ()))
        return self._store.record(report, effect, attempt, remarks, self._turn.pass_on)

    def _withdraw(self) -> None:
        """Take back what the log has beyond this version, if anything: that change did not come about."""
        if self._store:
            with uninterrupted():
                self._store.withdraw(self._version)

    def _worked_out(self, change: Change, *, dry: bool) -> WorkedOut:
        if self._store:
            self._store.check_changes(self._unregistered, dry=dry)
        there = InForce(self._version, self._program, self._state)
        return work_out(there, change, self._host(), replace(self._settings, turn=self._turn), dry=dry)

    @contextmanager
    def _asking(self) -> Iterator[State]:
        """Work in the engine, when it is this thread's turn."""
        with self._admission.inside():
            yield self._state

    def query(self, text: str) -> Answers:
        """Answer a conjunctive query: `?- body .` or `ans(X, Y) :- body .`."""
        query, warnings = self._checked(text)
        with self._asking() as state:
            warnings += unknown_predicates(body_atoms(query.body), self._known())
            warnings += mistaken_constants(query.body, state.holds)
            answer = state.answer(resolve_query(query), self._settings)
        return Answers(columns_of(query), answer.rows, tuple(warnings), answer.dropped)

    def prepare(self, text: str, *parameters: str) -> Prepared:
        """Check and plan a query once, to be answered often, given values for some of its variables.

            near = kb.prepare("?- neighbour(X, Y) .", "X")
            near(X=ze.iri("wt1"))

        The answers are those of the query with the values written in place of the parameters.

        Args:
            text: The query.
            parameters: The names of variables that get their values with each call.
        """
        given = {name: Variable(name) for name in parameters}
        query, _ = self._checked(text, given.values())
        return Prepared(resolve_query(query, given.values()), given, self._asking, lambda: self._settings)

    def _checked(self, text: str, given: Collection[Variable] = ()) -> tuple[Query, list[Diagnostic]]:
        return checked_query(given_text(text), self._prefixes, self._host(), given)

    def function(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register a Python function; rules call it as `func:name(…)`. May be used as a decorator."""
        named = Function(name or call.__name__, call, vectorised)
        self._register(self._settings.registry.with_function(named))
        return call

    def aggregate(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register an aggregate: it gets a group's values as a list, in the total order."""
        named = Fold(name or call.__name__, call, vectorised)
        self._register(self._settings.registry.with_fold(named))
        return call

    def add_prefixes(self, prefixes: Iterable[tuple[str, str]]) -> None:
        """Make prefixes known to later texts: queries and changes."""
        self._prefixes.update(prefixes)

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that texts may use."""
        return dict(self._prefixes)

    @property
    def settings(self) -> Settings:
        """How the engine evaluates: what is registered, the limits, and so on."""
        return self._settings

    def _register(self, registry: Registry) -> None:
        self._settings = replace(self._settings, registry=registry)
        if self._unregistered:
            from zodiacedge.store.restore import missing_calls  # noqa: PLC0415 - only for the rules of a store

            self._unregistered = missing_calls(self.rules, self._host())

    def _host(self) -> Host:
        registry = self._settings.registry
        return Host(tuple(registry.functions), tuple(registry.folds))

    def batch(self, load: Callable[[Callable[[], None]], Load]) -> tuple[Batch, LoadReport]:
        """Return the facts of files, for a change; a load calls what it gets now and then."""
        with self._turn:
            found = self._state.batch()
            loading = load(self._turn.pass_on)
            found.load(loading)
        return found, loading.report

    def _known(self) -> frozenset[Predicate]:
        return self._state.predicates() | {
            a.predicate for r in self.rules for a in (r.head, *body_atoms(r.body))
        }
