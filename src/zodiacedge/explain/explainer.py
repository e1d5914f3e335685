"""Answers questions about one version: parses what is asked, searches, and writes the answer as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.registry import Registry
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.explain.budget import Budget
from zodiacedge.explain.instances import InstanceLookups
from zodiacedge.explain.look_ahead import patterns_about
from zodiacedge.explain.missing import HeadDiffers, WhyNot
from zodiacedge.explain.premises import premises_of
from zodiacedge.explain.proof import Explicit, Proof, Step, Unexplained
from zodiacedge.explain.search import LookupRules, Search
from zodiacedge.explain.why_not import BodySearch, HeadMatch, match_head
from zodiacedge.language.ast import Atom, Fact, Variable
from zodiacedge.language.parser import parse_query
from zodiacedge.language.printer import format_atom
from zodiacedge.language.unify import unifiable
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from zodiacedge.engine.api import Lookups
    from zodiacedge.explain.instances import Instance
    from zodiacedge.explain.missing import BodyFails
    from zodiacedge.explain.proof import Statement, Support
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Rule

# So many facts of a pattern are explained unless the caller says otherwise.
MOST_FACTS = 100
# So many versions are looked back unless the caller says otherwise.
MOST_VERSIONS = 1000


class Version(NamedTuple):
    """What is explained: the rules of a version, and its facts."""

    rules: Mapping[str, Rule]
    graph: HyperGraph
    lookups: Lookups
    registry: Registry
    number: int | None
    """The number of the version; None for a dry run."""
    prefixes: Mapping[str, str]
    statements: Callable[[Collection[Fact]], Mapping[Fact, Statement]] = lambda _: {}
    """Returns who stated explicit facts, where that is known."""
    nearest: Callable[[Atom], str] = lambda _: ""
    """Returns a note about an unknown predicate, with the nearest name; empty if it is known."""


def asked_atom(asked: str | Atom | Fact, prefixes: Mapping[str, str]) -> Atom:
    """Return the atom that a question is about, or raise."""
    if isinstance(asked, Fact):
        return Atom(asked.relation, asked.args)
    if isinstance(asked, Atom):
        return asked
    if not isinstance(asked, str):
        raise UsageProblem(
            Diagnostic("U013", f"expected a fact, found {asked!r}", "write it as a text: 'alarm(wt1)'")
        )
    query = parse_query(asked, "<question>", prefixes)
    if query.head is None and len(query.body) == 1 and isinstance(query.body[0], Atom):
        return query.body[0]
    raise UsageProblem(
        Diagnostic(
            "X002",
            f"{asked.strip()} is not one fact or one pattern of facts",
            "ask for one atom: 'alarm(wt1)', or 'alarm(X)' for all its facts",
            query.span,
        )
    )


def given_budget(budget: object) -> Budget:
    """Return a budget of which nothing is spent, or raise."""
    if budget is None:
        return Budget()
    if isinstance(budget, Budget):
        return Budget(budget.instances, budget.seconds)
    note = "write it as a budget: kb.explain(…, budget=ze.Budget(seconds=60))"
    raise UsageProblem(Diagnostic("U013", f"expected a budget, found {budget!r}", note))


def asked_fact(asked: str | Atom | Fact, prefixes: Mapping[str, str]) -> Fact:
    """Return the one fact that a question is about, or raise."""
    atom = asked_atom(asked, prefixes)
    terms = tuple(arg for arg in atom.args if not isinstance(arg, Variable))
    if len(terms) == len(atom.args):
        return Fact(atom.relation, terms)
    shown = format_atom(atom, prefixes)
    note = "the history is that of one fact: write constants in place of variables"
    raise UsageProblem(Diagnostic("X007", f"{shown} is a pattern, not a fact", note, atom.span))


def is_visible(fact: Fact, lookups: Lookups) -> bool:
    """Return whether a fact is there."""
    atom = Atom(fact.relation, fact.args)
    return bool(InstanceLookups(lookups, Registry()).visible(atom, 1)[0])


class Explainer:
    """Explains facts of one version; plans of lookups are kept for the next question."""

    def __init__(self, version: Version) -> None:
        """Read one version."""
        self.version = version
        self.instances = InstanceLookups(version.lookups, version.registry)
        self.shapes = LookupRules(version.rules, version.graph)

    def explain(
        self, asked: str | Atom | Fact, limit: int = MOST_FACTS, budget: Budget | None = None
    ) -> Proof:
        """Return proofs of least height of a fact, or of the facts that match a pattern."""
        atom = asked_atom(asked, self.version.prefixes)
        budget = given_budget(budget)
        if self.instances.looks_ahead:
            self.instances.look_ahead((), patterns_about([atom], self.shapes.deriving))
        facts, complete = self.instances.visible(atom, limit)
        if not facts:
            raise self._not_there(atom)
        facts.sort(key=lambda fact: tuple(map(order_key, fact.args)))
        return self.prove(facts, budget, more=not complete)

    def why_not(self, asked: str | Atom | Fact, budget: Budget | None = None) -> WhyNot:
        """Return why no fact matches an atom: rule by rule, what holds and what fails."""
        atom = asked_atom(asked, self.version.prefixes)
        budget = given_budget(budget)
        if self.instances.visible(atom, 1)[0]:
            shown = format_atom(atom, self.version.prefixes)
            note = f"explain says why: kb.explain({shown!r})"
            raise UsageProblem(Diagnostic("X004", f"{shown} is there", note, atom.span))
        statements, registry = self.version.statements, self.version.registry
        search = BodySearch(self.shapes, self.instances, registry, budget, atom, statements)
        shapes = [
            self.shapes.shape(key)
            for key, rule in self.version.rules.items()
            if rule.head.relation == atom.relation
            and len(rule.head.args) == len(atom.args)
            and (rule.head.predicate == atom.predicate or unifiable(rule.head, atom))
        ]
        matches = {shape: match_head(shape, atom) for shape in shapes}
        failures = [search.fails(shape, m) for shape, m in matches.items() if isinstance(m, HeadMatch)]
        failures.sort(key=_distance)
        heads = [m for m in matches.values() if isinstance(m, HeadDiffers)]
        note = self.version.nearest(atom)
        if not shapes and not note:
            note = "no rule derives it: its facts are explicit facts"
        complete = not budget.ended and not budget.cut
        prefixes = dict(self.version.prefixes)
        return WhyNot(atom, (*failures, *heads), note, complete, self.version.number, prefixes)

    def _not_there(self, atom: Atom) -> UsageProblem:
        shown = format_atom(atom, self.version.prefixes)
        note = self.version.nearest(atom) or f"why_not says why: kb.why_not({shown!r})"
        if any(isinstance(arg, Variable) for arg in atom.args):
            return UsageProblem(Diagnostic("X003", f"no fact matches {shown}", note, atom.span))
        return UsageProblem(Diagnostic("X003", f"{shown} is not there", note, atom.span))

    def prove(self, facts: Collection[Fact], budget: Budget, *, more: bool = False) -> Proof:
        """Return proofs of facts that are there."""
        search = Search(self.shapes, self.instances, budget)
        search.solve(facts)
        if budget.ended:
            search.find_any(facts, Budget(budget.instances, budget.seconds))
        supports = self._supports(facts, search)
        explicit = [fact for fact, support in supports.items() if isinstance(support, Explicit)]
        for fact, statement in self.version.statements(explicit).items():
            supports[fact] = Explicit(fact, statement)
        least = search.least and not budget.ended
        version = self.version
        return Proof(tuple(facts), supports, least, more, version.number, dict(version.prefixes))

    def _supports(self, facts: Collection[Fact], search: Search) -> dict[Fact, Support]:
        """Return the support of each fact, and of all that these need."""
        supports: dict[Fact, Support] = {}
        waiting = list(facts)
        while waiting:
            shown: dict[Fact, None] = {}
            for fact in waiting:
                self._support(fact, search, supports, shown)
            waiting = [fact for fact in shown if fact not in supports]
            search.solve(waiting)
        return _with_heights(supports)

    def _support(
        self, asked: Fact, search: Search, supports: dict[Fact, Support], shown: dict[Fact, None]
    ) -> None:
        waiting = [asked]
        while waiting:
            fact = waiting.pop()
            if fact in supports:
                continue
            if fact in search.explicit:
                supports[fact] = Explicit(fact)
                continue
            instance = search.chosen.get(fact) or _guess(fact, search, supports)
            if instance is None:
                supports[fact] = Unexplained(fact)
                continue
            values = instance.values
            premises = premises_of(instance.shape, values, self.instances, self.version.registry)
            step = Step(fact, instance.shape.key, instance.shape.rule, values, premises, 0)
            supports[fact] = step
            waiting += step.facts
            shown.update(dict.fromkeys(step.shown_facts))


def _distance(failure: BodyFails) -> int:
    return min((len(a.failing) + len(a.open) for a in failure.attempts), default=1000)


def _guess(fact: Fact, search: Search, supports: Mapping[Fact, Support]) -> Instance | None:
    """Return an instance for a fact that no proof was found of: its open premises come later than it."""
    for instance in search.expanded.get(fact, ()):
        if all(p in search.heights or (p not in supports and p != fact) for p in instance.premises):
            return instance
    return None


def _with_heights(supports: dict[Fact, Support]) -> dict[Fact, Support]:
    """Return the supports with the heights of all steps."""
    heights: dict[Fact, int] = {}
    for fact in supports:
        waiting = [fact]
        while waiting:
            current = waiting[-1]
            support = supports[current]
            if current in heights or not isinstance(support, Step):
                heights.setdefault(current, 0)
                waiting.pop()
                continue
            missing = [p for p in support.facts if p not in heights]
            if missing:
                waiting += missing
                continue
            heights[current] = 1 + max((heights[p] for p in support.facts), default=0)
            waiting.pop()
    return {
        fact: Step(s.fact, s.key, s.rule, s.values, s.premises, heights[fact]) if isinstance(s, Step) else s
        for fact, s in supports.items()
    }
