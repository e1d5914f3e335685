"""The paper's three rule sets parse as they read on the rendered page.

`appendices/` holds their text as printed: `∧`, tabs, the line break inside r5, `Comp` and `COMP`,
`Med`, `r10_new`, and full stops right behind a bracket.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zodiacedge.graph import HyperGraph
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import parse_program
from zodiacedge.language.printer import format_rule
from zodiacedge.language.safety import resolve
from zodiacedge_bench.workloads.paper import rule_set

if TYPE_CHECKING:
    from zodiacedge.language.ast import Program

HERE = Path(__file__).resolve().parent / "appendices"
SETS = [(1, 6), (2, 18), (3, 18)]


def printed(number: int) -> Program:
    return parse_program((HERE / f"rule_set_{number}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("number", "rules"), SETS)
def test_an_appendix_parses_as_printed(number: int, rules: int) -> None:
    program = printed(number)
    assert len(program.rules) == rules
    assert program.facts == ()


@pytest.mark.parametrize(("number", "rules"), SETS)
def test_the_labels_are_those_of_the_page(number: int, rules: int) -> None:
    expected = [f"r{i}" for i in range(1, rules + 1)]
    if number == 3:
        expected[9] = "r10_new"
    assert [r.label for r in printed(number).rules] == expected


@pytest.mark.parametrize(("number", "_rules"), SETS)
def test_an_appendix_has_no_errors(number: int, _rules: int) -> None:
    rules = printed(number).rules
    assert [d.render() for d in check(Subject(rules)) if d.severity == "error"] == []
    HyperGraph.build({rule_key(resolve(r)): resolve(r) for r in rules})


@pytest.mark.parametrize(("number", "_rules"), SETS)
def test_an_appendix_equals_the_example_of_the_project(number: int, _rules: int) -> None:
    example = parse_program(rule_set(number))
    assert [(r.label, rule_key(r)) for r in printed(number).rules] == [
        (r.label, rule_key(r)) for r in example.rules
    ]


@pytest.mark.parametrize(("number", "_rules"), SETS)
def test_an_appendix_survives_printing(number: int, _rules: int) -> None:
    rules = printed(number).rules
    assert parse_program("\n".join(map(format_rule, rules))).rules == rules


def test_rule_sets_2_and_3_differ_in_one_rule() -> None:
    second, third = printed(2).rules, printed(3).rules
    assert [a.label for a, b in zip(second, third, strict=True) if a != b] == ["r10"]
