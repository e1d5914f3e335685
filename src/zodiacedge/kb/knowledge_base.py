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

from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.engine.select import engine_named
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.kb.apply import CurrentVersion, evaluate_change
from zodiacedge.kb.arguments import given_message, given_text, in_memory
from zodiacedge.kb.change import Change, ChangeNote
from zodiacedge.kb.locks import WriterGate
from zodiacedge.kb.query import Answers, CheckedQuery, Prepared, checked_query, columns_of
from zodiacedge.kb.report import ChangeReport, per_predicate
from zodiacedge.kb.rule_base import RuleBase
from zodiacedge.kb.slice import cut, matched, read_slice
from zodiacedge.kb.subscribe import Subscribers, predicate_name
from zodiacedge.kb.transaction import Transaction, given_change
from zodiacedge.kb.verify import Verification, verified
from zodiacedge.kb.warnings import mistaken_constants, unknown_predicates
from zodiacedge.language.ast import Variable
from zodiacedge.language.checks import Host, body_atoms
from zodiacedge.language.safety import resolve_query
from zodiacedge.terms import from_python
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
    from zodiacedge.terms import IRI


_Callable = TypeVar("_Callable", bound="Callable[..., object]")
# What only a knowledge base in a store has: `store.knowledge_base.StoredKnowledgeBase`.
_OF_STORES = frozenset({"at", "diff", "flush", "log", "recovered", "rollback", "store", "streams", "vacuum"})


class KnowledgeBase:
    """Rules, explicit facts, and all that follows from them."""

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
        """Let go of what is held outside memory; a knowledge base in memory holds nothing."""

    def matching(self, query: str, /, **values: object) -> frozenset[Fact]:
        """Return the facts that the atoms of a query match in some answer, explicit or not.

            kb.matching("?- near(T, N), reading(N, V) .", T=ze.iri("wt1"))

        Args:
            query: `?- body .`; atoms under `not` and in an AGGREGATE only choose.
            values: Values for variables of it.
        """
        given = {name: from_python(value) for name, value in values.items()}
        wishes = read_slice([given_text(query)], given, prefixes=self._prefixes, host=self._host())
        with self._asking() as state:
            return matched(wishes, state, self._settings)

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
        """Carry out a change as one transaction, or raise and leave everything as it was.

        The change of a store is on disk when this returns.

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
        note = ChangeNote(given_message(message), prefixes or {}, stream)
        change = given_change(change)
        with self._gate.alone():
            with self._asking():
                program, effect, attempt, report = self._evaluated(change, dry=False)
                # Everything that can fail comes first, and nothing can interrupt what follows it.
                try:
                    ticket = self._record(effect, attempt, report, note)
                    with uninterrupted():
                        self._program, self._state = program, attempt.commit()
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
                    # It was put off until now, and the change is in force: all must hear of it first.
                    interrupted = problem
            self._before_notifying(ticket)
            self._subscribers.tell(report)
            self._after_notifying()
        # Outside: threads whose changes come close together wait for the disk together.
        self._make_durable(ticket)
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
        with self._gate.alone(), self._asking():
            return self._evaluated(change, dry=True).report

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
        with self._gate.alone(), self._asking() as state:
            settings = replace(self._settings, turn=self._engine_lock)
            return verified(self._version, state, self._program, engine, settings)

    def _record(
        self, effect: FactDelta, attempt: UncommittedState, report: ChangeReport, note: ChangeNote
    ) -> int:
        """Write a change to the log before it is in force, and return its ticket; memory has no log."""
        del effect, attempt, report, note
        return 0

    def _committed(self, note: ChangeNote) -> None:
        """Remember what a change that is in force now said about itself."""

    def _before_notifying(self, ticket: int) -> None:
        """Make a change durable that subscribers are about to see."""

    def _after_notifying(self) -> None:
        """Do what is due after a change, while no other one may begin."""

    def _make_durable(self, ticket: int) -> None:
        """Wait until the change of a ticket is on disk."""

    def _withdraw(self) -> None:
        """Take back what the log has beyond this version, if anything: that change did not come about."""

    def _check_changes(self, *, dry: bool) -> None:
        """Raise if changes, or dry runs of them, are not possible now."""

    def _evaluated(self, change: Change, *, dry: bool) -> EvaluatedChange:
        self._check_changes(dry=dry)
        there = CurrentVersion(self._version, self._program, self._state)
        return evaluate_change(
            there, change, self._host(), replace(self._settings, turn=self._engine_lock), dry=dry
        )

    @contextmanager
    def _asking(self) -> Iterator[State]:
        """Work in the engine, when it is this thread's turn."""
        with self._gate.inside():
            yield self._state

    def query(self, query: str | CheckedQuery) -> Answers:
        """Answer a conjunctive query: `?- body .` or `ans(X, Y) :- body .`."""
        checked = query if isinstance(query, CheckedQuery) else self._checked(query)
        warnings, body = list(checked.warnings), checked.query.body
        with self._asking() as state:
            warnings += unknown_predicates(body_atoms(body), self._known())
            warnings += mistaken_constants(body, state.holds)
            answer = state.answer(resolve_query(checked.query), self._settings)
        return Answers(columns_of(checked.query), answer.rows, tuple(warnings), answer.dropped)

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

    def _checked(self, text: str, given: Collection[Variable] = ()) -> CheckedQuery:
        return checked_query(given_text(text), self._prefixes, self._host(), given)

    def function(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register a Python function; rules call it as `func:name(…)`. May be used as a decorator."""
        named = Function(name or call.__name__, call, vectorised)
        self._register(self._settings.registry.with_function(named))
        return call

    def aggregate(self, call: _Callable, *, name: str = "", vectorised: bool = False) -> _Callable:
        """Register an aggregate: it gets a group's values as a list, in the total order."""
        named = AggregateFunction(name or call.__name__, call, vectorised)
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

    def _host(self) -> Host:
        registry = self._settings.registry
        return Host(tuple(registry.functions), tuple(registry.folds))

    @contextmanager
    def loading(self) -> Iterator[tuple[Batch, Callable[[], None]]]:
        """Hold the engine while files are read: into a batch, with a function that lets other threads in."""
        with self._engine_lock:
            yield self._state.batch(), self._engine_lock.yield_to_waiters

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Tell a caller that asks for versions that they take a store."""
            if name in _OF_STORES:
                raise in_memory()
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
        given = {name: from_python(value) for name, value in values.items()}
        texts = [given_text(text) for text in slices]
        wishes = read_slice(texts, given, prefixes=self._prefixes, host=self._host())
        with self._asking() as state:
            part = cut(wishes, self._program, state, self._settings)
            message = f"version {self._version}: {' '.join(texts)}"
        # The store is a layer above, and only who exports to a store loads it.
        from zodiacedge.store.export_slice import write_slice  # noqa: PLC0415

        write_slice(path, part, message, self._prefixes, self._settings, self._host())
        return part

    def _known(self) -> frozenset[Predicate]:
        return self._state.predicates() | {
            a.predicate for r in self.rules for a in (r.head, *body_atoms(r.body))
        }
