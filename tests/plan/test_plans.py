"""Plans: golden ones, found by glob, and the laws of any order.

A golden plan is `NAME.rules` with `NAME.expected`, the text of `zodiac plan`. To write the expectations
anew: `ZODIAC_WRITE_GOLDEN=1 python -m pytest tests/plan`, then read the difference.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strategies import Seeded, evaluate_program, random_program
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate import seminaive
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.language.ast import Atom
from zodiacedge.language.parser import parse_program
from zodiacedge.language.safety import resolve
from zodiacedge.language.unify import unifiable
from zodiacedge.plan.algebra import Match
from zodiacedge.plan.order import NoStatistics
from zodiacedge.plan.show import to_text
from zodiacedge.plan.variants import plans

if TYPE_CHECKING:
    from zodiacedge.language.ast import Rule

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "plans").glob("*.rules"))


def plans_of(text: str) -> str:
    """Plan each rule as if all rules were one node: every atom that a head can feed may change."""
    rules = [resolve(rule) for rule in parse_program(text).rules]
    heads = [rule.head for rule in rules]

    def places(rule: Rule) -> list[int]:
        atoms = [(n, c) for n, c in enumerate(rule.body) if isinstance(c, Atom)]
        return [n for n, atom in atoms if any(unifiable(head, atom) for head in heads)]

    return to_text(p for rule in rules for p in plans(rule, places(rule), NoStatistics())) + "\n"


def test_there_are_golden_plans() -> None:
    assert len(GOLDEN) >= 3


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_plan(path: Path) -> None:
    shown = plans_of(path.read_text(encoding="utf-8"))
    expected = path.with_suffix(".expected")
    if os.environ.get("ZODIAC_WRITE_GOLDEN"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")


def test_the_estimate_decides_where_it_differs_by_much() -> None:
    class Sizes:
        def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
            size = 1e6 if atom.relation == "huge" else 2.0
            return size / float(10 ** len(bound))

    rule = parse_program("h(X, Y) :- huge(X, Z), tiny(Z, Y) .").rules[0]
    (whole,) = plans(rule, (), Sizes())
    assert [s.atom.relation for s in whole.steps if isinstance(s, Match)] == ["tiny", "huge"]


def test_random_join_orders_give_equal_results(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    monkeypatch.setattr(seminaive._Sizes, "matches", lambda _self, _atom, _bound: dice.random() * 1e6)
    for seed in range(300, 420):
        program = random_program(Seeded(seed))
        expected = evaluate_program(program, engine=ReferenceEngine()).result
        got = evaluate_program(program, engine=EmbeddedEngine(modules=False)).result
        assert got.visible() == expected.visible(), f"seed {seed}"
        assert {k: d.count for k, d in got.dropped.items()} == {
            k: d.count for k, d in expected.dropped.items()
        }, f"seed {seed}"
