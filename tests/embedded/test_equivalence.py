"""Equivalences under change: only the classes of changed pairs are computed again."""

from __future__ import annotations

import random

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain import delta_query, propagate
from zodiacedge.engine.embedded.maintain.shapes import equivalence
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

RULES = """
r1: near(X, Y) :- near(Y, X) .
r2: near(X, Z) :- near(X, Y), near(Y, Z){guard} .
r3: near(X, Y) :- beside(X, Y) .
r4: loop(X) :- near(X, X) .
r5: far(X, Y) :- near(X, Y), not beside(X, Y) .
"""
# One and 1.0 are equal and yet two terms.
TERMS = {"plain": [0, 1, 2, 3, 4, 5, "a", "b", "c"], "equal": [0, 1, 1.0, 2, 2.0, "a", "b"]}


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["", ", X != Z"], ids=["plain", "guarded"])
@pytest.mark.parametrize("terms", TERMS)
def test_random_pairs_in_and_out(guard: str, terms: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int | None] = []
    reexamine = equivalence.maintain_equivalence

    def counted(*args: object) -> int | None:
        looked.append(reexamine(*args))  # type: ignore[arg-type]
        return looked[-1]

    monkeypatch.setattr(propagate, "maintain_equivalence", counted)
    for seed in range(15):
        dice = random.Random(seed)
        kbs = [
            KnowledgeBase(engine, Settings())
            for engine in (EmbeddedEngine(strategy="maintain"), ReferenceEngine())
        ]
        for kb in kbs:
            with kb.change() as c:
                c.add_rules(RULES.format(guard=guard))
        for step in range(12):
            relation = dice.choice(["near", "beside"])
            come, go = (
                [(dice.choice(TERMS[terms]), dice.choice(TERMS[terms])) for _ in range(dice.randint(0, 4))]
                for _ in range(2)
            )
            reports = []
            for kb in kbs:
                with kb.change() as c:
                    c.add_facts(come, relation)
                    c.remove_facts([(relation, *pair) for pair in go])
                reports.append((c.report.inserted, c.report.deleted))
            where = f"seed {seed}, step {step}"
            assert reports[0] == reports[1], where
            assert kbs[0].facts() == kbs[1].facts(), where
            for node in kbs[1].graph().order:
                rules = frozenset(node.rules)
                assert kbs[0].state.segment(rules) == kbs[1].state.segment(rules), where
    assert sum(grown is not None for grown in looked) > 10


def test_other_classes_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    kb = KnowledgeBase(EmbeddedEngine(strategy="maintain"), Settings())
    with kb.change() as c:
        c.add_rules(RULES.format(guard=""))
        c.add_facts([(10 * n + i, 10 * n + i + 1) for n in range(300) for i in range(5)], "beside")
    read: list[int] = []
    ask = delta_query.evaluate_delta

    def counted(*args: object, **named: object) -> object:
        rows = ask(*args, **named)  # type: ignore[arg-type]
        read.append(len(rows))
        return rows

    monkeypatch.setattr(equivalence, "evaluate_delta", counted)
    with kb.change() as c:
        c.remove_facts([("beside", 502, 503)])
    assert read
    # One class of six.
    assert sum(read) <= 2 * 6 * 6
    assert c.report.net_counts()[1]["near"] == 2 * 3 * 3
    assert kb.verify().ok
