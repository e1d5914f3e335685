"""The reference agrees with a second, dumb evaluator, and its state keeps the laws."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from strategies import FULL, TINY, Brute, RandomProgram, evaluate_program, examples, programs

pytestmark = pytest.mark.slow


def agrees_with_brute_force(program: RandomProgram) -> None:
    evaluated = evaluate_program(program)
    brute = Brute.model(evaluated.rules.values(), program.facts, program.schema)
    assert evaluated.result.visible() == brute.facts
    counts = {}
    for key, rule in evaluated.rules.items():
        brute.heads(rule)
        if brute.errors:
            counts[key] = len(brute.errors)
    assert {key: found.count for key, found in evaluated.result.dropped.items()} == counts


def keeps_the_laws(program: RandomProgram) -> None:
    evaluated = evaluate_program(program)
    visible = evaluated.result.visible()
    brute = Brute(set(visible))
    derived = set()
    for node in evaluated.graph.order:
        once = set().union(*(brute.heads(evaluated.rules[key]) for key in node.rules))
        assert evaluated.result.segment(frozenset(node.rules)) == once
        derived |= once
    assert evaluated.result.derived() == derived
    assert visible == derived | set(program.facts)


@settings(max_examples=250)
@given(programs(TINY))
def test_visible_facts_and_dropped_counts_are_those_of_brute_force(program: RandomProgram) -> None:
    agrees_with_brute_force(program)


@settings(max_examples=200)
@given(programs(FULL))
def test_each_segment_is_one_application_and_all_facts_are_supported(program: RandomProgram) -> None:
    keeps_the_laws(program)


@pytest.mark.soak
@settings(max_examples=examples(2000, one_in=25))
@given(programs(TINY))
def test_soak_brute_force(program: RandomProgram) -> None:
    agrees_with_brute_force(program)


@pytest.mark.soak
@settings(max_examples=examples(2000, one_in=25))
@given(programs(FULL))
def test_soak_laws(program: RandomProgram) -> None:
    keeps_the_laws(program)
