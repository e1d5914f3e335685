"""A change of rules and facts as a value, and its effective delta on a given version.

`Change` is the request. `plan_rule_delta` computes which rules are really inserted and deleted (insertion
wins over deletion; a rule that is deleted and inserted gets the label that it is inserted with), checks the
resulting program and updates the graph. A refused change has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import CheckProblem, Diagnostic, nearest
from zodiacedge.kb.rule_base import NOTHING_CHECKED, CheckedRules, RuleBase, names_in
from zodiacedge.kb.time.clock import times_after, times_in
from zodiacedge.kb.time.rule_forms import RuleForms
from zodiacedge.kb.warnings import endless_values, namesakes_of_rules, texts_as_times
from zodiacedge.language.ast import Atom, Fact, Rule, Variable, atom, body_atoms
from zodiacedge.language.checks import Host, Subject, check
from zodiacedge.language.lint.lints import lint
from zodiacedge.language.parser import ground
from zodiacedge.language.printer import format_atom, format_predicate, format_rule
from zodiacedge.language.vocabulary import KEEP_RELATION, RECENT_BASE, TIME_RELATION
from zodiacedge.language.windows import as_written, is_hidden
from zodiacedge.packs.base_program import BaseChange
from zodiacedge.packs.owners import PacksDelta
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

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
    quarantines: Mapping[int, str | os.PathLike[str]] = field(default_factory=dict, compare=False)
    """The folders for late facts, by the place of their batch in `loaded`."""
    atoms: tuple[Atom, ...] = field(default=(), compare=False)
    """The facts to insert that a program text contains, with their spans, for the messages."""
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)
    """Warnings of files that were loaded and of prefixes, for the report."""
    replace_labels: frozenset[str] = frozenset()
    """Labels whose present rules are deleted, because a rule of the same label is inserted."""
    sync_rules: bool = False
    """Whether all rules are deleted that are not among those to insert."""
    accepted: bool = False
    """Whether it was in force before: it replays or undoes changes, or copies a knowledge base."""
    packs: PacksDelta | None = None
    """How packs and their rules change; rules then come and go as they are named, whoever owns them."""
    checked: bool = True
    """Whether the checks of packs that come must hold."""
    tick: datetime | None = None
    """The time that the clock moves to."""
    checked_rules: CheckedRules = field(default=NOTHING_CHECKED, compare=False)
    """Those of the rules to insert that were checked already."""


@dataclass(frozen=True, slots=True)
class RuleDelta:
    """The effective rule delta of a change: the program after it, rules added and removed, and warnings."""

    program: RuleBase
    rules_added: tuple[Rule, ...]
    rules_removed: tuple[Rule, ...]
    warnings: tuple[Diagnostic, ...]
    dropped: tuple[Mapping[str, Rule], ...] = ()
    """The rules, by key, of each hyper-node that loses all its rules."""
    relabelled: tuple[tuple[Rule, Rule], ...] = ()
    """Rules that get another label, or lose theirs: before and after."""
    packs: PacksDelta = field(default_factory=PacksDelta)
    """How the packs in force, and what they own, change."""


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
    if (
        _has_only_facts(change)
        and inserted <= known
        and not any(_forbidden_facts(_aggregating(program, inserted).values(), fact_delta, ()))
    ):
        return RuleDelta(program, (), (), tuple(_idle_facts(fact_delta)))
    diagnostics: list[Diagnostic] = list(_empty_sync(program, change))
    added: dict[str, Rule] = {}
    resolved: dict[str, Rule] = {}
    relabelled: dict[str, Rule] = {}
    kept: set[str] = set()
    windows = RuleForms(
        cache(partial(times_after, fact_delta)),
        by_rows=state.keeps_windows,
        known=change.checked_rules.keyed,
    )
    of_before = RuleForms(cache(partial(times_in, state)), by_rows=state.keeps_windows)
    hidden: dict[str, Rule] = {}
    base = BaseChange(program.packs, program.rules)
    going = dict.fromkeys(_removed_keys(program, change, base, diagnostics, of_before))
    for rule in map(as_written, change.add_rules):
        key, resolved_rule, needed = windows.resolved(rule)
        hidden |= needed
        present = relabelled.get(key) or program.rules.get(key) or added.get(key)
        if not present:
            added[key], resolved[key] = rule, resolved_rule
        elif _is_of_base(change) and base.concerns(key):
            if not base.state(key, rule) and not _is_restated(rule, present, change):
                diagnostics.append(_duplicate(rule, present))
        elif key in going and key not in kept and rule.label != present.label:
            relabelled[key] = replace(present, label=rule.label, span=rule.span)
        elif _loses_its_label(program, rule, present, change):
            diagnostics.append(_lost_label(rule, present, in_force=key in program.rules))
        elif not _is_restated(rule, present, change):
            diagnostics.append(_duplicate(rule, present))
        kept.add(key)
    removed = [key for key in going if key not in kept]
    packs = base.delta() if change.packs is None else change.packs
    if change.packs is None:
        for key, label in base.relabelled():
            relabelled[key] = replace(program.rules[key], label=label)
    diagnostics += _idle_facts(fact_delta)
    atoms = {ground(atom): atom for atom in change.atoms}
    diagnostics += _moved_times(program, change, removed, fact_delta)
    if added or inserted or relabelled:
        # Rules that stay were checked, and no check fails for want of a rule or a fact.
        delta = _Delta(added, relabelled, removed, atoms, change, fact_delta, windows.times)
        diagnostics += check(_subject(program, delta, state, host))
    aggregated = [rule for key, rule in _aggregating(program, inserted).items() if key not in removed]
    aggregated += [rule for rule in resolved.values() if rule.aggregate]
    diagnostics += _forbidden_facts(aggregated, fact_delta, atoms)
    errors = [d for d in diagnostics if d.severity == "error"]
    if errors:
        # A load's warning may be the reason: a table that was read as one column has another arity.
        raise CheckProblem([*errors, *change.warnings])
    resolved |= {key: rule for key, rule in hidden.items() if key not in program.rules}
    after = _changed(program, {**resolved, **relabelled}, removed, packs, change.checked_rules)
    diagnostics += _lints(added.values(), change.checked_rules)
    diagnostics += endless_values(resolved, after.graph)
    diagnostics += _about_arrivals(
        inserted - known, after, added, state, delta=fact_delta, times=windows.times
    )
    return RuleDelta(
        after,
        tuple(added.values()),
        tuple(program.rules[key] for key in removed),
        tuple(diagnostics),
        tuple(_dropped(program, removed)),
        tuple((program.rules[key], rule) for key, rule in relabelled.items()),
        packs,
    )


def _about_arrivals(  # noqa: PLR0913 - what the warnings compare
    arrived: Collection[Predicate],
    after: RuleBase,
    added: Collection[str],
    state: State,
    *,
    delta: FactDelta,
    times: Callable[[], Mapping[str, int]],
) -> Iterator[Diagnostic]:
    """Warn about predicates that had no facts before."""
    yield from namesakes_of_rules(after, arrived, state, added)
    # Without a declaration of times there are none to look up.
    if arrived and (TIME_RELATION in {p.name for p in arrived} or state.explicit_predicates({TIME_RELATION})):
        yield from texts_as_times(arrived, times(), delta.matching)


def _has_only_facts(change: Change) -> bool:
    """Return whether a change concerns no rule, and no time of a predicate."""
    if change.add_rules or change.remove_rules or change.sync_rules or change.packs:
        return False
    names = {fact.relation for facts in (change.add_facts, change.remove_facts) for fact in facts}
    return names.isdisjoint((TIME_RELATION, KEEP_RELATION))


def _changed(
    program: RuleBase,
    added: Mapping[str, Rule],
    removed: Collection[str],
    packs: PacksDelta,
    checked: CheckedRules,
) -> RuleBase:
    """Return the rules and the packs that are in force after a change."""
    gone = (*removed, *_orphans(program, removed, added))
    after = program.changed(added, gone, checked)
    return replace(after, packs=program.packs.changed(packs)) if packs else after


def _lints(added: Iterable[Rule], checked: CheckedRules) -> Iterator[Diagnostic]:
    yield from checked.warnings
    yield from lint(rule for rule in added if rule not in checked.keyed)


def _orphans(program: RuleBase, removed: Collection[str], added: Mapping[str, Rule]) -> Iterator[str]:
    """Yield the keys of hidden rules that only removed rules need."""
    names = {name for key in removed for name in names_in(program.rules[key]) if name.startswith(RECENT_BASE)}
    needed = {name for rule in added.values() for name in names_in(rule)}
    for name in names - needed:
        keys = program.mentions[name].difference(removed)
        if all(is_hidden(program.rules[key]) for key in keys):
            yield from keys


def _moved_times(
    program: RuleBase, change: Change, removed: Collection[str], fact_delta: FactDelta
) -> Iterator[Diagnostic]:
    """Yield a finding for each time that is declared twice, or moves while rules have windows on it."""
    twice: set[str] = set()
    for fact in (*change.add_facts, *change.remove_facts):
        if fact.relation != TIME_RELATION:
            continue
        name = fact.args[0].value if isinstance(fact.args[0], IRI) else ""
        stated = set(fact_delta.matching(Atom(TIME_RELATION, (fact.args[0], Variable("position")))))
        if len(stated) > 1:
            if name not in twice:
                note = "remove the other @time in the same change"
                yield Diagnostic("C023", f"two @time name arguments of {format_predicate(name)}", note)
            twice.add(name)
        elif fact not in stated:
            keys = program.mentions.get(name, frozenset()).difference(removed)
            rules = [rule.source for key in keys if not is_hidden(rule := program.rules[key])]
            atoms = [atom for rule in rules if rule for atom in body_atoms(rule.body)]
            if any(atom.within and atom.predicate.name == name for atom in atoms):
                note = "remove the rules with `within` on it in the same change or before"
                yield Diagnostic("C023", f"rules have windows on {format_predicate(name)}", note)
            if any(fact_delta.matching(Atom(KEEP_RELATION, (fact.args[0], Variable("length"))), 1)):
                note = "remove its @keep in the same change or before"
                yield Diagnostic("C023", f"facts of {format_predicate(name)} are kept by this time", note)


def _dropped(program: RuleBase, removed: Collection[str]) -> Iterator[Mapping[str, Rule]]:
    for number in dict.fromkeys(program.graph.homes[key] for key in removed):
        keys = program.graph.nodes[number].rules
        if all(key in removed for key in keys):
            yield {key: program.rules[key] for key in sorted(keys)}


class _Delta(NamedTuple):
    # Rules inserted, relabelled and deleted by key, and the facts of program texts with their atoms.
    added: Mapping[str, Rule]
    relabelled: Mapping[str, Rule]
    removed: Collection[str]
    atoms: Mapping[Fact, Atom]
    change: Change
    fact_delta: FactDelta
    times: Callable[[], Mapping[str, int]]


def _subject(program: RuleBase, delta: _Delta, state: State, host: Host) -> Subject:
    """Return the rules and facts to check: those inserted, and those that a check compares with them."""
    added, relabelled, removed, atoms, change, fact_delta, _ = delta
    deleted = [program.rules[key] for key in removed]
    names = {name for rule in (*added.values(), *deleted) for name in names_in(rule)}
    loaded = {f.predicate for f in change.add_facts if f not in atoms}
    loaded |= {predicate for batch in change.loaded for predicate in batch.predicates()}
    names |= {predicate.name for predicate in loaded} | {atom.predicate.name for atom in atoms.values()}
    near = program.near(names, [rule.label for rule in (*added.values(), *relabelled.values())])
    near |= program.rivals(added.values())
    near.update(_aggregating(program, {atom.predicate for atom in atoms.values()}))
    near.difference_update(removed, relabelled)
    passed = (*(program.rules[key] for key in sorted(near)), *relabelled.values())
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
        distinct=True,
        accepted=change.accepted,
        times=delta.times,
        checked=change.checked_rules.keyed,
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
        and not has_facts(predicate, fact_delta)
    )


def has_facts(predicate: Predicate, fact_delta: FactDelta) -> bool:
    """Return whether there are explicit facts of a predicate after a change."""
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


def _is_restated(rule: Rule, present: Rule, change: Change) -> bool:
    """Return whether a change that states a whole program, or replaces rules, repeats a rule as it is."""
    return rule.label == present.label and (change.sync_rules or rule.label in change.replace_labels)


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
        cure = f"remove {present.label} in the same change"
    else:
        cure = "remove that rule by its text in the same change"
    return Diagnostic(
        "C015",
        f"the rule that is to replace {rule.label} is there already, {name}",
        f"{cure}: {format_rule(present)}",
        rule.span,
    )


def _is_of_base(change: Change) -> bool:
    """Return whether a change concerns the base program, and so no rule that only packs own."""
    return change.packs is None and not change.accepted


def _removed_keys(
    program: RuleBase, change: Change, base: BaseChange, diagnostics: list[Diagnostic], forms: RuleForms
) -> Iterator[str]:
    """Yield the keys of rules that go; of a rule that a pack owns, the base program goes as an owner."""
    named = [key for rule in change.remove_rules for key in _keys_of(program, rule, diagnostics, forms)]
    named += [program.labels[label] for label in sorted(change.replace_labels) if label in program.labels]
    shown = [key for key, rule in program.rules.items() if not is_hidden(rule)] if change.sync_rules else []
    if not (program.packs and _is_of_base(change)):
        yield from named
        yield from shown
        return
    for key in named:
        if base.concerns(key):
            diagnostics += base.release(key)
        else:
            yield key
    for key in shown:
        if base.concerns(key):
            base.release_shared(key)
        else:
            yield key


def _keys_of(
    program: RuleBase, rule: str | Rule, diagnostics: list[Diagnostic], windows: RuleForms
) -> Iterator[str]:
    if isinstance(rule, Rule):
        key, _, _ = windows.resolved(as_written(rule))
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
