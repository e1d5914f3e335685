"""Projections under change: copies, inverses and columns agree with the reference evaluator."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.maintain import propagate
from zodiacedge.engine.embedded.maintain.shapes import projection
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules

_RULES = {
    "copy": "p(X, Y) :- q(X, Y) .",
    "inverse": "p(Y, X) :- q(X, Y) .",
    "column": "p(Y) :- q(X, Y) .",
    "class": "Thing(X) :- q(X, Y) .  s(X) :- Thing(X) .  Thing(X) :- r(X) .",
    "members": "Thing(X) :- Part(X) .  p(Y, X) :- q(X, Y) .  Part(X) :- p(X, Y) .",
    "any class": "rdf:type(X, C) :- q(X, C) .  p(X) :- a1(X) .",
    "wide": "w(Z, Y, X) :- v(X, Y, Z) .  u(X, Z, Y, W) :- w(X, Y, Z), q(Z, W) .",
    "type of three": "rdf:type(X, Y, c) :- v(X, Y, Z) .",
    "type of none": "rdf:type() :- v(X, X, X) .",
    "chain": "p(X, Y) :- q(X, Y) .  o(Y, X) :- p(X, Y) .  n(X) :- o(X, Y) .  p(X, Y) :- r(X), t(X, Y) .",
}


@pytest.fixture
def maintained(monkeypatch: pytest.MonkeyPatch) -> list[NodeRules]:
    """The nodes that were maintained as projections."""
    nodes: list[NodeRules] = []
    original = projection.maintain_projection

    def recording(*args: object) -> int | None:
        grown = original(*args)  # type: ignore[arg-type]
        if grown is not None:
            nodes.append(args[1])  # type: ignore[arg-type]
        return grown

    monkeypatch.setattr(propagate, "maintain_projection", recording)
    return nodes


@pytest.mark.parametrize("strategy", ["choose", "maintain"])
@pytest.mark.parametrize("name", _RULES)
def test_a_copy_follows_what_it_copies(name: str, strategy: str, maintained: list[NodeRules]) -> None:
    random = Random(name)
    ours = KnowledgeBase(EmbeddedEngine(strategy=strategy), Settings())
    reference = KnowledgeBase(ReferenceEngine(), Settings())
    for kb in (ours, reference):
        with kb.change() as change:
            change.add_rules(_RULES[name])
    for _ in range(25):
        texts = [
            f"{relation}({', '.join(f'a{random.randrange(4)}' for _ in range(arity))}) ."
            for relation, arity in random.choices((("q", 2), ("r", 1), ("t", 2), ("p", 2), ("v", 3)), k=4)
        ]
        some = random.randrange(5)
        reports = []
        for kb in (ours, reference):
            with kb.change() as change:
                change.add_facts(" ".join(texts[:some]))
                change.remove_facts(" ".join(texts[some:]))
            reports.append((change.report.inserted, change.report.deleted))
        assert reports[0] == reports[1]
        assert ours.facts() == reference.facts()
        for node in reference.graph().order:
            keys = frozenset(node.rules)
            assert ours.state.segment(keys) == reference.state.segment(keys)
    assert maintained or name.startswith("type of")
