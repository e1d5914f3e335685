"""Values, folds and evaluation errors on Spark: all that the other engines' tests evaluate, in a few jobs.

The programs of hundreds of tests stand in one (`strategies.borrowed` tells how): their facts come and go, and
after each change facts and dropped bindings are those of the definition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from engine import (
    test_golden_programs,
    test_reference_aggregates,
    test_reference_errors,
    test_reference_meaning,
    test_reference_values,
)
from language import test_language_reference
from strategies.borrowed import Small, cases, in_and_out, programs, together
from strategies.evaluation import evaluate
from zodiacedge.engine.api import Settings
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Atom, Binding, Comparison, Rule, Variable, fact
from zodiacedge.terms import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from zodiacedge.engine.api import Engine
    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.kb.change import Change
    from zodiacedge.language.ast import Conjunct, Fact

MODULES = (
    test_reference_values,
    test_reference_aggregates,
    test_reference_errors,
    test_reference_meaning,
    test_language_reference,
)
# By plans a rule costs several jobs: one that many tests have with every run, all of them with the long ones.
_ALWAYS = slice(2, 3)
_SHARES = 12
# A relation has at most 128 on the embedded engine.
_MOST_COLUMNS = 100


@cache
def heard() -> list[Small]:
    return programs(*MODULES)


def is_constant(one: Small) -> bool:
    """Whether a program computes one value of constants, or compares some that are equal, say."""
    bodies = [rule.body for rule in one.rules]
    if one.facts or len(bodies) != 1 or len(bodies[0]) != 1:
        return False
    computes = isinstance(bodies[0][0], Binding | Comparison)
    return computes and bool(evaluate(one.rules, ()).result.derived())


@cache
def constants() -> list[Small]:
    """Return few rules with all expressions of constants that have a value, and all comparisons that hold."""
    found = [conjunct for one in heard() if is_constant(one) for conjunct in one.rules[0].body]
    bound = [one for one in found if isinstance(one, Binding)]
    compared = [one for one in found if isinstance(one, Comparison)]
    made = []
    for name, start in enumerate(range(0, len(bound), _MOST_COLUMNS)):
        some = bound[start : start + _MOST_COLUMNS]
        values = [Variable(f"V{number}") for number in range(len(some))]
        body: list[Conjunct] = [Atom(f"go{name}", (integer(0), Variable("Go")))]
        body += [replace(one, variable=value) for one, value in zip(some, values, strict=True)]
        body += () if name else compared
        rule = Rule(Atom(f"values{name}", (Variable("Go"), *values)), tuple(body))
        made.append(Small((rule,), tuple(fact(f"go{name}", integer(0), integer(n)) for n in range(2))))
    return made


@cache
def combined() -> list[Small]:
    return together(one for one in heard() if not one.by_itself and not is_constant(one))


@dataclass(frozen=True)
class Shown:
    """What a knowledge base shows after a change."""

    facts: frozenset[Fact]
    net: tuple[Mapping[str, int], Mapping[str, int]]
    dropped: Mapping[str, int]


def shown(engine: Engine, changes: Iterable[Change]) -> list[Shown]:
    kb = KnowledgeBase(engine, Settings())
    found = []
    for change in changes:
        report = kb.apply(change)
        dropped = {key: one.count for key, one in report.dropped.items()}
        found.append(Shown(kb.facts(), report.net_counts(), dropped))
    return found


def agree(engine: Engine, changes: Sequence[Change]) -> Shown:
    """Make changes on an engine and on the definition; return what is there at the end."""
    pairs = list(zip(shown(engine, changes), shown(ReferenceEngine(), changes), strict=True))
    for found, expected in pairs:
        # Facts by themselves: a failure shows what is missing and what is too much.
        assert found.facts - expected.facts == expected.facts - found.facts == frozenset()
        assert found == expected
    return pairs[-1][0]


def test_all_of_them_in_one_task(spark: SparkEngine) -> None:
    jobs: list[str] = []
    with spark.jobs.telling(jobs.append):
        last = agree(spark, in_and_out([*combined(), *constants()]))
    assert jobs.count("bringing rules up to date in one task") == len(in_and_out(()))
    # Or nobody has listened.
    assert len(heard()) > 1000
    assert len(last.facts) > 1500
    assert sum(last.dropped.values()) > 300
    assert sum(len(one.args) - 1 for one in last.facts if one.relation.startswith("values")) > 2 * 150


def test_what_looks_at_all_classes(spark: SparkEngine) -> None:
    alone = [one for one in heard() if one.by_itself]
    assert alone
    for one in alone:
        expected, found = (
            evaluate(one.rules, one.facts, engine=e).result for e in (ReferenceEngine(), spark)
        )
        assert found.visible() == expected.visible()


@pytest.mark.soak
def test_constants_by_plans(make_engine: Callable[[Options], SparkEngine]) -> None:
    # Joins of relations so wide take Spark long: they come, and that is all.
    agree(make_engine(Options(strategy="rounds")), in_and_out(constants())[:1])


@pytest.mark.parametrize(
    "some",
    [
        _ALWAYS,
        *(pytest.param(slice(share, None, _SHARES), marks=pytest.mark.soak) for share in range(_SHARES)),
    ],
    ids=str,
)
def test_operands_errors_and_folds_by_plans(
    some: slice, make_engine: Callable[[Options], SparkEngine]
) -> None:
    assert combined()[some]
    agree(make_engine(Options(strategy="rounds")), in_and_out(combined()[some]))


def test_answers_come_in_the_total_order(spark: SparkEngine) -> None:
    test_reference_values.test_answers_come_in_the_total_order(spark)


PAPER = {name: case for name, case in cases(test_golden_programs).items() if "paper_rule_sets_give" in name}
assert PAPER


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_rule_sets_give_the_exact_counts(name: str, spark: SparkEngine) -> None:
    PAPER[name](spark)
