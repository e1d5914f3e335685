"""Verification: what is kept against an evaluation from nothing, and the digest of all facts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import zodiacedge as ze
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.engine.embedded.storage.relation import Relation
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.reference import ReferenceEngine, ReferenceMaterialisation
from zodiacedge.errors import UsageProblem
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Predicate, fact
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from zodiacedge.engine.api import Engine

A, B, C, D = IRI("a"), IRI("b"), IRI("c"), IRI("d")
RULES = """
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
    near: near(X, Z) :- near(X, Y), near(Y, Z) .
    back: near(X, Y) :- near(Y, X) .
    lone: lone(X) :- place(X), not near(X, Y) .
    size: size(X, N) :- AGGREGATE(near(X, Y)) ON X WITH COUNT(Y) AS N .
    kinds: rdf:type(X, K) :- place(X), kind(K) .
    done: done() :- size(X, N), N > 2 .
"""
FACTS = 'near(a, b) .  near(b, c) .  place(a) .  place(d) .  kind(town) .  kind("odd") .  town(a) .'


def made(engine: Engine, *texts: str) -> KnowledgeBase:
    kb = KnowledgeBase(engine, Settings())
    for text in texts:
        with kb.change() as c:
            c.add_rules(text)
    return kb


@pytest.fixture
def kb(engine: Engine) -> KnowledgeBase:
    return made(engine, RULES, FACTS)


def test_what_is_kept_is_as_it_should_be(kb: KnowledgeBase) -> None:
    found = kb.verify()
    assert found.ok
    assert found.differences == ()
    assert (found.version, found.facts) == (2, len(kb.facts()))
    assert "no differences" in str(found)
    assert found.digest in str(found)
    with kb.change() as c:
        c.remove_facts("near(b, c) .  place(d) .")
        c.remove_rules("kinds")
    assert kb.verify().ok
    assert kb.version == 3


def test_an_empty_knowledge_base(engine: Engine) -> None:
    found = made(engine).verify()
    assert (found.ok, found.facts, found.digest) == (True, 0, "0" * 64)


def test_it_can_ask_the_reference_engine(kb: KnowledgeBase) -> None:
    found = kb.verify(against="reference")
    assert found.ok
    assert found.engine == "reference"
    with pytest.raises(UsageProblem, match="U001"):
        kb.verify(against="referense")


@pytest.mark.parametrize("against", [5, None, ["reference"]])
def test_an_engine_that_is_no_text_is_refused(engine: Engine, against: object) -> None:
    with pytest.raises(UsageProblem, match="U013: expected a text"):
        made(engine).verify(against=against)  # type: ignore[arg-type]
    with pytest.raises(UsageProblem, match="U001: there is no engine"):
        ze.open(engine=against)  # type: ignore[call-overload]


def test_the_digest_depends_on_the_facts_alone() -> None:
    first = made(ReferenceEngine(), RULES, FACTS)
    second = made(EmbeddedEngine(), "p(zzz) .", FACTS, RULES)
    with second.change() as c:
        c.remove_facts("p(zzz) .")
    assert second.verify().digest == first.verify().digest
    plain = made(EmbeddedEngine())
    plain.apply(Change(add_facts=tuple(first.facts())))
    assert plain.verify().digest == first.verify().digest


def test_the_digest_tells_facts_apart(engine: Engine) -> None:
    texts = [
        "p(a) .",
        "p(b) .",
        "p(a) . p(b) .",
        "p(a, b) .",
        'p("a") .',
        "p(1) .",
        "p(1.0) .",
        "q(a) .",
        "p() .",
    ]
    digests = {made(engine, text).verify().digest for text in texts}
    assert len(digests) == len(texts)


def damage(kb: KnowledgeBase, *, visible: bool) -> None:
    """Take near(a, b), which is explicit too, from its segment, or lone(d), which only a rule makes."""
    lost = fact("lone", D) if visible else fact("near", A, B)
    state = kb.state
    if isinstance(state, EmbeddedState):
        encode = state.store.dictionary.encode
        for segment in state.store.segments.values():
            for relation, table in segment.tables.items():
                if relation == Relation("near", 2) and not visible:
                    table.delete(np.array([[encode(A), encode(B)]], np.int32))
                if visible and relation.member_of == encode(IRI("lone")):
                    table.delete(np.array([[encode(D)]], np.int32))
        return
    assert isinstance(state, ReferenceMaterialisation)
    segments = {keys: segment - {lost} for keys, segment in state.segments.items()}
    facts = FactSet(f for f in state.facts if f != lost or not visible)
    kb._state = replace(state, segments=segments, facts=facts)


def test_a_lost_fact_is_found(kb: KnowledgeBase) -> None:
    before = kb.verify().digest
    damage(kb, visible=True)
    found = kb.verify()
    assert not found.ok
    assert [(d.where, d.predicate, d.missing, d.extra, d.example) for d in found.differences] == [
        ("visible facts", Predicate("lone", 1), 1, 0, fact("lone", D)),
        ("segment of lone", Predicate("lone", 1), 1, 0, fact("lone", D)),
    ]
    assert found.digest != before
    assert "2 differences" in str(found)
    assert "visible facts: lone/1 has 1 fact too few and 0 too many, for example lone(d)" in str(found)
    document = found.to_dict()
    assert (document["ok"], document["facts"]) == (False, found.facts)
    assert document["differences"] == [
        {"where": place, "predicate": "lone/1", "missing": 1, "extra": 0, "example": "lone(d)"}
        for place in ("visible facts", "segment of lone")
    ]


def test_a_fact_that_is_lost_in_a_segment_and_visible_all_the_same_is_found(kb: KnowledgeBase) -> None:
    damage(kb, visible=False)
    (found,) = kb.verify().differences
    assert found.where in {"segment of near, back", "segment of back, near"}
    assert (found.missing, found.extra, found.example) == (1, 0, fact("near", A, B))


def test_a_fact_too_many_is_found(engine: Engine) -> None:
    good = made(engine, RULES, FACTS)
    with good.change() as c:
        c.add_facts("place(c) .")
    state = good.state
    with good.change() as c:
        c.remove_facts("place(c) .")
    if isinstance(state, ReferenceMaterialisation):
        good._state = replace(state, explicit_facts=good.explicit)
    else:
        assert isinstance(good.state, EmbeddedState)
        number = good.state.store.dictionary.encode(IRI("town"))
        for segment in good.state.store.segments.values():
            for relation, table in segment.tables.items():
                if relation == Relation(RDF_TYPE, 2):
                    table.insert(np.array([[good.state.store.dictionary.encode(C), number]], np.int32))
    extra = {d.example: d.extra for d in good.verify().differences if d.where == "visible facts"}
    assert extra[fact("town", C)] == 1
