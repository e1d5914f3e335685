"""Clingo derives the same facts from the paper's rule sets as the embedded engine, all of them.

Clingo has no median: rule set 1 goes without the rule that derives one, and gets medians as facts, so that
the rule behind it has something to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strategies.asp import Translation, answer_of
from strategies.evaluation import evaluate, keyed
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.language.ast import fact
from zodiacedge.language.parser import parse_program
from zodiacedge.terms import integer
from zodiacedge_bench.workloads.paper import data_set, rule_set, temperature, turbine

if TYPE_CHECKING:
    from zodiacedge.language.ast import Fact, Rule

pytestmark = pytest.mark.slow

MEDIAN = "hasMedianAirTemperatureMeasurementNearby"


def rules_of(number: int) -> list[Rule]:
    """Return the rules that clingo has too."""
    rules = parse_program(rule_set(number)).rules
    return [r for r in rules if not (r.aggregate and r.aggregate.folds[0].op.lower() == "med")]


def facts_of(number: int, turbines: int) -> list[Fact]:
    """Return the data; for rule set 1 also medians, and another temperature here and there."""
    facts = data_set(number, turbines)
    if number == 1:
        facts += [fact(MEDIAN, turbine(n), integer(25)) for n in range(1, turbines + 1)]
        facts += [temperature(n, 25 + n) for n in range(1, turbines + 1, 7)]
    return facts


@pytest.mark.parametrize("modules", [True, False], ids=["modules", "machine"])
@pytest.mark.parametrize("turbines", [20, 50])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_clingo_derives_the_same_facts(number: int, turbines: int, modules: bool) -> None:  # noqa: FBT001 - the parameter under test
    rules, facts = rules_of(number), facts_of(number, turbines)
    evaluated = evaluate(rules, facts, engine=EmbeddedEngine(modules=modules))
    expected = answer_of(Translation(keyed(rules).values(), facts).text)
    assert evaluated.result.visible() == expected
    # Nothing is equal only because there is nothing.
    assert set(evaluated.result.derived_counts()) == {rule.head.predicate for rule in rules}


def test_only_the_median_is_left_out() -> None:
    left = {n: len(parse_program(rule_set(n)).rules) - len(rules_of(n)) for n in (1, 2, 3)}
    assert left == {1: 1, 2: 0, 3: 0}
