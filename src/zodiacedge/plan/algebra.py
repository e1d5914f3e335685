"""The steps of a plan, as values that can be printed and compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zodiacedge.language.ast import Aggregate, Argument, Atom, Binding, Comparison, Rule, Variable


class RelationVersion(Enum):
    """Which version of a relation a step reads, where the relation is one that the node itself derives."""

    OLD = "old"
    DELTA = "delta"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Match:
    """Match an atom; `bound` are the columns known before, `once` says that one match is enough."""

    atom: Atom
    position: int
    read: RelationVersion
    bound: tuple[int, ...]
    once: bool
    estimate: float | None
    """The facts expected for each row before; None if only an assumption is known, for printing."""


@dataclass(frozen=True, slots=True)
class AggregateRows:
    """Match the rows of the rule's aggregate: its groups and results."""

    aggregate: Aggregate
    position: int
    bound: tuple[int, ...]
    estimate: float

    @property
    def columns(self) -> tuple[Variable, ...]:
        """The variables of a row."""
        return self.aggregate.columns


@dataclass(frozen=True, slots=True)
class Absent:
    """An atom that must have no match; unbound variables are existential."""

    atom: Atom
    position: int
    bound: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison that must hold."""

    comparison: Comparison
    position: int


@dataclass(frozen=True, slots=True)
class Let:
    """A variable that gets the value of an expression."""

    binding: Binding
    position: int


Step = Match | AggregateRows | Absent | Test | Let


@dataclass(frozen=True, slots=True)
class Plan:
    """One plan of a body: the position of the delta, or None; the steps; and the head."""

    rule: Rule
    delta: int | None
    steps: tuple[Step, ...]
    head: tuple[Argument, ...]
    inner: tuple[Step, ...] = ()
    """The steps of the body of the rule's aggregate, which are evaluated first."""
