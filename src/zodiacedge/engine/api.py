"""What an engine is: from rules, their graph and explicit facts to a materialisation, and answers.

A `State` is one version: explicit facts, the segments of the nodes, and what can be asked of them.
`attempt` works out the next one beside it, or fails and leaves nothing behind; `commit` puts it in force.
Facts come and go as a `Batch`, in the engine's own form, so that a file of millions of triples never becomes
millions of Python objects.

The laws that every engine keeps, and that the shared test suite checks:

1. the visible facts are the perfect model of the rules over the explicit facts;
2. the segment of a hyper-node is all that its rules derive in one application on the visible facts;
3. answers and counts do not depend on the engine, on the order of facts, or on the order of a body;
4. work that fails leaves nothing behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, runtime_checkable

from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.yield_point import ALONE, YieldPoint
from zodiacedge.errors import Diagnostic, EvaluationProblem
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.io import Load
    from zodiacedge.language.ast import Atom, Fact, Predicate, Query, Rule, Variable
    from zodiacedge.terms import Term


@dataclass(frozen=True, slots=True)
class Progress:
    """An engine's sign of life: the node it is at, the round, and the facts derived so far.

    Outside of changes there is a stage alone, and there are no nodes.
    """

    node: int
    nodes: int
    rules: tuple[str, ...]
    round: int
    facts: int
    stage: str = ""
    """What is being done, in plain words, where it may take a while."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to evaluate: what the host registered, the limits, whether evaluation errors fail.

    Long work tells how far it is, and lets others work in between.
    """

    registry: Registry = field(default_factory=Registry)
    limits: Limits = field(default_factory=Limits)
    strict: bool = False
    progress: Callable[[Progress], None] | None = None
    turn: YieldPoint = ALONE


@dataclass(frozen=True, slots=True)
class Dropped:
    """Bindings of one rule that evaluation errors dropped: how many, and one example."""

    count: int
    example: str


class SegmentChange(NamedTuple):
    """How many facts a hyper-node's segment gained, and how many it lost."""

    gained: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class NodeRun:
    """How one hyper-node was brought up to date, and how long that took.

    Beside it stands what evaluating it from nothing took the last time, 0 if nobody knows. Derivations are
    the heads that rules gave on the way, known ones included, as this engine goes about it; None if it does
    not count them.
    """

    rules: tuple[str, ...]
    rounds: int
    facts: int
    seconds: float
    strategy: str = "evaluated"
    estimate: float = 0.0
    derivations: int | None = None
    moved: SegmentChange | Callable[[], SegmentChange] | None = field(default=None, compare=False, repr=False)
    """What the segment gained and lost, against what it had or took over from nodes that are no more; or
    what counts that when somebody asks, since the difference may be larger than all the work was."""

    def counted(self) -> SegmentChange | None:
        """Count what the segment gained and lost; None if nobody can tell any more."""
        return self.moved() if callable(self.moved) else self.moved


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a query, distinct and in the total order, and what evaluation errors dropped."""

    rows: tuple[tuple[Term, ...], ...]
    dropped: Dropped | None = None


class Materialisation(Protocol):
    """The state after evaluation, as callers may read it. Nodes are named by a rule key of theirs."""

    @property
    def runs(self) -> Sequence[NodeRun]:
        """How each node was evaluated, in order."""

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Dropped bindings by rule key."""

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""

    def segment_size(self, rules: frozenset[str]) -> int:
        """How many facts the hyper-node of these rules derives."""

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the visible facts, or those of the hyper-node of these rules, each once, by predicate.

        A predicate may come more than once. Facts are listed only as far as they are asked for.
        """

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, explicit too or not."""

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate, without listing them."""

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of all visible facts."""

    def predicate_names(self) -> set[str]:
        """The names of the predicates of all visible facts; those that rules name may be left out."""

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""

    def prepare(
        self, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> Callable[[Mapping[Variable, Term]], Answer]:
        """Return a resolved query that is answered once its parameters, variables of it, have values."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A predicate of which one state has other facts than another: visible ones, or those of a node."""

    node: frozenset[str] | None
    """The rules of the node; None for what is visible."""
    predicate: Predicate
    missing: int
    """Facts that only the other has."""
    extra: int
    """Facts that the other has not."""
    example: Fact


class Batch(Protocol):
    """Facts on their way into or out of a state."""

    def add(self, facts: Iterable[Fact]) -> None:
        """Take facts."""

    def load(self, load: Load) -> None:
        """Take the facts of files."""

    def merge(self, other: Self) -> None:
        """Take the facts of another batch of this engine."""

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of the facts taken so far."""


class FactDelta(Protocol):
    """What facts to add and to remove come to on a state; what stands in both lists is added."""

    @property
    def added(self) -> int:
        """How many facts are new."""

    @property
    def removed(self) -> int:
        """How many facts go."""

    @property
    def idle(self) -> int:
        """How many facts to add are there already."""

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """How many facts to remove are not there, and one of them."""

    def matching(self, atom: Atom, most: int | None = None) -> Iterable[Fact]:
        """The explicit facts that are instances of an atom, as they will be: all of them, or so many."""

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact will have this term as an argument."""


class NetChange(Protocol):
    """What became visible between two states, and what is visible no more."""

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the facts that came and those that went, without listing them."""

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The facts that came, and those that went; of the predicates that are wanted, if not of all."""


class State(Materialisation, Protocol):
    """One version of a knowledge base in an engine."""

    def explicit(self) -> frozenset[Fact]:
        """All explicit facts."""

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""

    def stated_predicates(self, names: Collection[str]) -> frozenset[Predicate]:
        """The predicates of some names that explicit facts have."""

    def holds(self, term: Term) -> bool:
        """Whether some explicit fact has this term as an argument."""

    def batch(self) -> Batch:
        """Return an empty batch for facts of the next change."""

    def effect(self, add: Batch, remove: Batch) -> FactDelta:
        """Find out which facts really come and go; both batches must be of this engine."""

    def attempt(
        self, rules: Mapping[str, Rule], graph: HyperGraph, effect: FactDelta, settings: Settings
    ) -> UncommittedState:
        """Work out what a change leads to: checked and resolved rules by key, and facts."""

    def digest(self, turn: YieldPoint) -> tuple[int, int]:
        """Count the visible facts, and add up the SHA-256 hashes of their texts: the same on all engines."""

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible here only, and those that are in another version only.

        The other may be of any program and engine. What both have is not held.
        """

    def mismatches(
        self, other: State, nodes: Sequence[frozenset[str]], turn: YieldPoint
    ) -> Iterator[Mismatch]:
        """Yield where this state differs from another of the same program, of any engine.

        What is visible is compared, and what some nodes derive, each named by its rules.
        """


@runtime_checkable
class Mentioning(Protocol):
    """A state that can look into all its explicit facts at once; others are asked predicate by predicate."""

    def mentioning(self, terms: Collection[Term]) -> Iterator[Fact]:
        """Yield the explicit facts that have one of some terms as an argument; an IRI's class is none."""


class UncommittedState(Protocol):
    """A change that was worked out on a state and is not in force yet. The state still stands."""

    @property
    def runs(self) -> Sequence[NodeRun]:
        """The nodes that were visited, in order."""

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped on the way, by rule key."""

    @property
    def net(self) -> NetChange:
        """What becomes visible, and what is visible no more; to be asked for before the commit."""

    def commit(self) -> State:
        """Put the change in force. The state that it was worked out on must not be used any more."""


class Engine(Protocol):
    """Evaluates programs. An engine keeps no state between calls."""

    @property
    def name(self) -> str:
        """The name users choose it by."""

    def empty(self) -> State:
        """Return a state without rules and facts."""

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> State:
        """Evaluate checked and resolved rules, given by key, over explicit facts."""

    def recompute(
        self, rules: Mapping[str, Rule], graph: HyperGraph, state: State, settings: Settings
    ) -> State:
        """Evaluate the same over the explicit facts of a state, of any engine, which stays as it is."""


@runtime_checkable
class OutOfProcess(Protocol):
    """An engine that works in other processes: more must be installed, and questions may take long."""

    def refuse_if_missing(self) -> None:
        """Raise if something is not installed without which nothing can be evaluated."""

    def tell(self, progress: Callable[[Progress], None]) -> None:
        """Let somebody hear of long work that is no part of a change, as long as the engine is used."""


def materialised(
    state: State,
    rules: Mapping[str, Rule],
    graph: HyperGraph,
    facts: Iterable[Fact],
    settings: Settings,
) -> State:
    """Return an empty state with rules and facts: one change, as any other."""
    batch = state.batch()
    batch.add(facts)
    return state.attempt(rules, graph, state.effect(batch, state.batch()), settings).commit()


def refuse_errors(rules: Mapping[str, Rule], dropped: Mapping[str, Dropped]) -> None:
    """Raise if evaluation errors dropped anything: what strict mode asks for."""
    found = [
        Diagnostic(
            "E002",
            f"rule {rules[key].label or format_rule(rules[key])} drops {one.count:,} bindings: {one.example}",
            "strict mode refuses evaluation errors; nothing was changed",
            rules[key].span,
        )
        for key, one in dropped.items()
    ]
    if found:
        raise EvaluationProblem(found)
