"""What an engine is: from rules, their graph and explicit facts to a materialisation, and answers.

The laws that every engine keeps, and that the shared test suite checks:

1. the visible facts are the perfect model of the rules over the explicit facts;
2. the segment of a hyper-node is all that its rules derive in one application on the visible facts;
3. answers and counts do not depend on the engine, on the order of facts, or on the order of a body;
4. work that fails leaves nothing behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import Registry
from zodiacedge.errors import Diagnostic, EvaluationProblem
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from zodiacedge.graph.hrdg import HyperGraph
    from zodiacedge.language.ast import Fact, Predicate, Query, Rule
    from zodiacedge.terms import Term


@dataclass(frozen=True, slots=True)
class Progress:
    """An engine's sign of life: the node it is at, the round, and the facts derived so far."""

    node: int
    nodes: int
    rules: tuple[str, ...]
    round: int
    facts: int


@dataclass(frozen=True, slots=True)
class Settings:
    """How to evaluate: what the host registered, the limits, and whether evaluation errors fail."""

    registry: Registry = field(default_factory=Registry)
    limits: Limits = field(default_factory=Limits)
    strict: bool = False
    progress: Callable[[Progress], None] | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """Bindings of one rule that evaluation errors dropped: how many, and one example."""

    count: int
    example: str


@dataclass(frozen=True, slots=True)
class NodeRun:
    """How one hyper-node was evaluated."""

    rules: tuple[str, ...]
    rounds: int
    facts: int
    seconds: float


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

    def derived(self) -> frozenset[Fact]:
        """The union of all segments, explicit too or not."""

    def derived_counts(self) -> Mapping[Predicate, int]:
        """Count the derived facts of each predicate, without listing them."""

    def predicates(self) -> frozenset[Predicate]:
        """The predicates of all visible facts."""

    def answer(self, query: Query, settings: Settings) -> Answer:
        """Answer a resolved query."""


class Engine(Protocol):
    """Evaluates programs. An engine keeps no state between calls."""

    @property
    def name(self) -> str:
        """The name users choose it by."""

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> Materialisation:
        """Evaluate checked and resolved rules, given by key, over explicit facts."""


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
