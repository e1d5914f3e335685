"""Copies and inverses in a circle under change: rows are looked up where they may come from."""

from __future__ import annotations

import random

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain import propagate
from zodiacedge.engine.embedded.maintain.shapes import inverses
from zodiacedge.engine.embedded.versions.changed_rows import ChangedRows
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

CIRCLES = {
    "copies": ["b(X, Y) :- a(X, Y) .", "c(X, Y) :- b(X, Y) .", "a(X, Y) :- c(X, Y) ."],
    "inverses": ["b(X, Y) :- a(Y, X) .", "a(X, Y) :- b(Y, X) ."],
    "inverse after all": ["b(X, Y) :- a(X, Y) .", "c(X, Y) :- b(Y, X) .", "a(X, Y) :- c(X, Y) ."],
    "symmetric": ["a(X, Y) :- a(Y, X) ."],
    "two circles": [
        "b(X, Y) :- a(Y, X) .",
        "a(X, Y) :- b(Y, X) .",
        "c(X, Y) :- b(X, Y) .",
        "b(X, Y) :- c(Y, X) .",
    ],
}
AROUND = """
a(X, Y) :- first(X, Y) .
b(X, Y) :- second(X, Y) .
joined(X, Z) :- a(X, Y), b(Y, Z) .
alone(X, Y) :- a(X, Y), not c(X, Y) .
"""
_TERMS = range(5)


def _agree(kbs: list[KnowledgeBase], where: str) -> None:
    assert kbs[0].facts() == kbs[1].facts(), where
    for node in kbs[1].graph().order:
        rules = frozenset(node.rules)
        assert kbs[0].state.segment(rules) == kbs[1].state.segment(rules), where


@pytest.mark.parametrize("strategy", ["maintain", "choose"])
@pytest.mark.parametrize("circle", CIRCLES)
def test_random_rows_and_rules_in_and_out(
    circle: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int | None] = []
    maintain = inverses.maintain_inverses

    def counted(*args: object) -> int | None:
        looked.append(maintain(*args))  # type: ignore[arg-type]
        return looked[-1]

    monkeypatch.setattr(propagate, "maintain_inverses", counted)
    for seed in range(6):
        dice = random.Random(seed)
        kbs = [
            KnowledgeBase(engine, Settings())
            for engine in (EmbeddedEngine(strategy=strategy), ReferenceEngine())
        ]
        rules = dict.fromkeys(CIRCLES[circle], True)
        for kb in kbs:
            with kb.change() as c:
                c.add_rules(AROUND + "\n".join(rules))
        for step in range(14):
            names = ["first", "second", "a", "b", "c"][: dice.choice([1, 2, 5])]
            come, go = (
                [
                    (dice.choice(names), dice.choice(_TERMS), dice.choice(_TERMS))
                    for _ in range(dice.randint(0, 5))
                ]
                for _ in range(2)
            )
            rule = dice.choice([None, None, *rules])
            reports = []
            for kb in kbs:
                with kb.change() as c:
                    c.add_facts(come)
                    c.remove_facts(go)
                    if rule:
                        (c.remove_rules if rules[rule] else c.add_rules)(rule)
                reports.append((c.report.inserted, c.report.deleted))
            if rule:
                rules[rule] = not rules[rule]
            where = f"seed {seed}, step {step}"
            assert reports[0] == reports[1], where
            _agree(kbs, where)
    # New nodes of few facts are recomputed.
    assert strategy == "choose" or sum(grown is not None for grown in looked) > 3


def test_a_circle_that_only_goes_round_is_cut_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    kbs = [KnowledgeBase(engine, Settings()) for engine in (EmbeddedEngine(), ReferenceEngine())]
    cut = CIRCLES["copies"][2]
    for kb in kbs:
        with kb.change() as c:
            c.add_rules(AROUND + "\n".join(CIRCLES["copies"]))
            c.add_facts([("first", n, n + 1) for n in range(40)])
    recorded: list[int] = []
    record = ChangedRows.record_table

    def counted(self: ChangedRows, relation: object, table: object) -> None:
        recorded.append(len(table))  # type: ignore[arg-type]
        record(self, relation, table)  # type: ignore[arg-type]

    monkeypatch.setattr(ChangedRows, "record_table", counted)
    with kbs[1].change() as c:
        c.remove_rules(cut)
    with kbs[0].change() as c:
        c.remove_rules(cut)
    assert not recorded
    _agree(kbs, "cut")
    # With another way in, what was copied through the circle has to go.
    for kb in kbs:
        with kb.change() as c:
            c.add_rules(cut)
            c.add_facts([("second", 0, 9)])
        with kb.change() as c:
            c.remove_rules(cut)
    assert recorded
    _agree(kbs, "another way in")
