"""A rule whose atom has no facts is not planned, and what its node derives stays right."""

from __future__ import annotations

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.machine.assemble import Assembly
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

# Each reads `none`, which has no facts at first, or an own relation that has none outside the node.
_RULES = (
    "p(X, Y) :- a(X, Y), none(Y) .",
    "p(X, Z) :- p(X, Y), none(Y), a(Y, Z) .",
    "p(X, Y) :- p(Y, X) .",
    "p(X, Z) :- p(X, Y), p(Y, Z) .",
    "p(X, Y) :- q(Y, X) . q(X, Y) :- p(X, Y), a(Y, X) .",
    "q(X, Y) :- p(X, Y) . p(X, Y) :- q(X, Y), none(X) .",
    "p(X, Y) :- a(X, Y) .",
    "n(X, N) :- AGGREGATE(a(X, Y), none(Y)) ON X WITH COUNT(Y) AS N .",
    "p(X, Y) :- a(X, Y), not none(X) .",
)


def visible(engine: EmbeddedEngine | ReferenceEngine, rules: str) -> frozenset[object]:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_rules(rules)
        change.add_facts([(n, m) for n in range(5) for m in range(n)], "a")
    first = kb.facts()
    with kb.change() as change:
        change.add_facts([(1,), (3,)], "none")
    return frozenset((*first, "then", *kb.facts()))


@pytest.mark.parametrize("first", _RULES)
@pytest.mark.parametrize("second", _RULES)
def test_rules_without_facts_agree_with_the_reference(first: str, second: str) -> None:
    rules = f"{first}\n{second}" if first != second else first
    assert visible(EmbeddedEngine(modules=False), rules) == visible(ReferenceEngine(), rules)


def test_a_rule_that_derives_nothing_is_not_assembled(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[object] = []
    add = Assembly.add

    def recording(self: Assembly, *args: object, **options: object) -> None:
        added.append(args)
        add(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Assembly, "add", recording)
    kb = KnowledgeBase(EmbeddedEngine(modules=False), Settings())
    with kb.change() as change:
        change.add_rules("p(X, Z) :- p(X, Y), none(Y), a(Y, Z) . p(X, Y) :- a(X, Y), none(Y) .")
        change.add_facts([(1, 2)], "a")
    assert not added
    assert kb.derived() == {"p": 0}
