"""Closures under change: pairs that changed steps and base pairs connect or separate."""

from __future__ import annotations

import random

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain import propagate
from zodiacedge.engine.embedded.maintain.shapes import closure
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

RULES = {
    "steps": "r1: p(X, Z) :- p(X, Y), q(Y, Z) .",
    "steps back": "r1: p(X, Z) :- q(X, Y), p(Y, Z) .",
    "transitive": "r1: p(X, Z) :- p(X, Y), p(Y, Z) .",
    "of edges": "r1: p(X, Z) :- p(X, Y), q(Y, Z) . r2: p(X, Y) :- q(X, Y) .",
    "of edges, back": "r1: p(X, Z) :- q(X, Y), p(Y, Z) . r2: p(X, Y) :- q(X, Y) .",
    "of two relations": "r1: p(X, Z) :- p(X, Y), p(Y, Z) . r2: p(X, Y) :- q(X, Y) . r3: s(X) :- p(X, X) .",
}


@pytest.mark.parametrize("name", RULES)
def test_random_steps_in_and_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[int | None] = []
    maintain = closure.maintain_closure

    def counted(*args: object) -> int | None:
        grown.append(maintain(*args))  # type: ignore[arg-type]
        return grown[-1]

    monkeypatch.setattr(propagate, "maintain_closure", counted)
    for seed in range(3):
        dice = random.Random(seed)
        kbs = [
            KnowledgeBase(engine, Settings())
            for engine in (EmbeddedEngine(strategy="maintain"), ReferenceEngine())
        ]
        for kb in kbs:
            with kb.change() as c:
                c.add_rules(RULES[name])
        for step in range(12):
            # A few facts at a time, so that several changed steps meet.
            come, go = (
                [
                    (dice.choice(["p", "q", "q"]), dice.randrange(7), dice.randrange(7))
                    for _ in range(dice.randint(0, 3))
                ]
                for _ in range(2)
            )
            reports = []
            for kb in kbs:
                with kb.change() as c:
                    c.add_facts(come)
                    c.remove_facts(go)
                reports.append((c.report.inserted, c.report.deleted))
            where = f"seed {seed}, step {step}"
            assert reports[0] == reports[1], where
            for node in kbs[1].graph().order:
                rules = frozenset(node.rules)
                assert kbs[0].state.segment(rules) == kbs[1].state.segment(rules), where
    assert any(grown), "the closure was never maintained along its steps"


def test_a_search_grows_its_tables() -> None:
    kb = KnowledgeBase(EmbeddedEngine(strategy="maintain"), Settings())
    with kb.change() as c:
        c.add_rules(RULES["of edges"])
        c.add_facts([(n, n + 1) for n in range(400) if n != 200], "q")
    before = kb.facts()
    with kb.change() as c:
        c.add_facts([(200, 201)], "q")
    assert c.report.net_counts()[0]["p"] == 201 * 200
    with kb.change() as c:
        c.remove_facts([("q", 200, 201)])
    assert kb.facts() == before


def test_many_changed_steps_are_left_to_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure, "_MOST_ROWS", 2)
    test_random_steps_in_and_out("of edges", monkeypatch)
