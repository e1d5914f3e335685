"""The paper's rule sets and data sets, as the benchmarks make them."""

from __future__ import annotations

import pytest

from zodiacedge.language.ast import fact
from zodiacedge.language.parser import parse_program
from zodiacedge.terms import IRI, integer
from zodiacedge_bench.workloads.paper import data_set, ds1, ds2, rule_set, temperature


@pytest.mark.parametrize(("number", "rules"), [(1, 6), (2, 18), (3, 18)])
def test_the_rule_sets_parse(number: int, rules: int) -> None:
    assert len(parse_program(rule_set(number)).rules) == rules


def test_data_set_1_is_a_row_of_turbines_that_all_measure_25_degrees() -> None:
    assert ds1(3) == [
        fact("hasNeighbour", IRI("windTurbine_1"), IRI("windTurbine_2")),
        fact("hasNeighbour", IRI("windTurbine_2"), IRI("windTurbine_3")),
        *(fact("hasAirTemperatureMesurement", IRI(f"windTurbine_{i}"), integer(25)) for i in (1, 2, 3)),
    ]
    assert temperature(2, 25) in ds1(3)


def test_data_set_2_is_four_chains_that_touch() -> None:
    facts = ds2(50)
    assert len(set(facts)) == 200
    assert fact("p1", IRI("windTurbine_0"), IRI("windTurbine_1")) in facts
    assert fact("p1", IRI("windTurbine_49"), IRI("windTurbine_50")) in facts
    assert fact("p4", IRI("windTurbine_150"), IRI("windTurbine_151")) in facts
    assert {f.relation for f in facts} == {"p1", "p2", "p3", "p4"}


def test_each_rule_set_has_its_data() -> None:
    assert data_set(1, 5) == ds1(5)
    assert data_set(2, 5) == data_set(3, 5) == ds2(5)
