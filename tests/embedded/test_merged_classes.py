"""A class of several owners is read as one table, and a head that is known stops a rule early."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strategies.evaluation import evaluate
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate import merged_classes
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.language.parser import ground, parse_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.api import Engine
    from zodiacedge.language.ast import Fact, Program

# `person` has three owners besides the node of r4 to r7, and explicit members.
RULES = """
r1: person(X) :- named(X) .
r2: person(X) :- works(X, Y) .
r3: person(Y) :- knows(X, Y) .
r4: student(X) :- person(X), takes(X, C), course(C) .
r5: person(X) :- student(X) .
r6: teaches(X, C) :- person(X), holds(X, C), course(C) .
r7: student(X) :- teaches(X, C), takes(X, C) .
r8: course(C) :- takes(X, C), not hobby(C) .
r9: course(C) :- holds(X, C) .
r10: stranger(X) :- knows(X, Y), not person(X) .
r11: old(X, N) :- person(X), aged(X, A), N := A + 1 .
r12: same(X) :- person(X), knows(X, X) .
r13: any(yes) :- person(X), takes(X, C), course(C) .
"""
KINDS = "r14: rdf:type(X, K) :- kind(X, K) . kind(p3, person) . kind(p7, course) ."


def facts() -> str:
    pairs = [("works", 3), ("knows", 5), ("takes", 7), ("holds", 11), ("aged", 13)]
    text = [f"{p}(p{n}, p{n * k % 17}) ." for p, k in pairs[:4] for n in range(0, 17, 2)]
    text += [f"takes(p{n}, p{m}) ." for n in range(4) for m in range(5)]
    text += [f"aged(p{n}, {20 + n}) ." for n in range(0, 17, 3)]
    text += [f"named(p{n}) . person(p{n + 1}) . hobby(p{n}) ." for n in range(0, 17, 4)]
    return " ".join(text)


def segments(program: Program, engine: Engine) -> Mapping[frozenset[str], frozenset[Fact]]:
    done = evaluate(program.rules, map(ground, program.facts), engine=engine)
    nodes = map(frozenset, (node.rules for node in done.graph.order))
    return {rules: done.result.segment(rules) for rules in nodes}


@pytest.mark.parametrize("kinds", ["", KINDS], ids=["classes", "and all classes in one table"])
@pytest.mark.parametrize("least", [0, 1 << 16], ids=["apart", "merged"])
def test_classes_of_several_owners(kinds: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_classes, "_LEAST_TERMS", least)
    if not least:
        monkeypatch.setattr(merged_classes, "_TERMS_PER_ROW", 0)
    program = parse_program(f"{RULES} {kinds} {facts()}")
    assert segments(program, EmbeddedEngine()) == segments(program, ReferenceEngine())


def test_a_class_is_merged_once_for_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[int] = []
    real = merged_classes.MergedClasses._merge

    def spy(self: merged_classes.MergedClasses, parts: object) -> object:
        done = real(self, parts)  # type: ignore[arg-type]
        if done is not parts:
            merged.append(id(done))
        return done

    monkeypatch.setattr(merged_classes.MergedClasses, "_merge", spy)
    segments(parse_program(f"{RULES} {facts()}"), EmbeddedEngine())
    assert len(merged) > len(set(merged)) > 1
