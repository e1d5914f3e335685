"""Graphs kept up to date against graphs made from the definition, on random rules and changes."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.errors import StratificationProblem
from zodiacedge.graph import GraphChange, HyperGraph, hyper_graph, merge_split
from zodiacedge.language.ast import Aggregate, Atom, Conjunct, Fold, Negation, Rule, Variable, atom
from zodiacedge.language.parser import parse_program
from zodiacedge.language.unify import Pattern, pattern_of, unify
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.language.ast import Argument

X, Y, Z = (Variable(name) for name in "XYZ")
Nodes = set[frozenset[str]]
Edges = set[tuple[frozenset[str], frozenset[str], bool]]


def rules_of(text: str) -> dict[str, Rule]:
    return {rule.label: rule for rule in parse_program(text).rules}


arguments = st.sampled_from([X, X, Y, Y, Z, IRI("a"), IRI("b")])
atoms = st.one_of(
    st.builds(atom, st.sampled_from("pqrs"), st.tuples(arguments, arguments)),
    st.builds(lambda name, arg: atom(name, (arg,)), st.sampled_from("CD"), arguments),
    st.builds(lambda arg, kind: atom("p", (arg, kind, arg)), arguments, arguments),
)
conjuncts = st.one_of(
    atoms,
    atoms,
    atoms,
    st.builds(Negation, atoms),
    st.builds(lambda inner: Aggregate((inner,), (X,), (Fold("COUNT", Y, Z),)), atoms),
)

pytestmark = pytest.mark.slow
rules = st.builds(lambda head, body: Rule(head, tuple(body)), atoms, st.lists(conjuncts, max_size=2))
changes = st.lists(st.tuples(st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11))), max_size=6)


def reads(rule: Rule) -> list[tuple[Pattern, bool]]:
    def one(conjunct: Conjunct) -> list[tuple[Pattern, bool]]:
        match conjunct:
            case Atom():
                return [(pattern_of(conjunct), False)]
            case Negation(atom=inner):
                return [(pattern_of(inner), True)]
            case Aggregate(body=body):
                return [(pattern, True) for inner in body for pattern, _ in one(inner)]
            case _:
                return []

    return [read for conjunct in rule.body for read in one(conjunct)]


def by_definition(program: Mapping[str, Rule]) -> tuple[Nodes, Edges]:
    """Every pair of rules, every path, every component: slow and plain."""
    pairs = {
        (a, b, negative)
        for a, b in product(program, program)
        for body, negative in reads(program[b])
        if unify(pattern_of(program[a].head), body)
    }
    reach = {(a, b) for a, b, _ in pairs} | {(a, a) for a in program}
    for middle, a, b in product(program, program, program):
        if (a, middle) in reach and (middle, b) in reach:
            reach.add((a, b))
    home = {a: frozenset(b for b in program if (a, b) in reach and (b, a) in reach) for a in program}
    return set(home.values()), {(home[a], home[b], negative) for a, b, negative in pairs}


def as_sets(graph: HyperGraph) -> tuple[Nodes, Edges]:
    members = {node.id: frozenset(node.rules) for node in graph.order}
    return set(members.values()), {(members[e.source], members[e.target], e.negative) for e in graph.edges()}


def check_order(graph: HyperGraph) -> None:
    """The tables agree with each other, and each edge goes up."""
    assert sorted(node.rank for node in graph.nodes.values()) == list(graph.ranks)
    assert len(set(graph.ranks)) == len(graph.ranks)
    assert {key: node.id for node in graph.order for key in node.rules} == graph.homes
    assert graph.homes.keys() == graph.rules.shapes.keys()
    for edge in graph.edges():
        assert graph.nodes[edge.source].rank < graph.nodes[edge.target].rank
        assert edge.target in graph.successors(edge.source)[edge.negative]
    for node in graph.order:
        assert node.rules == graph.rules.in_order(node.rules)


def check_lineage(change: GraphChange) -> None:
    before, after = change.before, change.after
    altered = {line.node for line in change.lineages}
    for node in change.kept():
        assert before.nodes[node.id].rules == node.rules
    assert {node.id for node in change.kept()} | altered == set(after.nodes)
    alive = {home for key, home in before.homes.items() if key in after.homes}
    assert {node.id for node in change.dropped} == set(before.nodes) - alive
    for line in change.lineages:
        assert after.nodes[line.node].rules == line.rules
        parents = {before.homes[key] for key in line.rules if key in before.homes}
        assert set(line.parents) == parents
        assert line.added == tuple(key for key in line.rules if key in change.added)
        assert line.node in parents or before.next_id <= line.node < after.next_id
        whole = {key for parent in parents for key in before.nodes[parent].rules if key in after.homes}
        if not parents:
            assert line.fate == "formed"
        elif len(parents) > 1 or line.added:
            assert line.fate == "merged"
        else:
            assert line.fate == ("shrunk" if whole == set(line.rules) else "split")
        assert set(line.rules) != {k for parent in parents for k in before.nodes[parent].rules}


def check_plan(change: GraphChange) -> None:
    """The plan holds what the directly impacted nodes lead to, all of it and nothing else, in order."""
    graph, plan = change.after, change.plan()
    assert [node.rank for node in plan] == sorted(node.rank for node in plan)
    wanted = {node.id for node in change.directly_impacted()}
    for node in graph.order:
        if node.id in wanted:
            wanted.update(graph.successors(node.id).all)
    assert {node.id for node in plan} == wanted


def origins(change: GraphChange) -> set[tuple[str, tuple[int, ...], tuple[str, ...]]]:
    return {(line.fate, line.parents, line.rules) for line in change.lineages}


def follow(pool: list[Rule], steps: Iterable[tuple[set[int], set[int]]]) -> None:
    program: dict[str, Rule] = {}
    graph = HyperGraph()
    for come, gone in steps:
        added = {f"k{i}": pool[i] for i in sorted(come) if i < len(pool)}
        removed = [f"k{i}" for i in sorted(gone)]
        wanted = {key: rule for key, rule in program.items() if key not in removed} | added
        nodes, edges = by_definition(wanted)
        snapshot = as_sets(graph), dict(graph.homes), list(graph.ranks)
        if any(source == target and negative for source, target, negative in edges):
            with pytest.raises(StratificationProblem):
                graph.update(added, removed)
            assert (as_sets(graph), dict(graph.homes), list(graph.ranks)) == snapshot
            continue
        after, change = graph.update(added, removed)
        assert (as_sets(graph), dict(graph.homes), list(graph.ranks)) == snapshot
        assert as_sets(after) == (nodes, {edge for edge in edges if edge[0] != edge[1]})
        check_order(after)
        check_lineage(change)
        check_plan(change)
        with patch.multiple(hyper_graph, _MAX_INCREMENTAL=-1, _INCREMENTAL_FRACTION=10**9):
            afresh, rebuilt = graph.update(added, removed)
        assert as_sets(afresh) == as_sets(after)
        check_order(afresh)
        check_lineage(rebuilt)
        assert origins(rebuilt) == origins(change)
        assert {n.rules for n in rebuilt.directly_impacted()} == {n.rules for n in change.directly_impacted()}
        graph, program = after, wanted


@given(st.lists(rules, min_size=12, max_size=12), changes)
@settings(max_examples=80, deadline=None)
def test_an_updated_graph_is_the_graph_of_its_rules(
    pool: list[Rule], steps: list[tuple[set[int], set[int]]]
) -> None:
    follow(pool, steps)


def random_session(rng: random.Random) -> None:
    """Sparser rules and longer sessions than hypothesis makes of itself: more merges, splits, reorders."""
    predicates, denying = rng.randint(3, 9), rng.choice([0, 0, 0.05, 0.2])

    def argument() -> Argument:
        some: list[Argument] = [X, Y, Z, IRI("a"), IRI("b")]
        return rng.choice(some if rng.random() < 0.3 else some[:2])

    def some_atom() -> Atom:
        kind = rng.random()
        if kind < 0.75:
            return Atom(f"p{rng.randrange(predicates)}", (argument(), argument()))
        if kind < 0.95:
            return atom(f"C{rng.randrange(4)}", (argument(),))
        return Atom(RDF_TYPE, (argument(), argument()))

    def conjunct() -> Conjunct:
        if rng.random() >= denying:
            return some_atom()
        if rng.random() < 0.5:
            return Negation(some_atom())
        return Aggregate((some_atom(),), (X,), (Fold("COUNT", Y, Z),))

    def a_few(most: int) -> set[int]:
        return set(rng.sample(range(12), rng.randint(0, most)))

    pool = [Rule(some_atom(), tuple(conjunct() for _ in range(rng.randint(0, 2)))) for _ in range(12)]
    most = rng.choice([1, 1, 2, 5])
    gap = rng.choice([2, 3, merge_split.GAP])
    with patch.object(merge_split, "GAP", gap), patch.object(hyper_graph, "_LARGE_NODE", rng.choice([0, 16])):
        follow(pool, [(a_few(most), a_few(most)) for _ in range(30)])


@pytest.mark.parametrize("seed", range(5))
def test_long_random_sessions(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(7):
        random_session(rng)


@pytest.mark.soak
def test_very_many_long_random_sessions() -> None:
    rng = random.Random()
    for _ in range(4000):
        random_session(rng)


links = st.builds(
    lambda a, b: Rule(Atom(f"p{b}", (X, Y)), (Atom(f"p{a}", (X, Y)),)), st.integers(0, 6), st.integers(0, 6)
)
single = st.tuples(st.sets(st.integers(0, 11), max_size=1), st.sets(st.integers(0, 11), max_size=1))


@pytest.mark.parametrize("gap", [merge_split.GAP, 2])
@given(st.lists(links, min_size=12, max_size=12), st.lists(single, max_size=24))
@settings(max_examples=40, deadline=None)
def test_one_rule_at_a_time_even_where_ranks_run_out(
    gap: int, pool: list[Rule], steps: list[tuple[set[int], set[int]]]
) -> None:
    with patch.object(merge_split, "GAP", gap):
        follow(pool, steps)


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=8, max_size=30), st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_a_large_node_that_loses_one_rule_is_cut_right(pairs: set[tuple[int, int]], which: int) -> None:
    program = {f"k{a}_{b}": Rule(Atom(f"p{b}", (X, Y)), (Atom(f"p{a}", (X, Y)),)) for a, b in sorted(pairs)}
    graph = HyperGraph.build(program)
    victim = sorted(program)[which % len(program)]
    del program[victim]
    with patch.object(hyper_graph, "_LARGE_NODE", 0):
        after, change = graph.update({}, [victim])
    assert as_sets(after)[0] == by_definition(program)[0]
    check_order(after)
    check_lineage(change)


def test_a_first_graph_numbers_its_nodes_as_the_rules_came() -> None:
    graph = HyperGraph.build(
        rules_of("""
            a: p(X, Y) :- q(X, Y) .  b: s(X, Y) :- e(X, Y) .  c: q(X, Y) :- e(X, Y) .  d: t(X, Y) :- e(X, Y) .
        """)
    )
    assert [(node.name, node.rules) for node in graph.order] == [
        ("hn1", ("b",)),
        ("hn2", ("c",)),
        ("hn3", ("a",)),
        ("hn4", ("d",)),
    ]


def test_a_rule_in_both_lists_is_added() -> None:
    rules = rules_of("a: p(X, Y) :- q(X, Y) . b: r(X, Y) :- p(X, Y) .")
    graph = HyperGraph.build({"a": rules["a"]})
    after, change = graph.update(rules, ["a", "unknown"])
    assert set(after.homes) == {"a", "b"}
    assert (change.added, change.removed) == (("b",), ())


def test_a_rule_written_anew_changes_its_text_only() -> None:
    graph = HyperGraph.build({"k": parse_program("old: p(X, Y) :- q(X, Z), r(Z, Y) .").rules[0]})
    rule = parse_program("new: p(A, B) :- r(C, B), q(A, C) .").rules[0]
    after, change = graph.update({"k": rule})
    assert (after.rule("k").label, graph.rule("k").label) == ("new", "old")
    assert not change.lineages
    assert after.nodes == graph.nodes


def test_a_key_cannot_come_to_stand_for_another_rule() -> None:
    graph = HyperGraph.build({"k": parse_program("p(X, Y) :- q(X, Y) .").rules[0]})
    with pytest.raises(ValueError, match="other dependencies"):
        graph.update({"k": parse_program("p(X, Y) :- r(X, Y) .").rules[0]})


def test_the_largest_part_of_a_split_node_carries_its_id_on() -> None:
    graph = HyperGraph.build(
        rules_of("""
            a: p(X, Y) :- q(X, Y) .  b: q(X, Y) :- r(X, Y) .  c: r(X, Y) :- q(X, Y) .  d: r(X, Y) :- p(X, Y) .
        """)
    )
    after, change = graph.update({}, ["d"])
    assert after.node_of("b").id == graph.node_of("b").id
    assert after.node_of("a").id == graph.next_id
    assert {line.fate for line in change.lineages} == {"split"}


def test_a_class_variable_in_a_head_feeds_every_class() -> None:
    rules = rules_of("""
        any: rdf:type(X, Y) :- isa(X, Y) .
        a: A(X) :- B(X) .  c: C(X) :- D(X), s(X, Y) .  p: p(X, Y) :- s(X, Y), C(Y) .
    """)
    graph = HyperGraph.build(rules)
    readers = graph.successors(graph.homes["any"]).positive
    assert {graph.nodes[node].rules for node in readers} == {("a",), ("c",), ("p",)}
    assert graph.successors(graph.homes["a"]).all == ()
    after, change = graph.update(rules_of("sub: rdf:type(X, Z) :- rdf:type(X, Y), sub(Y, Z) ."))
    assert {node.rules for node in after.order if len(node.rules) > 1} == {("a", "c", "sub")}
    (merged,) = change.merged
    assert len(merged.parents) == 2


def test_recursion_of_one_rule_and_of_several_is_seen() -> None:
    graph = HyperGraph.build(
        rules_of("""
            one: t(X, Z) :- t(X, Y), e(Y, Z) .  two: p(X, Y) :- q(X, Y) .  three: q(X, Y) :- p(X, Y) .
            plain: s(X, Y) :- t(X, Y) .  apart: u(a, X) :- u(b, X) .
        """)
    )
    recursive = {key for key in graph.homes if graph.recursive(graph.homes[key])}
    assert recursive == {"one", "two", "three"}


def test_the_readers_of_a_fact_are_found_through_its_constants() -> None:
    graph = HyperGraph.build(
        rules_of("""
            a: o1(X, X) :- p(a, X) .  b: o2(X, X) :- p(b, X) .  l: o3(X, X) :- p(X, X) .
            n: o4(X, X) :- e(X, X), not p(X, _) .
        """)
    )
    found = graph.readers(Atom("p", (IRI("a"), IRI("b"))))
    assert [graph.nodes[node].rules for node in found.positive] == [("a",)]
    assert [graph.nodes[node].rules for node in found.negative] == [("n",)]


def test_ten_thousand_classes_cost_a_look_up_each() -> None:
    # Without the index this is 25 million unifications: minutes, not a second.
    count = 5000
    program = {f"k{i}": Rule(atom(f"C{i + 1}", (X,)), (atom(f"C{i}", (X,)),)) for i in range(count)}
    graph = HyperGraph.build(program)
    assert len(graph) == count
    assert [node.rules for node in graph.plan([graph.homes["k4998"]])] == [("k4998",), ("k4999",)]


def test_a_chain_of_many_rules_needs_no_deep_stack() -> None:
    program = {f"k{i}": Rule(Atom(f"p{i + 1}", (X, Y)), (Atom(f"p{i}", (X, Y)),)) for i in range(5000)}
    closing = Rule(Atom("p0", (X, Y)), (Atom("p5000", (X, Y)),))
    graph, change = HyperGraph.build(program).update({"closing": closing})
    assert len(graph) == 1
    assert len(change.merged[0].parents) == 5000
