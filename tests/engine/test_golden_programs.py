"""Golden programs, found by glob, on every engine; `tests/golden/README.md` tells their format."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strategies import Evaluated, evaluate_text
from strategies.evaluation import evaluate
from zodiacedge.language.ast import Fact, fact
from zodiacedge.language.parser import parse_program
from zodiacedge.terms import integer, iri
from zodiacedge_bench.workloads.paper import rule_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.engine.api import Engine

GOLDEN = Path(__file__).parents[1] / "golden"
PROGRAMS = sorted((GOLDEN / "programs").glob("*.rules"))
COUNTS: dict[str, dict[str, int]] = json.loads((GOLDEN / "paper_counts.json").read_text())["counts"]
TURBINES = 50


def transcript(evaluated: Evaluated, queries: list[str]) -> list[str]:
    """Return what an expectation must say."""
    lines = evaluated.facts()
    dropped = {evaluated.rules[key].label: found.count for key, found in evaluated.result.dropped.items()}
    lines += [f"dropped {label} {count}" for label, count in sorted(dropped.items())]
    for query in queries:
        lines.append(query)
        lines += [f"  {row or 'yes'}" for row in evaluated.answer(query)]
    return lines


def differences(path: Path, engine: Engine) -> list[str]:
    """Evaluate a golden program; return the lines that are not as expected: `-` is missing, `+` too much."""
    written = path.with_suffix(".expected").read_text(encoding="utf-8").splitlines()
    expected = [line for line in written if line and not line.startswith("#")]
    queries = [line for line in expected if line.startswith("?-") or ":-" in line]
    found = transcript(evaluate_text(path.read_text(encoding="utf-8"), engine=engine), queries)
    return [line for line in difflib.ndiff(expected, found) if line[0] in "-+"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_golden_program(path: Path, engine: Engine) -> None:
    assert differences(path, engine) == []


def test_there_are_golden_programs() -> None:
    assert len(PROGRAMS) >= 25


# The paper's rule sets


def ds1(n: int) -> Iterator[Fact]:
    """Yield the paper's first data: a row of turbines, all reading 25 degrees."""
    for i in range(1, n + 1):
        yield fact("hasAirTemperatureMesurement", iri(f"windTurbine_{i}"), integer(25))
        if i < n:
            yield fact("hasNeighbour", iri(f"windTurbine_{i}"), iri(f"windTurbine_{i + 1}"))


def ds2(n: int) -> Iterator[Fact]:
    """Yield the paper's second data: four rows of turbines, one property each."""
    for k, name in enumerate(("p1", "p2", "p3", "p4")):
        for i in range(k * n, k * n + n):
            yield fact(name, iri(f"windTurbine_{i}"), iri(f"windTurbine_{i + 1}"))


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_the_paper_rule_sets_give_the_exact_counts(name: str, engine: Engine) -> None:
    rules = parse_program(rule_set(int(name.removeprefix("rs")))).rules
    evaluated = evaluate(rules, ds1(TURBINES) if name == "rs1" else ds2(TURBINES), engine=engine)
    defined = {rule.head.predicate.name for rule in rules}
    counts = dict.fromkeys(defined, 0)
    for found in evaluated.result.visible():
        if found.predicate.name in defined:
            counts[found.predicate.name] += 1
    counts["total"] = sum(counts.values())
    assert counts == COUNTS[name]


def test_the_paper_rule_sets_have_their_hyper_nodes() -> None:
    expected = json.loads((GOLDEN / "paper_counts.json").read_text())["hyper_nodes"]
    for name, nodes in expected.items():
        rules = parse_program(rule_set(int(name.removeprefix("rs")))).rules
        assert len(evaluate(rules, ()).graph) == nodes
