"""A change of rules and facts, and what it comes to on a given state.

`Change` is what somebody asks for; `plan_rule_delta` finds out what it means: which rules and facts really
come and go (where something stands in both lists, addition wins), whether all checks hold on the
result, and the graph that follows. It changes nothing: a refused change has touched nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import CheckProblem, Diagnostic, nearest
from zodiacedge.kb.rule_base import RuleBase, names_in
from zodiacedge.language.ast import Atom, Fact, Rule, Variable, atom
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Host, Subject, body_atoms, check
from zodiacedge.language.parser import ground
from zodiacedge.language.printer import format_atom, format_predicate, format_rule
from zodiacedge.language.safety import resolve
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from zodiacedge.engine.api import Batch, FactDelta, State
    from zodiacedge.language.ast import Predicate

# So many facts that may not be are told of each rule.
_MOST_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class ChangeNote:
    """What is said about a change: why it was made, its prefixes, the stream and batch that it is from."""

    message: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    stream: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Rules to add and to remove (by label, or by text up to variable names), facts likewise."""

    add_rules: tuple[Rule, ...] = ()
    remove_rules: tuple[str | Rule, ...] = ()
    add_facts: tuple[Fact, ...] = ()
    remove_facts: tuple[Fact, ...] = ()
    loaded: tuple[Batch, ...] = field(default=(), compare=False)
    """More facts to add, in the engine's own form."""
    unloaded: tuple[Batch, ...] = field(default=(), compare=False)
    """More facts to remove, in the engine's own form."""
    stated: tuple[Atom, ...] = field(default=(), compare=False)
    """The facts to add that a text states, with their places, for the messages."""


@dataclass(frozen=True, slots=True)
class RuleDelta:
    """What a change comes to: the program after it, what really comes and goes, and warnings."""

    program: RuleBase
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    warnings: tuple[Diagnostic, ...]
    dropped: tuple[Mapping[str, Rule], ...] = ()
    """The rules of each node that had no others, by key: it is no more."""


def plan_rule_delta(
    program: RuleBase, change: Change, host: Host, effect: FactDelta, state: State
) -> RuleDelta:
    """Work out a change on a program; raise with every finding if it must be refused.

    Only rules that have a name in common with the change are looked at. Facts of predicates that have facts
    already can break none of the checks but one.

    Args:
        program: The rules in force.
        change: What is asked for.
        host: What the host registered.
        effect: What the change comes to on the explicit facts.
        state: The version that it is for.
    """
    coming = {f.predicate for f in change.add_facts}.union(*(batch.predicates() for batch in change.loaded))
    known = state.explicit_predicates({predicate.name for predicate in coming})
    only_facts = not change.add_rules and not change.remove_rules
    if (
        only_facts
        and coming <= known
        and not any(_forbidden_facts(_aggregating(program, coming), effect, ()))
    ):
        return RuleDelta(program, (), (), tuple(_idle_facts(effect)))
    found: list[Diagnostic] = []
    added: dict[str, Rule] = {}
    resolved: dict[str, Rule] = {}
    kept: set[str] = set()
    for rule in change.add_rules:
        resolved_rule = resolve(rule)
        key = rule_key(resolved_rule)
        kept.add(key)
        if key in program.rules or key in added:
            found.append(_already_there(rule, program.rules.get(key) or added[key]))
        else:
            added[key], resolved[key] = rule, resolved_rule
    removed = dict.fromkeys(
        key for one in change.remove_rules for key in _named(program, one, found) if key not in kept
    )
    found += _idle_facts(effect)
    placed = {ground(atom): atom for atom in change.stated}
    found += check(_subject(program, _Parts(added, removed, placed, change, effect), state, host))
    leaving = [program.rules[key] for key in removed]
    aggregated = [rule for rule in _aggregating(program, coming) if rule not in leaving]
    aggregated += [rule for rule in resolved.values() if rule.aggregate]
    found += _forbidden_facts(aggregated, effect, placed)
    errors = [d for d in found if d.severity == "error"]
    if errors:
        raise CheckProblem(errors)
    return RuleDelta(
        program.changed(resolved, removed),
        tuple(added.values()),
        tuple(program.rules[key] for key in removed),
        tuple(found),
        tuple(_dropped(program, removed)),
    )


def _dropped(program: RuleBase, removed: Collection[str]) -> Iterator[Mapping[str, Rule]]:
    for number in dict.fromkeys(program.graph.homes[key] for key in removed):
        keys = program.graph.nodes[number].rules
        if all(key in removed for key in keys):
            yield {key: program.rules[key] for key in sorted(keys)}


class _Parts(NamedTuple):
    # What a change comes to: rules by key, and the facts that a text states.
    added: Mapping[str, Rule]
    removed: Collection[str]
    placed: Mapping[Fact, Atom]
    change: Change
    effect: FactDelta


def _subject(program: RuleBase, parts: _Parts, state: State, host: Host) -> Subject:
    """Return what of a program there is to check: what comes, and what has a name in common with it."""
    added, removed, placed, change, effect = parts
    gone = [program.rules[key] for key in removed]
    names = {name for rule in (*added.values(), *gone) for name in names_in(rule)}
    loaded = {f.predicate for f in change.add_facts if f not in placed}
    loaded |= {predicate for batch in change.loaded for predicate in batch.predicates()}
    names |= {predicate.name for predicate in loaded} | {atom.predicate.name for atom in placed.values()}
    if any(rule.head.relation == RDF_TYPE for rule in (*added.values(), *gone)):
        # A head of any class may be one of every class.
        classes = (rule.head for rule in program.aggregated.values())
        names |= {RDF_TYPE, *(head.predicate.name for head in classes if head.relation == RDF_TYPE)}
    near = program.near(names, [rule.label for rule in added.values()])
    passed = tuple(program.rules[key] for key in sorted(near.difference(removed)))
    stated = _staying(state.explicit_predicates(names), (*added.values(), *passed), change, effect)

    def every_name() -> Iterable[str]:
        return state.predicate_names().union(program.defined)

    return Subject(
        tuple(added.values()),
        tuple(placed.values()),
        loaded | stated,
        host,
        passed,
        every_name,
    )


def _staying(
    stated: frozenset[Predicate], rules: Collection[Rule], change: Change, effect: FactDelta
) -> frozenset[Predicate]:
    """Return the predicates of explicit facts without those that lose their last one.

    Whether one is left is looked up, so this is asked only where a name comes at another arity.
    """
    leaving = {fact.predicate for fact in change.remove_facts}
    doubtful = stated & leaving.union(*(batch.predicates() for batch in change.unloaded))
    if not doubtful:
        return stated
    coming = {atom.predicate for rule in rules for atom in (rule.head, *body_atoms(rule.body))}
    coming |= {fact.predicate for fact in change.add_facts}
    coming = coming.union(*(batch.predicates() for batch in change.loaded))
    return stated.difference(
        one
        for one in doubtful
        if any(other.name == one.name and other != one for other in coming) and not _is_left(one, effect)
    )


def _is_left(one: Predicate, effect: FactDelta) -> bool:
    every = atom(one.name, tuple(Variable(f"V{n}") for n in range(one.arity)))
    # Members of classes that are no IRIs stand among those of all classes.
    found = effect.matching(every, None if one.name == RDF_TYPE else 1)
    return any(fact.predicate == one for fact in found)


def _aggregating(program: RuleBase, coming: Collection[Predicate]) -> list[Rule]:
    """Return the rules with an aggregate that define what some facts to come may be of."""
    return [
        rule
        for rule in program.aggregated.values()
        if rule.head.predicate in coming or (coming and rule.head.predicate.name == RDF_TYPE)
    ]


def _named(program: RuleBase, one: str | Rule, found: list[Diagnostic]) -> Iterator[str]:
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
    if one in program.labels:
        yield program.labels[one]
        return
    near = nearest(one, tuple(program.labels))
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


def _idle_facts(effect: FactDelta) -> Iterator[Diagnostic]:
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
    aggregated: Iterable[Rule], effect: FactDelta, placed: Collection[Fact]
) -> Iterator[Diagnostic]:
    for head in [rule.head for rule in aggregated]:
        # Those that a text states are found with their places, by the checks.
        some = effect.matching(head, len(placed) + _MOST_EXAMPLES)
        for fact in sorted((fact for fact in some if fact not in placed), key=format_atom)[:_MOST_EXAMPLES]:
            yield Diagnostic(
                "C013",
                f"{format_predicate(head.predicate.name)} is defined by an aggregate, so it may have "
                f"no explicit facts: {format_atom(fact)}",
                "state the facts under another predicate",
            )
