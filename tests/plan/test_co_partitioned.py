"""Nodes that are partitioned give what they give as a whole: each fact and each error once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strategies import Seeded, evaluate_program, examples, random_program
from strategies.evaluation import evaluate
from zodiacedge.language.ast import Atom
from zodiacedge.language.printer import format_term
from zodiacedge.plan.partition import CoPartitionedNodes, PartitionedRelation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strategies import Evaluated
    from zodiacedge.graph.merge_split import HyperNode
    from zodiacedge.language.ast import Fact
    from zodiacedge.plan.partition import Partitioning

PARTS = 3


def share(facts: Iterable[Fact], partitioning: Partitioning, number: int) -> list[Fact]:
    """Return the facts that one part gets."""
    found = []
    for fact in facts:
        own = PartitionedRelation.of(Atom(fact.relation, fact.args))
        for source, position in partitioning.positions.items():
            if source.meets(own) and (position is None or part_of(fact, position) == number):
                found.append(fact)
                break
    return found


def part_of(fact: Fact, position: int) -> int:
    return sum(format_term(fact.args[position]).encode()) % PARTS


def in_parts(
    whole: Evaluated, nodes: list[HyperNode], partitioning: Partitioning, known: frozenset[Fact]
) -> None:
    """Evaluate some nodes part by part, and compare with what they give as a whole."""
    rules = {key: whole.rules[key] for node in nodes for key in node.rules}
    parts = [evaluate(rules.values(), share(known, partitioning, number)) for number in range(PARTS)]
    for node in nodes:
        keys = frozenset(node.rules)
        expected = whole.result.segment(keys)
        segments = [part.result.segment(keys) for part in parts]
        assert frozenset().union(*segments) == expected, node
        assert sum(map(len, segments)) == len(expected), node
    for key in rules:
        dropped = [part.result.dropped[key].count for part in parts if key in part.result.dropped]
        assert sum(dropped) == (whole.result.dropped[key].count if key in whole.result.dropped else 0), key


def fall_apart(seed: int) -> int:
    """Evaluate all nodes of a random program that can be, in parts; return how many those are."""
    whole = evaluate_program(random_program(Seeded(seed)))
    waiting = list(whole.graph.order)
    known = whole.explicit
    count = 0
    while waiting:
        together = CoPartitionedNodes(lambda _: 0, 0)
        taken = [
            node for node in waiting if together.take([whole.rules[key] for key in node.rules], ready=True)
        ]
        if taken:
            in_parts(whole, taken, together.partitioning, known)
            count += len(taken)
        done = taken or waiting[:1]
        waiting = [node for node in waiting if node not in done]
        known = known.union(*(whole.result.segment(frozenset(node.rules)) for node in done))
    return count


def test_random_programs_fall_apart_without_a_trace() -> None:
    # Half of all nodes can be partitioned: there is something to compare.
    assert sum(map(fall_apart, range(120))) > 300


@pytest.mark.soak
def test_soak_random_programs_fall_apart() -> None:
    for seed in range(1000, 1000 + examples(2000, one_in=25)):
        assert fall_apart(seed) >= 0
