"""The random programs are legal, and what is interesting about programs really occurs in them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from strategies import (
    FULL,
    INTEGERS,
    TINY,
    Profile,
    RandomProgram,
    RandomSession,
    Seeded,
    apply_change,
    evaluate_program,
    keyed,
    programs,
    random_program,
    random_session,
    sessions,
)
from zodiacedge.graph.hyper_graph import HyperGraph
from zodiacedge.language.ast import Aggregate, Atom, Binding, Comparison, Negation, Rule, Variable, variables
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import ground, parse_program
from zodiacedge.language.safety import analyse
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE = 500


def errors_of(program: RandomProgram) -> list[str]:
    facts = tuple(Atom(f.relation, f.args) for f in program.facts)
    return [d.render() for d in check(Subject(program.rules, facts)) if d.severity == "error"]


@settings(max_examples=150)
@given(programs())
def test_every_random_program_passes_the_checks_and_is_stratified(program: RandomProgram) -> None:
    assert errors_of(program) == []
    HyperGraph.build(keyed(program.rules))


@settings(max_examples=80)
@given(sessions())
def test_every_state_of_a_random_session_passes_the_checks_and_is_stratified(session: RandomSession) -> None:
    for state in session.states():
        assert errors_of(state) == []
        HyperGraph.build(keyed(state.rules))


@pytest.mark.parametrize("profile", [FULL, INTEGERS, TINY], ids=["full", "integers", "tiny"])
def test_seeded_programs_are_legal_too(profile: Profile) -> None:
    for seed in range(150):
        program = random_program(Seeded(seed), profile)
        assert errors_of(program) == []
        HyperGraph.build(keyed(program.rules))


def test_a_seed_gives_the_same_session_again() -> None:
    assert random_session(Seeded(5)) == random_session(Seeded(5))


def test_the_text_of_a_random_program_reads_back_as_the_program() -> None:
    for seed in range(100):
        program = random_program(Seeded(seed))
        again = parse_program(program.text)
        assert keyed(again.rules).keys() == keyed(program.rules).keys()
        assert set(map(ground, again.facts)) == set(program.facts)


def test_in_a_change_addition_wins() -> None:
    program = random_program(Seeded(1))
    rule, fact = program.rules[0], program.facts[0]
    for change in random_session(Seeded(1), most_changes=1).changes:
        both = type(change)((rule,), (rule,), (fact,), (fact,))
        after = apply_change(program, both)
        assert keyed(after.rules).keys() == keyed(program.rules).keys()
        assert set(after.facts) == set(program.facts)


def features_of(program: RandomProgram) -> Iterator[str]:
    evaluated = evaluate_program(program)
    graph = evaluated.graph
    for node in graph.order:
        if len(node.rules) > 1:
            yield "node of several rules"
        if graph.recursive(node.id):
            yield "recursion"
            if evaluated.result.segment(frozenset(node.rules)):
                yield "recursion that derives"
        if any(
            evaluated.rules[k].aggregate and len(node.rules) + graph.recursive(node.id) > 1
            for k in node.rules
        ):
            yield "aggregate in a positive cycle"
    for rule in evaluated.rules.values():
        yield from _rule_features(rule, {r.head.predicate for r in evaluated.rules.values()})
    if evaluated.result.dropped:
        yield "dropped bindings"
    heads = {rule.head.predicate for rule in program.rules}
    if any(f.predicate in heads for f in program.facts):
        yield "facts of derived predicates"
    if evaluated.result.derived():
        yield "derived facts"
    if sum(len(found) for found in map(evaluated.result.segment, _node_keys(graph))) > len(
        evaluated.result.derived()
    ):
        yield "a fact in two segments"


def _node_keys(graph: HyperGraph) -> list[frozenset[str]]:
    return [frozenset(node.rules) for node in graph.order]


def _rule_features(rule: Rule, derived: set[object]) -> Iterator[str]:
    body = list(rule.body)
    yield f"arity {rule.head.predicate.arity}"
    if rule.aggregate:
        yield from _aggregate_features(rule, rule.aggregate)
        body += rule.aggregate.body
    if not any(isinstance(c, Atom | Aggregate) for c in body):
        yield "no positive atom"
    if any(not isinstance(a, Variable) for a in rule.head.args[: rule.head.predicate.arity]):
        yield "constant in a head"
    if rule.head.relation == RDF_TYPE and isinstance(rule.head.args[1], Variable):
        yield "variable class in a head"
    bound = analyse(rule.body).bound | (analyse(rule.aggregate.body).bound if rule.aggregate else frozenset())
    for conjunct in body:
        match conjunct:
            case Negation(atom=atom):
                yield "negation"
                if atom.predicate in derived:
                    yield "negation of a derived predicate"
                if set(variables(atom)) - bound:
                    yield "existential negation"
            case Comparison():
                yield "comparison"
            case Binding():
                yield "binding"
            case Atom(relation=relation, args=args):
                if len(set(variables(conjunct))) < len(list(variables(conjunct))):
                    yield "repeated variable"
                if relation == RDF_TYPE and isinstance(args[1], Variable):
                    yield "variable class in a body"
            case _:
                pass
        if any(v.anonymous for v in variables(conjunct)):
            yield "anonymous variable"


def _aggregate_features(rule: Rule, aggregate: Aggregate) -> Iterator[str]:
    yield "aggregate"
    yield f"{len(aggregate.groups)} groups"
    for fold in aggregate.folds:
        yield fold.op
        if fold.distinct:
            yield "DISTINCT"
    if any(isinstance(c, Atom) for c in rule.body):
        yield "atom beside an aggregate"
    if not all(isinstance(c, Atom) for c in aggregate.body):
        yield "tests inside an aggregate"


# The least share of programs, in percent, in which a feature must occur.
LEAST = {
    "node of several rules": 40,
    "recursion": 50,
    "recursion that derives": 40,
    "negation": 60,
    "negation of a derived predicate": 25,
    "existential negation": 35,
    "aggregate": 40,
    "aggregate in a positive cycle": 5,
    "0 groups": 8,
    "1 groups": 20,
    "2 groups": 6,
    "COUNT": 15,
    "SUM": 4,
    "AVG": 3,
    "MIN": 10,
    "MAX": 10,
    "MED": 3,
    "DISTINCT": 15,
    "atom beside an aggregate": 15,
    "tests inside an aggregate": 25,
    "binding": 50,
    "comparison": 60,
    "constant in a head": 30,
    "repeated variable": 10,
    "anonymous variable": 40,
    "no positive atom": 15,
    "variable class in a body": 7,
    "variable class in a head": 3,
    "dropped bindings": 12,
    "facts of derived predicates": 50,
    "derived facts": 80,
    "a fact in two segments": 20,
    "arity 0": 8,
    "arity 1": 30,
    "arity 2": 80,
    "arity 3": 20,
    "arity 4": 10,
}


def test_features_occur_in_a_healthy_share_of_programs() -> None:
    found: Counter[str] = Counter()
    for seed in range(SAMPLE):
        found.update(set(features_of(random_program(Seeded(seed)))))
    shares = {feature: 100 * found[feature] // SAMPLE for feature in LEAST}
    assert {f: s for f, s in shares.items() if s < LEAST[f]} == {}


# The least share of sessions of up to six changes, in percent.
LEAST_OF_CHANGES = {
    "merged": 30,
    "split": 8,
    "shrunk": 15,
    "formed": 60,
    "dropped": 50,
    "rules and facts at once": 50,
    "re-added rule": 15,
    "re-added fact": 20,
    "removed what is not there": 25,
    "in both lists": 8,
}


def change_features_of(session: RandomSession) -> Iterator[str]:
    graph = HyperGraph.build(keyed(session.program.rules))
    for change, before in zip(session.changes, session.states(), strict=False):
        added, removed = keyed(change.add_rules), keyed(change.remove_rules)
        graph, moved = graph.update(added, removed)
        yield from (line.fate for line in moved.lineages)
        present = keyed(before.rules).keys()
        if moved.dropped:
            yield "dropped"
        if (added or removed) and (change.add_facts or change.remove_facts):
            yield "rules and facts at once"
        if added.keys() & present:
            yield "re-added rule"
        if set(change.add_facts) & set(before.facts):
            yield "re-added fact"
        if removed.keys() - present or set(change.remove_facts) - set(before.facts):
            yield "removed what is not there"
        if added.keys() & removed or set(change.add_facts) & set(change.remove_facts):
            yield "in both lists"


def test_changes_merge_split_and_mix() -> None:
    found: Counter[str] = Counter()
    for seed in range(SAMPLE):
        found.update(set(change_features_of(random_session(Seeded(seed)))))
    shares = {feature: 100 * found[feature] // SAMPLE for feature in LEAST_OF_CHANGES}
    assert {f: s for f, s in shares.items() if s < LEAST_OF_CHANGES[f]} == {}
