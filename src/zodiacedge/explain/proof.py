"""Proofs as values: a graph of facts, each with the step that derives it unless it is explicit.

A proof has one `Support` per fact, so parts that several steps need are there once. It never leans on itself:
the premises of a step have smaller heights than its fact. The height of an explicit fact is 0, that of a
derived fact one more than the largest height among the facts of its step; negated atoms, comparisons,
bindings and aggregates add nothing to it. Forms for people are left to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.explain.forms.explanation import Explanation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from zodiacedge.language.ast import Aggregate, Atom, Binding, Comparison, Fact, Fold, Rule, Variable
    from zodiacedge.terms import Term

Values = Mapping["Variable", "Term"]


@dataclass(frozen=True, slots=True)
class Statement:
    """Where a store knows it: the version that made a fact explicit, who made the change, when, and why."""

    version: int
    author: str = ""
    time: datetime | None = None
    message: str = ""


# Premises: what a conjunct of the body says under the values of a step.


@dataclass(frozen=True, slots=True)
class FactPremise:
    """A positive atom and the fact that it matches."""

    atom: Atom
    fact: Fact


@dataclass(frozen=True, slots=True)
class AbsentPremise:
    """A negated atom: no fact is an instance of `pattern`, the atom with the values of the step."""

    atom: Atom
    pattern: Atom
    """Variables are left where any value would do."""


@dataclass(frozen=True, slots=True)
class ComparisonPremise:
    """A comparison with the values of both sides."""

    comparison: Comparison
    filled: Comparison
    """The comparison with values in place of variables."""
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class BindingPremise:
    """`variable := expression` and its value."""

    binding: Binding
    filled: Binding
    """The binding with values in place of the variables of its expression."""
    value: Term


@dataclass(frozen=True, slots=True)
class AggregateRow:
    """One binding of the body of an aggregate, with the premises of that body."""

    values: Values
    premises: tuple[Premise, ...]


@dataclass(frozen=True, slots=True)
class AggregatePremise:
    """An aggregate: its group, the number of bindings of its body, its results, and the decisive bindings.

    Decisive are the rows of the minimum and of the maximum, the middle rows of a median, and for the other
    aggregates a few rows.
    """

    aggregate: Aggregate
    group: Values
    results: tuple[tuple[Fold, Term], ...]
    bindings: int
    """The number of bindings of the body in this group that have a value for every fold."""
    shown: tuple[AggregateRow, ...]


Premise = FactPremise | AbsentPremise | ComparisonPremise | BindingPremise | AggregatePremise


# Supports: why a fact is there.


@dataclass(frozen=True, slots=True)
class Explicit:
    """An explicit fact: a leaf."""

    fact: Fact
    statement: Statement | None = None

    @property
    def height(self) -> int:
        """An explicit fact needs no step."""
        return 0


@dataclass(frozen=True, slots=True)
class Step:
    """A derived fact: an instance of a rule whose body holds."""

    fact: Fact
    key: str
    """The key of the rule in the knowledge base."""
    rule: Rule
    values: Values
    """The values of the variables of the rule; those inside an aggregate are left out."""
    premises: tuple[Premise, ...]
    """One per conjunct of the body, in its order."""
    height: int

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that the step needs, each once; those inside an aggregate are left out."""
        return tuple(dict.fromkeys(p.fact for p in self.premises if isinstance(p, FactPremise)))

    @property
    def shown_facts(self) -> tuple[Fact, ...]:
        """The facts of the bindings that are shown of its aggregate, each once."""
        return tuple(
            dict.fromkeys(
                inner.fact
                for premise in self.premises
                if isinstance(premise, AggregatePremise)
                for row in premise.shown
                for inner in row.premises
                if isinstance(inner, FactPremise)
            )
        )


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A fact that is there and was not explained, because the budget ended."""

    fact: Fact

    @property
    def height(self) -> int:
        """Not known."""
        return 0


Support = Explicit | Step | Unexplained


@dataclass(frozen=True, slots=True, repr=False)
class Proof(Explanation):
    """Proofs of one or more facts, with shared parts."""

    facts: tuple[Fact, ...]
    """The facts that were asked for, in the total order."""
    supports: Mapping[Fact, Support]
    """The support of each fact of the proof; the asked ones and all that they need."""
    least: bool = True
    """Whether no proof of an asked fact has a smaller height; false only if the budget ended."""
    more: bool = False
    """Whether further facts match the pattern that was asked, beyond the limit."""
    version: int | None = None
    """The version that the proof is about; None for a dry run."""
    prefixes: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Prefixes that abbreviate IRIs for people."""

    @property
    def complete(self) -> bool:
        """Whether every fact is explained down to explicit facts; false only if the budget ended."""
        return not any(isinstance(support, Unexplained) for support in self.supports.values())

    @property
    def fact(self) -> Fact:
        """The fact that was asked for, the first of several."""
        return self.facts[0]

    @property
    def height(self) -> int:
        """The largest height among the facts that were asked for."""
        return max((self.supports[fact].height for fact in self.facts), default=0)

    def __getitem__(self, fact: Fact) -> Support:
        """Return the support of a fact of the proof."""
        return self.supports[fact]

    def __len__(self) -> int:
        """Return the number of facts in the proof."""
        return len(self.supports)

    def below(self, fact: Fact) -> tuple[Fact, ...]:
        """Return the facts that the step of a fact needs, then those that its aggregate shows."""
        support = self.supports[fact]
        if not isinstance(support, Step):
            return ()
        return tuple(dict.fromkeys((*support.facts, *support.shown_facts)))

    def steps(self) -> Iterator[Step]:
        """Yield the steps, each fact after those that it needs."""
        for support in self.in_order():
            if isinstance(support, Step):
                yield support

    def in_order(self) -> Iterator[Support]:
        """Yield all supports, each fact after those that it needs."""
        done: set[Fact] = set()
        for asked in self.facts:
            waiting = [(asked, iter(self.below(asked)))]
            entered = {asked}
            while waiting:
                fact, below = waiting[-1]
                if fact in done:
                    waiting.pop()
                    continue
                following = next((f for f in below if f not in done and f not in entered), None)
                if following is None:
                    waiting.pop()
                    done.add(fact)
                    yield self.supports[fact]
                else:
                    entered.add(following)
                    waiting.append((following, iter(self.below(following))))
