"""The language reference says what the code does: its programs check, its tables are evaluated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strategies.evaluation import evaluate as evaluate_rules
from strategies.lifting import lifted
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.errors import StratificationProblem
from zodiacedge.graph import HyperGraph
from zodiacedge.kb.warnings import endless_values
from zodiacedge.language.ast import Aggregate, Atom, Binding, Comparison, Fold, Rule, Variable
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.lint.lints import lint
from zodiacedge.language.lint.silence import audible
from zodiacedge.language.parser import parse_fact, parse_program, parse_query, parse_rule, read_program
from zodiacedge.language.safety import resolve
from zodiacedge.language.vocabulary import AGGREGATES, FUNCTIONS, RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.engine.api import Engine
    from zodiacedge.language.ast import Fact

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "language.md").read_text(encoding="utf-8")
PAGES = sorted(DOCS.rglob("*.md"))
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```zodiac\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    )
]


def rows(first: str, second: str) -> list[tuple[str, str]]:
    """Return the rows of every table with these two column names."""
    found = []
    for table in re.findall(
        rf"^\| {first} \| {second} \|\n\| --- \| --- \|\n((?:\|.*\n)+)", TEXT, re.MULTILINE
    ):
        for line in table.splitlines():
            row = re.fullmatch(r"\| `(.+?)` \| (.+?) \|", line)
            assert row, line
            found.append((row[1], row[2].strip("`")))
    return found


EXPRESSIONS = rows("expression", "result")
COMPARISONS = rows("comparison", "holds")


@pytest.mark.parametrize("text", BLOCKS)
def test_every_program_of_the_documentation_is_sound(text: str) -> None:
    program = parse_program(text)
    rules = {rule_key(rule): rule for rule in map(resolve, program.rules)}
    findings = check(Subject(program.rules, program.facts)) + lint(program.rules)
    findings += endless_values(rules, HyperGraph.build(rules))
    assert [d.render() for d in audible(findings, program.rules)] == []


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_an_expression_has_the_result_that_the_reference_shows(text: str, expected: str) -> None:
    (binding,) = parse_rule(f"h() :- ?v := {text} .").body
    assert isinstance(binding, Binding)
    if expected == "no value":
        with pytest.raises(NoValue):
            evaluate(binding.expression, {}, Registry())
    else:
        result = evaluate(binding.expression, {}, Registry())
        assert result == parse_fact(f"p(a, {expected})").args[1]


@pytest.mark.parametrize(("text", "expected"), COMPARISONS)
def test_a_comparison_holds_as_the_reference_says(text: str, expected: str) -> None:
    (found,) = parse_rule(f"h() :- {text} .").body
    assert isinstance(found, Comparison)
    left, right = (evaluate(side, {}, Registry()) for side in (found.left, found.right))
    if expected == "no value":
        with pytest.raises(NoValue):
            compare(left, found.operator, right)
    else:
        assert compare(left, found.operator, right) == (expected == "yes")


def outcome(rule: Rule, facts: Iterable[Fact], engine: Engine) -> tuple[set[Fact], int]:
    """Return what a rule derives, and how many bindings it drops."""
    result = evaluate_rules([rule], facts, engine=engine).result
    return set(result.derived()), sum(dropped.count for dropped in result.dropped.values())


def aggregated(rule: Rule) -> Rule:
    """Return a rule `h(0, V) :- …` that computes inside an aggregate."""
    fold = Fold("MAX", Variable("V"), Variable("Highest"))
    head = Atom(rule.head.relation, (*rule.head.args[:-1], fold.target))
    return Rule(head, (Aggregate(rule.body, (), (fold,)),))


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_an_expression_has_that_result_on_every_engine(text: str, expected: str, engine: Engine) -> None:
    rule = parse_rule(f"h(0, V) :- V := {text} .")
    shown = set() if expected == "no value" else {parse_fact(f"h(0, {expected})")}
    expectation = (shown, 0 if shown else 1)
    assert outcome(rule, [], engine) == expectation
    from_facts, operands = lifted(rule)
    assert outcome(from_facts, [operands], engine) == expectation
    assert outcome(aggregated(from_facts), [operands], engine) == expectation


@pytest.mark.parametrize(("text", "expected"), COMPARISONS)
def test_a_comparison_holds_on_every_engine(text: str, expected: str, engine: Engine) -> None:
    rule = parse_rule(f"h(0, 0) :- {text} .")
    expectation = ({parse_fact("h(0, 0)")} if expected == "yes" else set(), int(expected == "no value"))
    assert outcome(rule, [], engine) == expectation
    from_facts, operands = lifted(rule)
    assert outcome(from_facts, [operands], engine) == expectation


# One line or more for each line of the table of aggregates: what it takes, what it gives.
FOLDED = [
    ("COUNT", '5 5.0 5e0 "a" <a> _:b', "6"),
    ("COUNT", "7 7", "2"),
    ("COUNT DISTINCT", "7 7 5 5.0 5e0", "4"),
    ("SUM", "1 2 3", "6"),
    ("SUM", "1 2.0", "3e0"),
    ("SUM", "9223372036854775807 1 -1", "9223372036854775807"),
    ("SUM", "9223372036854775807 1", "no value"),
    ("SUM", "1e308 1e308", "no value"),
    ("SUM", '1 "x" 2', "3"),
    ("AVG", "1 2", "1.5e0"),
    ("AVG", "2 2", "2e0"),
    ("MIN", '<a> true "b" 2 2.0', "2.0"),
    ("MAX", '"b" 2 <a> true', "<a>"),
    ("MAX", "2 2.0 2e0", "2"),
    ("MED", "4 1 2", "2"),
    ("MED", "1 2.50 3", "2.5"),
    ("MED", "1 3", "2"),
    ("MED", "1 2", "1.5e0"),
    ("MED", "1 3.0", "2e0"),
]


@pytest.mark.parametrize(("op", "values", "expected"), FOLDED)
def test_an_aggregate_gives_what_the_reference_says_on_every_engine(
    op: str, values: str, expected: str, engine: Engine
) -> None:
    name, _, distinct = op.partition(" ")
    rule = parse_rule(f"h(0, V) :- AGGREGATE(v(N, X)) WITH {name}({distinct} X) AS V .")
    facts = [parse_fact(f"v({n}, {value})") for n, value in enumerate(values.split())]
    found, _ = outcome(rule, facts, engine)
    assert found == (set() if expected == "no value" else {parse_fact(f"h(0, {expected})")})


def test_every_aggregate_of_the_reference_has_an_example() -> None:
    table = re.search(r"^\| op \| takes \| gives \|\n\| --- .*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert table
    named = {name for line in table[1].splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert {op.partition(" ")[0] for op, _, _ in FOLDED} == named == set(AGGREGATES)


def test_every_function_has_an_example_and_an_error_case() -> None:
    def named(rows_: list[tuple[str, str]]) -> set[str]:
        return {text.split("(")[0].lower() for text, _ in rows_}

    assert set(FUNCTIONS) <= named([row for row in EXPRESSIONS if row[1] != "no value"])
    assert set(FUNCTIONS) <= named([row for row in EXPRESSIONS if row[1] == "no value"])


def test_the_reference_names_every_word_of_the_language() -> None:
    for word in (*RESERVED, *AGGREGATES):
        assert f"`{word}`" in TEXT


def test_the_queries_of_the_reference_parse() -> None:
    section = TEXT.split("## Queries")[1]
    block = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert block
    for line in block[1].splitlines():
        parse_query(line)


# Diagnostics

DIAGNOSTICS = (DOCS / "diagnostics.md").read_text(encoding="utf-8")
EXAMPLES = [
    (row[1], "\n".join(programs))
    for row in re.finditer(r"^\| ([LCGW][0-9]{3}) \| .*? \| (.*?) \| .* \|$", DIAGNOSTICS, re.MULTILINE)
    if (programs := [text for text in re.findall(r"`([^`]+)`", row[2]) if re.fullmatch(r"[^…]* \.", text)])
]


@pytest.mark.parametrize(("code", "text"), EXAMPLES)
def test_an_example_of_a_diagnostic_has_it(code: str, text: str) -> None:
    program, found = read_program(text)
    found += check(Subject(program.rules, program.facts))
    if code.startswith("W"):
        found += lint(program.rules)
        rules = {rule_key(rule): rule for rule in map(resolve, program.rules)}
        found += endless_values(rules, HyperGraph.build(rules))
    if code.startswith("G"):
        with pytest.raises(StratificationProblem) as caught:
            HyperGraph.build({rule_key(resolve(r)): resolve(r) for r in program.rules})
        found += caught.value.diagnostics
    assert code in {d.code for d in found}


def test_the_codes_are_sorted() -> None:
    for table in re.split(r"^## ", DIAGNOSTICS, flags=re.MULTILINE)[1:]:
        codes = re.findall(r"^\| ([A-Z][0-9]{3}) ", table, re.MULTILINE)
        assert codes == sorted(codes)
        assert codes
