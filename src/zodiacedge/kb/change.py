"""A change of rules and facts as a value, and its effective delta on a given version.

`Change` is the request. `plan_rule_delta` computes which rules are really inserted and deleted (insertion
wins over deletion), checks the resulting program and updates the graph. A refused change has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import CheckProblem, Diagnostic, nearest
from zodiacedge.kb.rule_base import RuleBase, names_in
from zodiacedge.kb.warnings import endless_values
from zodiacedge.language.ast import Atom, Fact, Rule, Variable, atom, body_atoms
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Host, Subject, check
from zodiacedge.language.lint.lints import lint
from zodiacedge.language.parser import ground
from zodiacedge.language.printer import format_atom, format_predicate, format_rule
from zodiacedge.language.safety import resolve
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from zodiacedge.engine.api import Batch, FactDelta, State
    from zodiacedge.language.ast import Predicate

# The number of forbidden facts that are reported for each rule.
_MOST_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class ChangeNote:
    """Metadata of a change: its message, its new prefixes, the stream and batch that it is from."""

    message: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    stream: tuple[str, int] | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the metadata is recorded even if the change has no other effect."""
        return bool(self.prefixes) or self.stream is not None


@dataclass(frozen=True, slots=True)
class Change:
    """Rules to insert and to delete (by label, or by text up to variable names), and facts likewise."""

    add_rules: tuple[Rule, ...] = ()
    remove_rules: tuple[str | Rule, ...] = ()
    add_facts: tuple[Fact, ...] = ()
    remove_facts: tuple[Fact, ...] = ()
    loaded: tuple[Batch, ...] = field(default=(), compare=False)
    """More facts to insert, in the engine's own form."""
    unloaded: tuple[Batch, ...] = field(default=(), compare=False)
    """More facts to delete, in the engine's own form."""
    atoms: tuple[Atom, ...] = field(default=(), compare=False)
    """The facts to insert that a program text contains, with their spans, for the messages."""
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)
    """The warnings of the files that were loaded, for the report."""
    replace_labels: frozenset[str] = frozenset()
    """Labels whose present rules are deleted, because a rule of the same label is inserted."""
    sync_rules: bool = False
    """Whether all rules are deleted that are not among those to insert."""


@dataclass(frozen=True, slots=True)
class RuleDelta:
    """The effective rule delta of a change: the program after it, rules added and removed, and warnings."""

    program: RuleBase
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    warnings: tuple[Diagnostic, ...]
    dropped: tuple[Mapping[str, Rule], ...] = ()
    """The rules, by key, of each hyper-node that loses all its rules."""


def plan_rule_delta(
    program: RuleBase, change: Change, host: Host, fact_delta: FactDelta, state: State
) -> RuleDelta:
    """Compute the rule delta of a change; raise with all diagnostics if it must be refused.

    Only rules that share a predicate name or an aggregate with the change are checked. Facts of predicates
    that have facts already can violate one check only.

    Args:
        program: The rules in force.
        change: The request.
        host: Functions and aggregates that the host registered.
        fact_delta: The delta of the change on the explicit facts.
        state: The version that the change starts from.
    """
    inserted = {f.predicate for f in change.add_facts}.union(*(batch.predicates() for batch in change.loaded))
    known = state.explicit_predicates({predicate.name for predicate in inserted})
    only_facts = not (change.add_rules or change.remove_rules or change.sync_rules)
    if (
        only_facts
        and inserted <= known
        and not any(_forbidden_facts(_aggregating(program, inserted).values(), fact_delta, ()))
    ):
        return RuleDelta(program, (), (), tuple(_idle_facts(fact_delta)))
    diagnostics: list[Diagnostic] = list(_empty_sync(program, change))
    added: dict[str, Rule] = {}
    resolved: dict[str, Rule] = {}
    kept: set[str] = set()
    for rule in change.add_rules:
        resolved_rule = resolve(rule)
        key = rule_key(resolved_rule)
        present = program.rules.get(key) or added.get(key)
        if not present:
            added[key], resolved[key] = rule, resolved_rule
        elif _loses_its_label(program, rule, present, change):
            diagnostics.append(_lost_label(rule, present, in_force=key in program.rules))
        elif not _is_restated(rule, present, change, is_first=key not in kept):
            diagnostics.append(_duplicate(rule, present))
        kept.add(key)
    removed = dict.fromkeys(key for key in _removed_keys(program, change, diagnostics) if key not in kept)
    diagnostics += _idle_facts(fact_delta)
    atoms = {ground(atom): atom for atom in change.atoms}
    diagnostics += check(_subject(program, _Delta(added, removed, atoms, change, fact_delta), state, host))
    aggregated = [rule for key, rule in _aggregating(program, inserted).items() if key not in removed]
    aggregated += [rule for rule in resolved.values() if rule.aggregate]
    diagnostics += _forbidden_facts(aggregated, fact_delta, atoms)
    errors = [d for d in diagnostics if d.severity == "error"]
    if errors:
        raise CheckProblem(errors)
    after = program.changed(resolved, removed)
    diagnostics += lint(added.values())
    diagnostics += endless_values(resolved, after.graph)
    return RuleDelta(
        after,
        tuple(added.values()),
        tuple(program.rules[key] for key in removed),
        tuple(diagnostics),
        tuple(_dropped(program, removed)),
    )


def _dropped(program: RuleBase, removed: Collection[str]) -> Iterator[Mapping[str, Rule]]:
    for number in dict.fromkeys(program.graph.homes[key] for key in removed):
        keys = program.graph.nodes[number].rules
        if all(key in removed for key in keys):
            yield {key: program.rules[key] for key in sorted(keys)}


class _Delta(NamedTuple):
    # Rules inserted and deleted by key, and the facts of program texts with their atoms.
    added: Mapping[str, Rule]
    removed: Collection[str]
    atoms: Mapping[Fact, Atom]
    change: Change
    fact_delta: FactDelta


def _subject(program: RuleBase, delta: _Delta, state: State, host: Host) -> Subject:
    """Return the rules and facts to check: those inserted, and those that a check compares with them."""
    added, removed, atoms, change, fact_delta = delta
    deleted = [program.rules[key] for key in removed]
    names = {name for rule in (*added.values(), *deleted) for name in names_in(rule)}
    loaded = {f.predicate for f in change.add_facts if f not in atoms}
    loaded |= {predicate for batch in change.loaded for predicate in batch.predicates()}
    names |= {predicate.name for predicate in loaded} | {atom.predicate.name for atom in atoms.values()}
    near = program.near(names, [rule.label for rule in added.values()])
    near |= program.rivals(added.values())
    near.update(_aggregating(program, {atom.predicate for atom in atoms.values()}))
    passed = tuple(program.rules[key] for key in sorted(near.difference(removed)))
    explicit = _remaining(state.explicit_predicates(names), (*added.values(), *passed), change, fact_delta)

    def every_name() -> Iterable[str]:
        return state.predicate_names().union(program.defined)

    return Subject(
        tuple(added.values()),
        tuple(atoms.values()),
        loaded | explicit,
        host,
        passed,
        every_name,
    )


def _remaining(
    explicit: frozenset[Predicate], rules: Collection[Rule], change: Change, fact_delta: FactDelta
) -> frozenset[Predicate]:
    """Return the predicates of explicit facts without those that lose their last fact.

    The lookup of remaining facts is limited to names that are inserted with another arity.
    """
    deleted = {fact.predicate for fact in change.remove_facts}
    doubtful = explicit & deleted.union(*(batch.predicates() for batch in change.unloaded))
    if not doubtful:
        return explicit
    inserted = {atom.predicate for rule in rules for atom in (rule.head, *body_atoms(rule.body))}
    inserted |= {fact.predicate for fact in change.add_facts}
    inserted = inserted.union(*(batch.predicates() for batch in change.loaded))
    return explicit.difference(
        predicate
        for predicate in doubtful
        if any(other.name == predicate.name and other != predicate for other in inserted)
        and not _has_facts(predicate, fact_delta)
    )


def _has_facts(predicate: Predicate, fact_delta: FactDelta) -> bool:
    pattern = atom(predicate.name, tuple(Variable(f"V{n}") for n in range(predicate.arity)))
    # Members of classes that are not IRIs are stored with the members of all classes.
    facts = fact_delta.matching(pattern, None if predicate.name == RDF_TYPE else 1)
    return any(fact.predicate == predicate for fact in facts)


def _aggregating(program: RuleBase, inserted: Collection[Predicate]) -> dict[str, Rule]:
    """Return the rules with an aggregate, by key, whose head may match inserted facts."""
    return {
        key: rule
        for key, rule in program.aggregated.items()
        if rule.head.predicate in inserted or (inserted and rule.head.predicate.name == RDF_TYPE)
    }


def _empty_sync(program: RuleBase, change: Change) -> Iterator[Diagnostic]:
    if change.sync_rules and not change.add_rules and program.rules:
        yield Diagnostic(
            "C016",
            f"the program to sync with has no rules, and {len(program.rules):,} in force would be removed",
            "to remove rules, name them by label or by text",
        )


def _is_restated(rule: Rule, present: Rule, change: Change, *, is_first: bool) -> bool:
    """Return whether a change that states a whole program, or replaces rules, repeats a rule as it is.

    A whole program may have another label for a rule; the rule keeps the label that it is in force under.
    """
    if rule.label == present.label:
        return change.sync_rules or rule.label in change.replace_labels
    return change.sync_rules and is_first


def _loses_its_label(program: RuleBase, rule: Rule, present: Rule, change: Change) -> bool:
    """Return whether the rule of a label would be deleted for a rule that has another label already."""
    return (
        rule.label in change.replace_labels and rule.label in program.labels and rule.label != present.label
    )


def _lost_label(rule: Rule, present: Rule, *, in_force: bool) -> Diagnostic:
    name = f"as {present.label}" if present.label else "without a label"
    if not in_force:
        cure = "leave out one of the two"
    elif present.label:
        cure = f"remove {present.label} first, in a change of its own"
    else:
        cure = "remove that rule by its text first, in a change of its own"
    return Diagnostic(
        "C015",
        f"the rule that is to replace {rule.label} is there already, {name}",
        f"{cure}: {format_rule(present)}",
        rule.span,
    )


def _removed_keys(program: RuleBase, change: Change, diagnostics: list[Diagnostic]) -> Iterator[str]:
    for rule in change.remove_rules:
        yield from _keys_of(program, rule, diagnostics)
    for label in sorted(change.replace_labels):
        if label in program.labels:
            yield program.labels[label]
    if change.sync_rules:
        yield from program.rules


def _keys_of(program: RuleBase, rule: str | Rule, diagnostics: list[Diagnostic]) -> Iterator[str]:
    if isinstance(rule, Rule):
        key = rule_key(resolve(rule))
        if key in program.rules:
            yield key
            return
        diagnostics.append(
            Diagnostic(
                "W011",
                "there is no such rule to remove",
                "rules are compared up to variable names and the order of the body",
                rule.span,
                "warning",
            )
        )
        return
    if rule in program.labels:
        yield program.labels[rule]
        return
    near = nearest(rule, tuple(program.labels))
    hint = f"did you mean {near}?" if near else "remove an unlabelled rule by its text"
    diagnostics.append(Diagnostic("W011", f"there is no rule {rule} to remove", hint, severity="warning"))


def _duplicate(rule: Rule, existing: Rule) -> Diagnostic:
    return Diagnostic(
        "W002",
        "this rule is there already, up to variable names and the order of the body",
        f"nothing changes: {format_rule(existing)}",
        rule.span,
        "warning",
    )


def _idle_facts(fact_delta: FactDelta) -> Iterator[Diagnostic]:
    if fact_delta.idle:
        yield Diagnostic(
            "W012", f"facts to add that are there already: {fact_delta.idle:,}", severity="warning"
        )
    missing, example = fact_delta.missing
    if example:
        yield Diagnostic(
            "W013",
            f"facts to remove that are not explicit facts: {missing:,}, for example {format_atom(example)}",
            "a derived fact goes when its support goes",
            severity="warning",
        )


def _forbidden_facts(
    aggregated: Iterable[Rule], fact_delta: FactDelta, atoms: Collection[Fact]
) -> Iterator[Diagnostic]:
    for head in [rule.head for rule in aggregated]:
        # The checks report facts of program texts, with their spans.
        facts = fact_delta.matching(head, len(atoms) + _MOST_EXAMPLES)
        for fact in sorted((fact for fact in facts if fact not in atoms), key=format_atom)[:_MOST_EXAMPLES]:
            yield Diagnostic(
                "C013",
                f"{format_predicate(head.predicate.name)} is defined by an aggregate, so it may have "
                f"no explicit facts: {format_atom(fact)}",
                "state the facts under another predicate",
            )
