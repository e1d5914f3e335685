"""The interface of an engine: materialisation of rules over explicit facts, its maintenance, and queries.

A `State` is one version (the paper's DataStore): explicit facts (EDB) and the derived facts (IDB) of each
hyper-node, its segment. `maintain` evaluates the next version beside it, or fails without effect; `commit`
makes it the current one. Facts are inserted and deleted as a `Batch` in the engine's own representation, so
that a file of millions of triples never becomes millions of Python objects.

The laws of every engine, checked by the shared test suite:

1. the visible facts are the perfect model of the rules over the explicit facts;
2. the segment of a hyper-node has all facts that its rules derive in one application on the visible facts;
3. answers and counts do not depend on the engine, on the order of facts, or on the order of a body;
4. a change that fails has no effect.
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
    from contextlib import AbstractContextManager
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.io import Load
    from zodiacedge.io.formats.arrow_rows import ChunkedRows
    from zodiacedge.io.formats.column_mapping import ColumnMapping
    from zodiacedge.language.ast import Atom, Fact, Predicate, Query, Rule, Variable
    from zodiacedge.plan.algebra import Plan
    from zodiacedge.plan.measurement import Measurement
    from zodiacedge.terms import Term


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a change: the current node, its round, and the facts derived so far.

    Outside of changes only `stage` is set, and how far it is where that is known.
    """

    node: int
    """The number of nodes that are done."""
    nodes: int
    """The number of all nodes; 0 outside of changes."""
    rules: tuple[str, ...]
    """Labels or texts of the current node's rules."""
    round: int
    facts: int
    stage: str = ""
    """Description of the current long step."""
    done: int = 0
    """The units of the stage that are done."""
    total: int = 0
    """The units of the stage in all; 0 if nobody knows."""
    unit: str = ""
    """The unit of both: a task, a partition, a change."""

    @classmethod
    def of_stage(cls, stage: str, done: int = 0, total: int = 0, unit: str = "") -> Progress:
        """Return the progress of a long step outside of changes."""
        return cls(0, 0, (), 0, 0, stage, done, total, unit)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an evaluation: registered functions, limits, strict mode.

    Long computations report their progress, and let waiting threads run at `yield_point`. `warn` is called
    with the warnings of a change before it is evaluated.
    """

    registry: Registry = field(default_factory=Registry)
    limits: Limits = field(default_factory=Limits)
    strict: bool = False
    progress: Callable[[Progress], None] | None = None
    yield_point: YieldPoint = ALONE
    warn: Callable[[Sequence[Diagnostic]], object] | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """Bindings of a rule that evaluation errors dropped: their number, and an example."""

    count: int
    example: str


class SegmentChange(NamedTuple):
    """Number of facts that a hyper-node's segment gained and lost."""

    gained: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class NodeRun:
    """The maintenance of one hyper-node in a change: strategy, rounds, facts, time.

    `estimate` is the time of its last evaluation from scratch, 0 if unknown; `expected` is the time that the
    engine expected the strategy to take when it chose it, 0 if it made no choice. `derivations` counts rule
    instances, including those with known heads; it depends on the engine, None if not counted.
    """

    rules: tuple[str, ...]
    rounds: int
    facts: int
    seconds: float
    strategy: str = "evaluated"
    estimate: float = 0.0
    derivations: int | None = None
    moved: SegmentChange | Callable[[], SegmentChange] | None = field(default=None, compare=False, repr=False)
    """The change of the segment, compared with its old facts or those inherited from merged nodes; or a
    function that counts it on demand, since the comparison may cost more than the change."""
    expected: float = 0.0

    def counted(self) -> SegmentChange | None:
        """Count the facts that the segment gained and lost; None if unknown."""
        return self.moved() if callable(self.moved) else self.moved


class RanJob(NamedTuple):
    """A job that an engine ran on a cluster: number, purpose, page in the cluster's UI."""

    number: int
    purpose: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a query, distinct and in the total order, and the bindings dropped by evaluation errors."""

    rows: Sequence[tuple[Term, ...]]
    """A tuple, or an `ArrowRows`."""
    dropped: Dropped | None = None


class Materialisation(Protocol):
    """A materialisation, read-only. Nodes are named by the keys of their rules."""

    @property
    def runs(self) -> Sequence[NodeRun]:
        """The run of each node, in evaluation order."""

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Dropped bindings by rule key."""

    def visible(self) -> frozenset[Fact]:
        """All facts: explicit ones and those of every segment."""

    def segment(self, rules: frozenset[str]) -> frozenset[Fact]:
        """All facts that the hyper-node of these rules derives."""

    def segment_size(self, rules: frozenset[str]) -> int:
        """The number of facts that the hyper-node of these rules derives."""

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the distinct visible facts, or those of the hyper-node of these rules, by predicate.

        A predicate may be repeated. Facts are listed lazily.
        """

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, including facts that are explicit too."""

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate, without listing them."""

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of all visible facts."""

    def predicate_names(self) -> set[str]:
        """The names of the predicates of all visible facts; names that occur in rules may be missing."""

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""

    def prepare(
        self, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> Callable[[Mapping[Variable, Term]], Answer]:
        """Return a function that answers a resolved query for given values of its parameters."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A predicate with different facts in two states: visible ones, or those of a node."""

    node: frozenset[str] | None
    """The rules of the node; None for visible facts."""
    predicate: Predicate
    missing: int
    """Facts of the other state only."""
    extra: int
    """Facts of this state only."""
    example: Fact


class Batch(Protocol):
    """A batch of facts to insert into or delete from a state."""

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts."""

    def add_table(self, table: pa.Table, relation: str) -> None:
        """Add the rows of an Arrow table as facts of a relation; raise if a row is no fact."""

    def load(self, load: Load) -> None:
        """Add the facts of files."""

    def merge(self, other: Self) -> None:
        """Add the facts of another batch of this engine."""

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of the facts added so far."""

    def size(self) -> int:
        """The number of distinct facts."""

    def facts(self, name: str | None = None) -> Iterable[Fact]:
        """The distinct facts, all or those of a predicate's name."""

    def without_older(self, name: str, position: int, moment: datetime) -> tuple[Batch, Batch]:
        """Return the batch without facts of a predicate whose argument is an earlier moment, and these."""

    def without_subjects(self, subjects: Collection[Term]) -> tuple[Batch, Batch]:
        """Return the batch without the facts whose first argument is one of some terms, and these."""


@runtime_checkable
class TakesFrames(Protocol):
    """A batch that reads DataFrames of Spark where they are; for others they become Arrow tables."""

    def add_frame(self, frame: DataFrame, relation: str, mapping: ColumnMapping) -> tuple[int, int]:
        """Add the rows of a DataFrame; return their number, and that of rows left out for a null."""


class FactDelta(Protocol):
    """The effective change of a state's explicit facts; a fact to add and to remove is added."""

    @property
    def added(self) -> int:
        """The number of new facts."""

    @property
    def removed(self) -> int:
        """The number of deleted facts."""

    @property
    def idle(self) -> int:
        """The number of facts to add that exist already."""

    @property
    def missing(self) -> tuple[int, Fact | None]:
        """The number of facts to remove that do not exist, and one of them."""

    def matching(self, atom: Atom, most: int | None = None) -> Iterable[Fact]:
        """The explicit facts after the change that are instances of an atom: all, or at most `most`."""

    def holds(self, term: Term) -> bool:
        """Whether an explicit fact after the change has this term as an argument."""


class NetChange(Protocol):
    """The net change between two states: visible facts inserted and deleted."""

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        """Count the inserted and the deleted facts, without listing them."""

    def facts(
        self, wanted: Callable[[Predicate], bool] | None = None
    ) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The inserted and the deleted facts, of all predicates or of the wanted ones."""


class MemoryUse(NamedTuple):
    """A part of what a state holds in memory."""

    part: str
    size: int
    """The number of terms, rows, indexes or programs."""
    bytes: int
    unused_bytes: int
    """About how many of the bytes could be given back, and will be in time."""


class State(Materialisation, Protocol):
    """A version of a knowledge base in an engine (the paper's DataStore)."""

    @property
    def keeps_windows(self) -> bool:
        """Whether it fills the relation of windows (`language.windows`); else rules read the clock."""

    def explicit(self) -> frozenset[Fact]:
        """All explicit facts."""

    def explicit_counts(self) -> Mapping[Predicate, int]:
        """Count the explicit facts of each predicate."""

    def explicit_predicates(self, names: Collection[str]) -> frozenset[Predicate]:
        """The predicates of explicit facts that have one of these names."""

    def holds(self, term: Term) -> bool:
        """Whether an explicit fact has this term as an argument."""

    def older(self, predicate: Predicate, position: int, moment: datetime | None) -> Iterable[Fact]:
        """The explicit facts of a predicate whose argument, from 1, is an earlier moment; all if None."""

    def batch_of_older(self, predicate: Predicate, position: int, moment: datetime) -> Batch:
        """Return the explicit facts of a predicate whose argument, from 1, is an earlier moment."""

    def batch(self) -> Batch:
        """Return an empty batch for the next change."""

    def effective_delta(self, add: Batch, remove: Batch) -> FactDelta:
        """Return the effective change of the explicit facts; both batches must be of this engine."""

    def maintain(
        self, rules: Mapping[str, Rule], graph: HyperGraph, fact_delta: FactDelta, settings: Settings
    ) -> UncommittedState:
        """Evaluate a change to checked and resolved rules, given by key, and to explicit facts."""

    def held(self) -> tuple[MemoryUse, ...]:
        """Return what this version holds in memory; nothing where that is not known."""

    def reclaim(self, rules: Mapping[str, Rule]) -> None:
        """Free a part of what no fact and none of these rules uses; called between changes.

        A part is small beside the change before it, and never fails.
        """

    def digest(self, yield_point: YieldPoint) -> tuple[int, int]:
        """Return the number of visible facts and the sum of their SHA-256 hashes: equal on all engines."""

    def lookups(self, settings: Settings) -> Lookups:
        """Return lookups in this version."""

    def diff(self, before: State) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return the facts that are visible in this version only, and in another version only.

        The other version may be of any program and engine. Common facts are not kept in memory.
        """

    def mismatches(
        self, other: State, nodes: Sequence[frozenset[str]], yield_point: YieldPoint
    ) -> Iterator[Mismatch]:
        """Yield the mismatches with a state of the same program, of any engine.

        Visible facts are compared, and the segments of `nodes`, each named by its rules.
        """


@runtime_checkable
class Mentioning(Protocol):
    """A state that looks up explicit facts by term; other states are searched predicate by predicate."""

    def mentioning(self, terms: Collection[Term]) -> Iterator[Fact]:
        """Yield the explicit facts with one of these terms as an argument; classes do not count."""


@runtime_checkable
class KnowsSubjects(Protocol):
    """A state that looks up explicit facts by their first argument; other states are searched whole."""

    def about(self, subjects: Collection[Term]) -> Iterator[Fact]:
        """Yield the explicit facts whose first argument is one of some terms."""


@runtime_checkable
class KnowsWhatIsDue(Protocol):
    """A state that knows when the next moment enters or leaves a window, and which moments facts have."""

    def next_due(self) -> datetime | None:
        """Return the first time of the clock at which a window changes; None if none will."""

    def earliest(self, predicate: Predicate, position: int, since: datetime) -> datetime | None:
        """Return the first moment from a time on that explicit facts of a predicate have as an argument."""


# In front of the name of a relation, in a lookup: only its explicit facts.
EXPLICIT_FACTS = "explicit facts of "


class Lookup(Protocol):
    """A join of the visible facts with rows of values for its parameters, planned once."""

    def __call__(
        self, given: Sequence[tuple[Term, ...]], most: int
    ) -> tuple[Sequence[tuple[Term, ...]], bool]:
        """Return distinct rows of the columns, in any order, and whether these are all.

        Args:
            given: Distinct rows with a value for each parameter; one empty row if there are no parameters.
            most: The number of rows after which the lookup may stop.
        """


class Lookups(Protocol):
    """Lookups in one version by key, for questions about single facts: no large relation is scanned."""

    @property
    def joins_explicit(self) -> bool:
        """Whether a lookup can read explicit facts only."""

    def prepare(self, query: Query, parameters: tuple[Variable, ...]) -> Lookup:
        """Plan a resolved query without aggregates, whose parameters get values later.

        A positive atom whose relation has `EXPLICIT_FACTS` in front of its name matches explicit facts only,
        if `joins_explicit` is true; classes are not read so.
        """

    def explicit_among(self, facts: Collection[Fact]) -> frozenset[Fact]:
        """Return those of some facts that are explicit."""


@runtime_checkable
class LooksAhead(Protocol):
    """Lookups that may each be a job: the rows of many are fetched together, and kept."""

    def look_ahead(
        self, lookups: Iterable[tuple[Lookup, Sequence[tuple[Term, ...]]]], patterns: Iterable[Atom]
    ) -> None:
        """Fetch what lookups will read for the rows given to each, and the facts that match patterns.

        Patterns that too many facts match are left out.
        """


@runtime_checkable
class ListsTables(Protocol):
    """A state that lists its visible facts by columns; other states list them one by one."""

    def tables(self, wanted: Callable[[Predicate], bool]) -> Mapping[Predicate, ChunkedRows] | None:
        """Return the visible facts of the wanted predicates, in order; None if one has no columns."""


@runtime_checkable
class ListsFrames(Protocol):
    """A state whose facts are DataFrames of Spark, of the session that the engine works on."""

    @property
    def session(self) -> SparkSession:
        """The session of the user."""

    def frame(self, predicate: Predicate, mapping: ColumnMapping) -> DataFrame:
        """Return the visible facts of a predicate with the columns of a mapping."""


@runtime_checkable
class ChangesFrames(Protocol):
    """A net change whose facts are DataFrames of Spark."""

    def frame(self, predicate: Predicate, mapping: ColumnMapping, *, inserted: bool) -> DataFrame:
        """Return the inserted or the deleted facts of a predicate with the columns of a mapping."""


@runtime_checkable
class RunsJobs(Protocol):
    """A state whose changes run jobs on a cluster."""

    def watched_jobs(self, purpose: str) -> AbstractContextManager[Sequence[RanJob]]:
        """Name the jobs of a `with` block by what they are for; return those that ran."""


@runtime_checkable
class MeasuresPlans(Protocol):
    """A state that can run a plan and count its rows step by step."""

    def measure(self, plan: Plan, settings: Settings) -> Measurement:
        """Run a plan without a delta once, on all visible facts."""


class UncommittedState(Protocol):
    """An evaluated change that is not committed. The state that it started from is unchanged."""

    @property
    def runs(self) -> Sequence[NodeRun]:
        """The visited nodes, in order."""

    @property
    def dropped(self) -> Mapping[str, Dropped]:
        """Bindings that evaluation errors dropped, by rule key."""

    @property
    def net(self) -> NetChange:
        """The net change; to be read before the commit."""

    def lookups(self, settings: Settings) -> Lookups:
        """Return lookups in the next version, to be used before the version in force changes."""

    def prepare(self) -> None:
        """Before the commit of a load, build what later changes look rows up in."""

    def commit(self) -> State:
        """Return the new state. The state that the change started from must not be used afterwards."""


class Engine(Protocol):
    """An evaluator of programs. An engine keeps no state between calls."""

    @property
    def name(self) -> str:
        """The name by which users select it."""

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
        """Evaluate from scratch over the explicit facts of a state of any engine, which is not changed."""


@runtime_checkable
class OutOfProcess(Protocol):
    """An engine with its own processes, which needs more software and may take long for a query."""

    def refuse_if_missing(self) -> None:
        """Raise if required software is not installed."""

    def tell(self, progress: Callable[[Progress], None]) -> None:
        """Set a callback for the progress of long computations outside of changes."""


def materialised(
    state: State,
    rules: Mapping[str, Rule],
    graph: HyperGraph,
    facts: Iterable[Fact],
    settings: Settings,
) -> State:
    """Add rules and facts to an empty state, as an ordinary change."""
    batch = state.batch()
    batch.add(facts)
    return state.maintain(rules, graph, state.effective_delta(batch, state.batch()), settings).commit()


def refuse_errors(rules: Mapping[str, Rule], dropped: Mapping[str, Dropped]) -> None:
    """Raise if evaluation errors dropped bindings: strict mode."""
    findings = [
        Diagnostic(
            "E002",
            f"rule {rules[key].label or format_rule(rules[key])} drops {d.count:,} bindings: {d.example}",
            "strict mode refuses evaluation errors; nothing was changed",
            rules[key].span,
        )
        for key, d in dropped.items()
    ]
    if findings:
        raise EvaluationProblem(findings)
