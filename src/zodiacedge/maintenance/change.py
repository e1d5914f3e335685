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
    from collections.abc import Iterator, Mapping

    from zodiacedge.graph import GraphChange


@dataclass(frozen=True, slots=True)
class Change:
    """Rules to add and to remove (by label, or by text up to variable names), facts likewise."""

    add_rules: tuple[Rule, ...] = ()
    remove_rules: tuple[str | Rule, ...] = ()
    add_facts: tuple[Fact, ...] = ()
    remove_facts: tuple[Fact, ...] = ()
    stated: tuple[Atom, ...] = field(default=(), compare=False)
    """The facts that a text states, with their places, for the messages."""


@dataclass(frozen=True, slots=True)
class Program:
    """The rules in force by key, their graph, and the explicit facts."""

    rules: Mapping[str, Rule] = field(default_factory=dict)
    graph: HyperGraph = field(default_factory=HyperGraph)
    facts: frozenset[Fact] = frozenset()


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a change comes to: the program after it, what really comes and goes, and warnings."""

    program: Program
    graph_change: GraphChange
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    facts_added: frozenset[Fact]
    facts_removed: frozenset[Fact]
    warnings: tuple[Diagnostic, ...]


def prepare(program: Program, change: Change, host: Host) -> Prepared:
    """Work out a change on a program; raise with every finding if it must be refused."""
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
    facts_added = frozenset(change.add_facts) - program.facts
    facts_removed = (frozenset(change.remove_facts) & program.facts) - frozenset(change.add_facts)
    found += _idle_facts(program, change)
    facts = (program.facts - facts_removed) | facts_added
    placed = {ground(atom): atom for atom in change.stated}
    loaded = {f.predicate for f in facts if f not in placed}
    stated = tuple(atom for fact, atom in placed.items() if fact in facts)
    found += check(Subject(tuple(rules.values()), stated, loaded, host))
    found += _forbidden_facts(rules, facts - placed.keys())
    errors = [d for d in found if d.severity == "error"]
    if errors:
        raise CheckProblem(errors)
    resolved = {key: resolve(rule) for key, rule in added.items()}
    graph, graph_change = program.graph.update(resolved, removed)
    return Prepared(
        Program(rules | resolved, graph, facts),
        graph_change,
        tuple(added.values()),
        tuple(program.rules[key] for key in removed),
        facts_added,
        facts_removed,
        tuple(found),
    )


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


def _idle_facts(program: Program, change: Change) -> Iterator[Diagnostic]:
    idle = len(frozenset(change.add_facts) & program.facts)
    if idle:
        yield Diagnostic("W012", f"facts to add that are there already: {idle:,}", severity="warning")
    missing = frozenset(change.remove_facts) - program.facts
    if missing:
        example = format_atom(min(missing, key=format_atom))
        yield Diagnostic(
            "W013",
            f"facts to remove that are not explicit facts: {len(missing):,}, for example {example}",
            "a derived fact goes when its support goes",
            severity="warning",
        )


def _forbidden_facts(rules: Mapping[str, Rule], facts: frozenset[Fact]) -> Iterator[Diagnostic]:
    heads = [rule.head for rule in rules.values() if rule.aggregate]
    relations = {head.relation for head in heads}
    for fact in facts:
        if fact.relation not in relations:
            continue
        stated = Atom(fact.relation, fact.args)
        for head in heads:
            if unifiable(stated, head):
                yield Diagnostic(
                    "C013",
                    f"{format_predicate(head.predicate.name)} is defined by an aggregate, so it may have "
                    f"no explicit facts: {format_atom(fact)}",
                    "state the facts under another predicate",
                )
