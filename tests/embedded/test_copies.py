"""Nodes that copy relations, many in one pass, agree with the reference evaluator."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate import copies
from zodiacedge.engine.embedded.evaluate.copies import CopyPass
from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from zodiacedge.engine.api import Engine

pytestmark = pytest.mark.skipif(not COMPILED, reason="without a compiler each node is evaluated by itself")

_BODIES = {1: ("{0}1(X)", "{0}2(X, Y)", "{0}2(Y, X)", "{0}3(Y, X, Z)"), 2: ("{0}2(X, Y)", "{0}2(Y, X)")}
_BODIES[3] = ("{0}3(X, Y, Z)", "{0}3(Z, X, Y)")


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of nodes of each pass."""
    seen: list[int] = []
    run = CopyPass.run

    def recording(self: CopyPass, terms: int) -> None:
        seen.append(len(self))
        run(self, terms)

    monkeypatch.setattr(CopyPass, "run", recording)
    return seen


def knowledge_base(engine: Engine, rules: str, facts: str, limits: Limits | None = None) -> KnowledgeBase:
    kb = KnowledgeBase(engine, Settings(limits=limits or Limits()))
    with kb.change() as change:
        change.add_rules(rules)
        change.add_facts(facts)
    return kb


def layered(random: Random) -> str:
    """Copies of copies: several rules for a relation, columns in any order, a join and a class among them."""
    rules = []
    for layer in range(1, 7):
        for arity, shapes in _BODIES.items():
            head = ("X", "X, Y", "X, Y, Z")[arity - 1]
            for _ in range(random.randint(1, 3)):
                body = random.choice(shapes).format(f"l{random.randrange(layer)}_")
                rules.append(f"l{layer}_{arity}({head}) :- {body} .")
    rules += ["l3_2(X, Z) :- l2_2(X, Y), l2_2(Y, Z) .", "rdf:type(X, Y) :- l4_2(X, Y) .", "t(X) :- l5_1(X) ."]
    return " ".join(random.sample(rules, len(rules)))


def facts(random: Random) -> str:
    names = ("a", "b", "l3_1", "l5_1", "e")
    return " ".join(
        f"l{random.randrange(5)}_{arity}({', '.join(random.choice(names) for _ in range(arity))}) ."
        for arity in (1, 2, 3)
        for _ in range(random.randrange(9))
    )


@pytest.mark.parametrize("most_rows", [copies._MOST_ROWS, 3])
@pytest.mark.parametrize("seed", range(30))
def test_copies_of_copies_agree(
    seed: int, most_rows: int, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_MOST_ROWS", most_rows)
    random = Random(seed)
    rules, given = layered(random), facts(random)
    ours, reference = (knowledge_base(e, rules, given) for e in (EmbeddedEngine(), ReferenceEngine()))
    assert passes
    for _ in range(3):
        assert ours.facts() == reference.facts()
        for node in reference.graph().order:
            keys = frozenset(node.rules)
            assert ours.state.segment(keys) == reference.state.segment(keys)
        assert ours.state.derived_counts() == reference.state.derived_counts()
        plus, minus = facts(random), facts(random)
        for kb in (ours, reference):
            with kb.change() as change:
                change.add_facts(plus)
                change.remove_facts(minus)


def test_a_chain_of_copies_is_one_pass(passes: list[int]) -> None:
    rules = " ".join(f"p{n + 1}(Y, X) :- p{n}(X, Y) ." for n in range(20))
    kb = knowledge_base(EmbeddedEngine(), rules, "p0(a, b) . p0(b, c) .")
    assert passes == [20]
    assert len(kb.query("?- p20(X, Y) .")) == 2


def test_memory_does_not_double_with_each_copy(passes: list[int]) -> None:
    # Two rules for each relation: at most twice as many rows as in the relation before, as far as one knows.
    rules = " ".join(
        f"c{n + 1}(X) :- c{n}(X) . c{n + 1}(X) :- d{n}(X) . d{n}(X) :- c{n}(X) ." for n in range(60)
    )
    kb = knowledge_base(EmbeddedEngine(), rules, "c0(a) . c0(b) .")
    assert len(passes) > 1
    assert len(kb.query("?- c60(X) .")) == 2


def test_a_limit_names_the_rule_that_reaches_it() -> None:
    rules = "r1: p(X) :- q(X) . r2: s(X) :- p(X) . r3: t(X) :- s(X) ."
    with pytest.raises(LimitReached, match="rule r2"):
        knowledge_base(EmbeddedEngine(), rules, "q(a) . q(b) .", Limits(facts=3))
