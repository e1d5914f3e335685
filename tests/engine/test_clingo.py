"""Clingo, an answer set solver, agrees with the reference on programs over small integers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from strategies import INTEGERS, RandomProgram, evaluate_program, examples, programs
from strategies.asp import Translation, answer_of
from zodiacedge.language.ast import Fact
from zodiacedge.terms import IRI, RDF_TYPE, integer

pytestmark = pytest.mark.slow


def agrees_with_clingo(program: RandomProgram) -> None:
    evaluated = evaluate_program(program)
    text = Translation(evaluated.rules.values(), program.facts).text
    assert evaluated.result.visible() == answer_of(text), text


@settings(max_examples=150)
@given(programs(INTEGERS))
def test_clingo_agrees_on_random_programs(program: RandomProgram) -> None:
    agrees_with_clingo(program)


@pytest.mark.soak
@settings(max_examples=examples(2000, one_in=25))
@given(programs(INTEGERS))
def test_soak_clingo(program: RandomProgram) -> None:
    agrees_with_clingo(program)


def test_the_comparison_would_notice_a_missing_fact() -> None:
    assert answer_of("z_p_2(1,2). z_q_1(X) :- z_p_2(X,Y), not aux1(Y). aux1(Y) :- z_r_2(Y,Z).") == {
        Fact("p", (integer(1), integer(2))),
        Fact(RDF_TYPE, (integer(1), IRI("q"))),
    }
