"""Proofs in transitive relations: paths of edges, joined as flat as can be, without all instances."""

from __future__ import annotations

import random

import pytest

import zodiacedge as ze
from explain.proving import checked, least_heights
from explain.test_random_proofs import assert_proved
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.explain.closure import PathEdge, joins_of, shortest_path
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.terms import IRI

TRANSITIVE = "t: path(X, Z) :- path(X, Y), path(Y, Z) ."
UNEQUAL = "t: path(X, Z) :- path(Y, Z), path(X, Y), X != Z ."
SYMMETRIC = "s: path(X, Y) :- path(Y, X) ."
LINK = "l: path(X, Y) :- link(X, Y) ."
# Edges of several heights.
DERIVED = """
d: path(X, Y) :- wire(X, Y), live(Y) .
e: wire(X, Y) :- cable(X, Y, _) .
f: cable(X, Y, Z) :- link(Y, Z), link(Z, X) .
live(n1) . live(n2) . live(n3) . live(n5) .
"""
STEPS = "t: path(X, Z) :- path(X, Y), link(Y, Z) ."
STEPS_BACK = "t: path(X, Z) :- link(X, Y), path(Y, Z) ."
NUMBERS = {"n1": "1", "n2": "1.0"}

PROGRAMS = {
    "transitive": TRANSITIVE,
    "transitive, edges by a rule": TRANSITIVE + LINK,
    "transitive, edges of several heights": TRANSITIVE + LINK + DERIVED,
    "unequal": UNEQUAL + LINK + DERIVED,
    "classes": TRANSITIVE + SYMMETRIC,
    "classes, edges of several heights": TRANSITIVE + SYMMETRIC + LINK + DERIVED,
    "classes, unequal": UNEQUAL + "s: path(X, Y) :- path(Y, X), X != Y ." + LINK,
    "steps": STEPS + LINK,
    "steps back": STEPS_BACK + LINK,
    "transitive and steps": TRANSITIVE + STEPS.replace("t:", "u:") + LINK,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_proofs_of_random_graphs_have_least_heights(name: str) -> None:
    for seed in range(6):
        dice = random.Random(seed)
        engine = EmbeddedEngine(modules=bool(seed % 2)) if seed % 3 else ReferenceEngine()
        kb = KnowledgeBase(engine, Settings())
        names = [f"n{n}" for n in range(dice.randint(2, 9))]
        if "unequal" in name and seed % 2:
            names = [NUMBERS.get(node, node) for node in names]
        facts = [f"link({dice.choice(names)}, {dice.choice(names)}) ." for _ in range(dice.randint(1, 12))]
        if seed % 2 or "steps" not in name:
            facts += [
                f"path({dice.choice(names)}, {dice.choice(names)}) ." for _ in range(dice.randint(0, 4))
            ]
        with kb.change() as c:
            c.add_rules(PROGRAMS[name])
            c.add_facts("\n".join(facts))
        assert_proved(kb, f"{name}, seed {seed}")


@pytest.mark.parametrize("steps", [1, 2, 3, 63, 64, 65, 300])
def test_a_chain_is_halved(steps: int) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(TRANSITIVE + LINK)
        c.add_facts("\n".join(f"link(n{n}, n{n + 1}) ." for n in range(steps)))
    proof = (
        checked(kb, kb.explain(f"path(n0, n{steps})")) if steps < 100 else kb.explain(f"path(n0, n{steps})")
    )
    assert proof.least
    assert proof.height == 1 + (steps - 1).bit_length()
    # The edges, the facts that they are derived from, and the joins.
    assert len(proof) == 3 * steps - 1


def test_the_steps_of_a_path_in_a_large_graph_are_searched_from_both_ends() -> None:
    # 60 terms in a ring, each with an edge to 20 others: few of the facts that end in one term matter.
    edges = [(n, (n + k) % 60) for n in range(60) for k in range(1, 21)]
    for rules in (STEPS + LINK, STEPS_BACK + LINK):
        kb = ze.open()
        with kb.change() as c:
            c.add_rules(rules)
            c.add_facts("\n".join(f"link(n{a}, n{b}) ." for a, b in edges))
        budget = ze.Budget()
        proof = checked(kb, kb.explain("path(n0, n55)", budget=budget))
        assert (proof.height, len(proof), proof.least) == (3, 6, True)
        assert budget.spent < 500
        # A path from a term to itself has edges too.
        assert checked(kb, kb.explain("path(n0, n0)")).height == 3
        assert "the budget ended" in repr(kb.explain("path(n0, n55)", budget=ze.Budget(instances=1)))


def test_two_members_of_a_class_are_connected_by_a_path() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(TRANSITIVE + SYMMETRIC)
        c.add_facts("\n".join(f"path(n{n + n % 2}, n{n + 1 - n % 2}) ." for n in range(16)))
    proof = checked(kb, kb.explain("path(n0, n16)"))
    assert proof.least
    assert proof.height == least_heights(kb.rules, kb.facts(), kb.explicit, kb.settings.registry)[proof.fact]


def test_more_edges_than_are_looked_up_together_are_followed_layer_by_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zodiacedge.explain.closure._MOST_EDGES", 10)
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(TRANSITIVE + LINK)
        c.add_facts("\n".join(f"link(n{n}, n{n + 1}) . link(n{n}, n{n + 2}) ." for n in range(40)))
    proof = checked(kb, kb.explain("path(n0, n40)"))
    assert proof.least
    assert proof.height == 6


def test_a_turned_edge_may_be_the_shorter_way() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(TRANSITIVE + SYMMETRIC)
        c.add_facts("\n".join(f"path(n{n}, n{n + 1}) ." for n in range(8)))
        c.add_facts("path(m, n0) . path(n8, m) .")
    proof = checked(kb, kb.explain("path(n0, n8)"))
    assert proof.least
    assert proof.height == 2


def test_a_path_of_flat_edges_is_preferred_to_a_short_path_of_a_high_edge() -> None:
    a, b, c = IRI("a"), IRI("b"), IRI("c")
    edges = [PathEdge(a, c, 5), PathEdge(a, b, 0), PathEdge(b, c, 1)]
    assert shortest_path(edges, a, c) == edges[1:]
    assert list(joins_of(edges[1:])) == [(0, 1, 2)]
