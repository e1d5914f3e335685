"""Answers to "why not" as values: for each rule, how far its body holds and what fails first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.explain.forms.explanation import Explanation
from zodiacedge.language.vocabulary import NOW_RELATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.explain.proof import ComparisonPremise, Premise, Statement, Values
    from zodiacedge.language.ast import Aggregate, Atom, Conjunct, Fact, Rule, Variable
    from zodiacedge.terms import Term


# Conditions that fail.


@dataclass(frozen=True, slots=True)
class NoSuchFact:
    """A positive atom: no fact is an instance of `pattern`, the atom with the values that are known."""

    atom: Atom
    pattern: Atom
    under_question: bool = False
    """Whether what was asked covers the pattern: the rule is recursive, and the atom need not be asked."""


@dataclass(frozen=True, slots=True)
class PresentFact:
    """A negated atom that a fact matches."""

    atom: Atom
    fact: Fact
    statement: Statement | None = None
    """Who stated the fact, where it is explicit and a store knows."""
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class FailedComparison:
    """A comparison that does not hold, with the values of both sides."""

    premise: ComparisonPremise


@dataclass(frozen=True, slots=True)
class NoResult:
    """An expression or an aggregate without a value: why."""

    conjunct: Conjunct
    filled: Conjunct
    reason: str


@dataclass(frozen=True, slots=True)
class OtherValue:
    """A variable that the body computes as something else than was asked, or than another conjunct needs."""

    conjunct: Conjunct
    """The binding or the aggregate that computes it."""
    variable: Variable
    value: Term
    wanted: Term
    asked: bool = True
    """Whether the atom that was asked has the wanted value; otherwise another conjunct has."""


@dataclass(frozen=True, slots=True)
class NoBindings:
    """An aggregate whose body has no bindings in the group."""

    aggregate: Aggregate
    group: Values


Failing = NoSuchFact | PresentFact | FailedComparison | NoResult | OtherValue | NoBindings


@dataclass(frozen=True, slots=True)
class Attempt:
    """A binding that comes close: the conjuncts that hold under it, and those that do not."""

    values: Values
    holds: tuple[Premise, ...]
    failing: tuple[Failing, ...]
    """The conditions that fail under these values, the first one first; at least one."""
    open: tuple[Conjunct, ...] = ()
    """Conjuncts that say nothing, because a variable of them has no value."""


@dataclass(frozen=True, slots=True)
class HeadDiffers:
    """A rule of the predicate whose head cannot match: an argument of it is another constant."""

    key: str
    rule: Rule
    position: int
    """The position of the argument, from 0."""
    constant: Term
    """The constant of the rule's head, or the value of another argument that must be equal to this one."""
    wanted: Term


@dataclass(frozen=True, slots=True)
class BodyFails:
    """A rule whose head matches: the bindings that come closest, the best first."""

    key: str
    rule: Rule
    attempts: tuple[Attempt, ...]


RuleFailure = HeadDiffers | BodyFails


@dataclass(frozen=True, slots=True, repr=False)
class WhyNot(Explanation):
    """Why no fact matches an atom."""

    atom: Atom
    rules: tuple[RuleFailure, ...]
    """The rules whose head has the predicate of the atom, those that come closest first."""
    note: str = ""
    """Where no rule and no fact has the predicate: the nearest name."""
    complete: bool = True
    """Whether the search ended by itself; otherwise the budget ended, and closer bindings may exist."""
    version: int | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def next_questions(self) -> tuple[Atom, ...]:
        """The atoms that fail, to be asked in turn: each once, without what was asked."""
        return tuple(
            dict.fromkeys(
                failing.pattern
                for failure in self.rules
                if isinstance(failure, BodyFails)
                for attempt in failure.attempts
                for failing in attempt.failing
                if isinstance(failing, NoSuchFact) and not failing.under_question
                if failing.pattern.relation != NOW_RELATION
            )
        )
