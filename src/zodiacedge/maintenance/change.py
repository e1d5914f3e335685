"""A change of rules and facts, and what it comes to on a given state.

`Change` is what somebody asks for; `prepare` finds out what it means: which rules and facts really
come and go (where something stands in both lists, addition wins), whether all checks hold on the
result, and the graph that follows. It changes nothing: a refused change has touched nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.errors import CheckProblem, Diagnostic, nearest
from zodiacedge.graph import HyperGraph
from zodiacedge.language.ast import Atom, Fact, Rule
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Host, Subject, check
from zodiacedge.language.parser import ground
from zodiacedge.language.printer import format_atom, format_predicate, format_rule
from zodiacedge.language.safety import resolve
from zodiacedge.language.unify import unifiable

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from zodiacedge.engine.api import Batch, Effect
    from zodiacedge.language.ast import Predicate


@dataclass(frozen=True, slots=True)
class Change:
    """Rules to add and to remove (by label, or by text up to variable names), facts likewise."""

    add_rules: tuple[Rule, ...] = ()
    remove_rules: tuple[str | Rule, ...] = ()
    add_facts: tuple[Fact, ...] = ()
    remove_facts: tuple[Fact, ...] = ()
    loaded: tuple[Batch, ...] = field(default=(), compare=False)
    """More facts to add, in the engine's own form."""
    stated: tuple[Atom, ...] = field(default=(), compare=False)
    """The facts to add that a text states, with their places, for the messages."""


@dataclass(frozen=True, slots=True)
class Program:
    """The rules in force by key, and their graph."""

    rules: Mapping[str, Rule] = field(default_factory=dict)
    graph: HyperGraph = field(default_factory=HyperGraph)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a change comes to: the program after it, what really comes and goes, and warnings."""

    program: Program
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    warnings: tuple[Diagnostic, ...]


def prepare(
    program: Program, change: Change, host: Host, effect: Effect, known: AbstractSet[Predicate]
) -> Prepared:
    """Work out a change on a program; raise with every finding if it must be refused.

    Facts of predicates that have facts already can break none of the checks but one, so a change of such
    facts alone costs nothing that grows with the rules.

    Args:
        program: The rules in force.
        change: What is asked for.
        host: What the host registered.
        effect: What the change comes to on the explicit facts.
        known: The predicates of the explicit facts there are.
    """
    coming = {f.predicate for f in change.add_facts}.union(*(batch.predicates() for batch in change.loaded))
    if not change.add_rules and not change.remove_rules and coming <= known:
        return _prepare_facts(program, effect)
    found: list[Diagnostic] = []
    added: dict[str, Rule] = {}
    for rule in change.add_rules:
        key = rule_key(resolve(rule))
        if key in program.rules or key in added:
            there = program.rules.get(key) or added[key]
            found.append(_already_there(rule, there))
        else:
            added[key] = rule
    kept = {rule_key(resolve(rule)) for rule in change.add_rules}
    removed = dict.fromkeys(
        key for one in change.remove_rules for key in _named(program, one, found) if key not in kept
    )
    rules = {key: rule for key, rule in program.rules.items() if key not in removed} | added
    found += _idle_facts(effect)
    placed = {ground(atom): atom for atom in change.stated}
    loaded = {f.predicate for f in change.add_facts if f not in placed}.union(
        known, *(batch.predicates() for batch in change.loaded)
    )
    found += check(Subject(tuple(rules.values()), tuple(placed.values()), loaded, host))
    found += _forbidden_facts(rules, effect, placed)
    errors = [d for d in found if d.severity == "error"]
    if errors:
        raise CheckProblem(errors)
    resolved = {key: resolve(rule) for key, rule in added.items()}
    graph, _ = program.graph.update(resolved, removed)
    return Prepared(
        Program(rules | resolved, graph),
        tuple(added.values()),
        tuple(program.rules[key] for key in removed),
        tuple(found),
    )


def _prepare_facts(program: Program, effect: Effect) -> Prepared:
    found = list(_idle_facts(effect))
    errors = list(_forbidden_facts(program.rules, effect, ()))
    if errors:
        raise CheckProblem([*found, *errors])
    return Prepared(program, (), (), tuple(found))


def _named(program: Program, one: str | Rule, found: list[Diagnostic]) -> Iterator[str]:
    if isinstance(one, Rule):
        key = rule_key(resolve(one))
        if key in program.rules:
            yield key
            return
        found.append(
            Diagnostic(
                "W011",
                "there is no such rule to remove",
                "rules are compared up to variable names and the order of the body",
                one.span,
                "warning",
            )
        )
        return
    labels = {rule.label: key for key, rule in program.rules.items() if rule.label}
    if one in labels:
        yield labels[one]
        return
    near = nearest(one, tuple(labels))
    hint = f"did you mean {near}?" if near else "remove an unlabelled rule by its text"
    found.append(Diagnostic("W011", f"there is no rule {one} to remove", hint, severity="warning"))


def _already_there(rule: Rule, there: Rule) -> Diagnostic:
    return Diagnostic(
        "W002",
        "this rule is there already, up to variable names and the order of the body",
        f"nothing changes: {format_rule(there)}",
        rule.span,
        "warning",
    )


def _idle_facts(effect: Effect) -> Iterator[Diagnostic]:
    if effect.idle:
        yield Diagnostic("W012", f"facts to add that are there already: {effect.idle:,}", severity="warning")
    missing, example = effect.missing
    if example:
        yield Diagnostic(
            "W013",
            f"facts to remove that are not explicit facts: {missing:,}, for example {format_atom(example)}",
            "a derived fact goes when its support goes",
            severity="warning",
        )


def _forbidden_facts(
    rules: Mapping[str, Rule], effect: Effect, placed: Container[Fact]
) -> Iterator[Diagnostic]:
    for head in [rule.head for rule in rules.values() if rule.aggregate]:
        for fact in effect.explicit(head.relation):
            # Those that a text states are found with their places, by the checks.
            if fact not in placed and unifiable(Atom(fact.relation, fact.args), head):
                yield Diagnostic(
                    "C013",
                    f"{format_predicate(head.predicate.name)} is defined by an aggregate, so it may have "
                    f"no explicit facts: {format_atom(fact)}",
                    "state the facts under another predicate",
                )
