"""What a report tells of each hyper-node: that it was dropped, and how many derivations it took."""

from __future__ import annotations

import pytest

import zodiacedge as ze
from zodiacedge.engine.api import Engine, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain.strategy import ElasticChoice
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

_RULES = "a: p(X, Y) :- e(X, Y) . b: p(X, Z) :- p(X, Y), e(Y, Z) . c: q(X) :- p(X, X) ."
_FACTS = "e(1, 2) . e(2, 3) . e(3, 1) . e(3, 3) ."


@pytest.mark.parametrize("engine", [EmbeddedEngine(modules=False), ReferenceEngine()])
def test_derivations_are_counted_with_those_of_known_facts(engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_rules(_RULES)
        change.add_facts(_FACTS)
    nodes = {node.rules: node for node in change.report.nodes}
    # Each of 9 pairs follows from its predecessors' edges: 4 edges in, 3 pairs that end before each.
    closure = nodes["b",]
    assert closure.facts == 9
    assert closure.derivations is not None
    assert closure.derivations >= 12
    with kb.change() as change:
        change.remove_facts("e(3, 1) .")
    assert all(node.derivations is not None for node in change.report.nodes)


def test_a_maintained_node_counts_what_its_change_took() -> None:
    kb = KnowledgeBase(EmbeddedEngine(strategy="maintain"), Settings())
    with kb.change() as change:
        change.add_rules("a: p(X) :- e(X, Y) .")
        change.add_facts("e(1, 2) . e(2, 2) . e(3, 3) .")
    with kb.change() as change:
        change.add_facts("e(1, 3) .")
    (node,) = change.report.nodes
    assert (node.strategy, node.derivations) == ("maintained", 1)


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_a_node_without_rules_is_told_as_dropped(engine: str) -> None:
    kb = ze.open(engine=engine)
    with kb.change() as change:
        change.add_rules(_RULES)
        change.add_facts(_FACTS)
    with kb.change() as change:
        change.remove_rules("c")
    node = change.report.nodes[0]
    assert (node.rules, node.strategy, node.facts) == (("c",), "dropped", 0)
    assert "dropped 1" in str(change.report)


def test_a_node_that_needs_no_choice_has_no_expected_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def maintain(choice: ElasticChoice, *_given: object, **_options: object) -> None:
        choice.expected = 1.0

    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    with kb.change() as change:
        change.add_rules("r1: p(X, Y) :- q(X, Z), q(Z, Y) .  r2: s(X, Y) :- p(X, Y) .")
        change.add_facts([("q", 1, 2)])
    monkeypatch.setattr(ElasticChoice, "recompute_reason", maintain)
    monkeypatch.setattr(ElasticChoice, "begin", lambda *_given: None)
    for number in range(2, 5):
        # The last change finds hash sets: r2 copies the row that changed, and nothing is to be chosen.
        with kb.change() as change:
            change.add_facts([("q", number, number + 1)])
    assert [(node.rules, node.expected) for node in change.report.nodes] == [(("r1",), 1.0), (("r2",), 0.0)]
    assert {node.strategy for node in change.report.nodes} == {"maintained"}
