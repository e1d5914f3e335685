"""A module gives what the rule machine and the definition give, facts and segments alike."""

from __future__ import annotations

import random

import pytest

from strategies import evaluate_text
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.modules import Shape, recognise
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.language.parser import parse_program

SYMMETRIC = "p(X, Y) :- p(Y, X) ."
TRANSITIVE = "p(X, Y) :- p(X, Z), p(Z, Y) ."
GUARDED = "p(X, Y) :- p(X, Z), p(Z, Y), X != Y ."
PROGRAMS = {
    Shape.STEPS: "p(X, Y) :- p(X, Z), q(Z, Y) .",
    Shape.STEPS_BACK: "p(X, Y) :- q(X, Z), p(Z, Y) .",
    Shape.TRANSITIVE: TRANSITIVE,
    Shape.TRANSITIVE_UNEQUAL: GUARDED,
    Shape.CLASSES: SYMMETRIC + TRANSITIVE,
    Shape.CLASSES_UNEQUAL: SYMMETRIC + GUARDED,
}
SPOILERS = (
    "p(X, X) :- p(X, Y) .",
    "p(X, Y) :- p(X, Y), r(Y) .",
    "p(X, Y) :- p(X, Z), p(Z, Y), r(Z) .",
    "p(X, Y) :- p(X, Z), p(Z, Y), X != Z .",
    "p(X, b) :- p(X, Z), p(Z, b) .",
    "p(X, Y) :- p(X, Z), p(Z, W), p(W, Y) .",
)


def facts(dice: random.Random) -> str:
    """Few nodes and few edges, so that loops, cycles, several classes and lone nodes all occur."""
    nodes = "abcdefg"[: dice.randint(2, 7)]
    text = [
        f"{relation}({dice.choice(nodes)}, {dice.choice(nodes)}) ."
        for relation in ("p", "q", "e")
        for _ in range(dice.randint(0, 2 * len(nodes)))
    ]
    return " ".join([*text, *(f"r({dice.choice(nodes)}) ." for _ in range(3))])


@pytest.mark.parametrize("shape", Shape, ids=lambda shape: shape.value)
def test_each_shape_is_recognised_whatever_its_names(shape: Shape) -> None:
    text = PROGRAMS[shape].replace("X", "First").replace("Z", "Mid").replace("p(", "knows(")
    found = recognise(parse_program(text).rules)
    assert found is not None
    assert found.shape is shape


@pytest.mark.parametrize("spoiler", SPOILERS)
def test_a_rule_that_spoils_the_shape_is_seen(spoiler: str) -> None:
    assert recognise(parse_program(TRANSITIVE + spoiler).rules) is None
    assert recognise(parse_program(spoiler).rules) is None


@pytest.mark.parametrize("shape", Shape, ids=lambda shape: shape.value)
def test_a_module_agrees_with_the_machine_and_the_definition(shape: Shape) -> None:
    for seed in range(60):
        dice = random.Random(seed)
        base = dice.choice(("", "p(X, Y) :- e(X, Y) .", "p(X, Y) :- e(Y, X), r(X) ."))
        spoiler = dice.choice(("", "", "", dice.choice(SPOILERS)))
        behind = "s(X, Y) :- p(X, Y), not e(X, Y) ."
        text = " ".join((PROGRAMS[shape], base, spoiler, behind, facts(dice)))
        expected = evaluate_text(text, engine=ReferenceEngine())
        for engine in (EmbeddedEngine(), EmbeddedEngine(modules=False)):
            got = evaluate_text(text, engine=engine)
            assert got.result.visible() == expected.result.visible(), text
            for node in expected.graph.order:
                rules = frozenset(node.rules)
                assert got.result.segment(rules) == expected.result.segment(rules), text
