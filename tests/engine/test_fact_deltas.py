"""What facts to add and to remove come to: which explicit facts of a kind there will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.errors import CheckProblem
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.language.parser import ground, parse_program, parse_query
from zodiacedge.language.printer import format_atom

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from zodiacedge.engine.api import Engine
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.language.ast import Fact

BEFORE = """
Busy(a) . Busy(b) . Idle(a) . Idle(c) . rdf:type(<Busy>, <Busy>) . rdf:type(a, a) .
e(a, a) . e(a, b) . e(b, b) . e(b, c) . t(a, b, a) . t(a, b, c) . up() .
"""
COMING = "Busy(new) . Fresh(new) . e(new, new) . t(b, b, b) . down() ."
GOING = "Busy(b) . Idle(a) . Idle(c) . e(a, a) . t(a, b, c) . up() ."
ATOMS = """
Busy(X) | Busy(a) | Busy(b) | Idle(X) | Fresh(X) | Nowhere(X) | Busy(nobody)
rdf:type(X, C) | rdf:type(X, X) | rdf:type(a, C) | rdf:type(a, a) | rdf:type(X, <Busy>)
e(X, Y) | e(X, X) | e(a, Y) | e(Y, b) | e(a, b) | e(nobody, X) | f(X, Y)
t(X, Y, Z) | t(X, Y, X) | t(X, X, X) | t(X, b, X) | e(X, Y, Z) | up() | down() | Busy(X, Y)
"""


def facts_in(text: str) -> frozenset[Fact]:
    """Return the facts that a text states."""
    return frozenset(map(ground, parse_program(text).facts))


def is_instance(fact: Fact, atom: Atom) -> bool:
    """Whether a fact is an atom with terms for its variables."""
    if fact.relation != atom.relation or len(fact.args) != len(atom.args):
        return False
    put = dict(zip(atom.args, fact.args, strict=True))
    return tuple(put[arg] if isinstance(arg, Variable) else arg for arg in atom.args) == fact.args


def tell_instances(engine: Engine, atoms: str = ATOMS) -> None:
    """Compare what an engine finds of each atom with what a look at all facts gives."""
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_facts(BEFORE)
    state = kb.state
    add, remove = state.batch(), state.batch()
    coming, going = (facts_in(text) for text in (COMING, GOING))
    add.add(coming)
    remove.add(going)
    fact_delta = state.effective_delta(add, remove)
    after = (facts_in(BEFORE) - going) | coming
    for text in atoms.replace("\n", "|").split("|"):
        if not text.strip():
            continue
        (atom,) = parse_query(text).body
        assert isinstance(atom, Atom)
        expected = {fact for fact in after if is_instance(fact, atom)}
        found = list(fact_delta.matching(atom))
        assert set(found) == expected, text
        assert len(found) == len(expected), text
        some = list(fact_delta.matching(atom, 2))
        assert set(some) <= expected, text
        assert len(some) == min(2, len(expected)), text


def test_the_explicit_facts_that_an_atom_matches(engine: Engine) -> None:
    tell_instances(engine)


def test_facts_that_an_aggregate_forbids_are_told_in_order(engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as change:
        change.add_facts("Busy(b) . Busy(a) . Idle(c) . e(a, b) . n(a, 7) . n(b, 8) . rdf:type(a, a) .")
    for head, names in (
        ("Busy(X)", ["Busy(a)", "Busy(b)"]),
        ("Busy(a)", ["Busy(a)"]),
        ("rdf:type(X, X)", ["a(a)"]),
        ("n(X, 8)", ["n(b, 8)"]),
    ):
        with pytest.raises(CheckProblem) as caught, kb.change() as change:
            change.add_rules(f"r: {head} :- AGGREGATE(e(X, Y)) ON X WITH COUNT(Y) AS N .")
        told = [one.message.rpartition(": ")[2] for one in caught.value.diagnostics if one.code == "C013"]
        assert told == names
    for head in ("Calm(X)", "Busy(c)", "n(X, 9)", "Idle(e)"):
        kb.dry_run(add_rules=f"r: {head} :- AGGREGATE(e(X, Y)) ON X WITH COUNT(Y) AS N .")


def test_an_aggregate_that_defines_a_class_looks_at_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    with kb.change() as change:
        change.add_facts(" ".join(f"Idle(n{n}) . e(n{n}, n1) ." for n in range(50)))
    listed: list[str] = []
    facts_of = Database.facts_of

    def noted(self: Database, relation: Relation, rows: NDArray[np.int32]) -> Iterator[Fact]:
        for fact in facts_of(self, relation, rows):
            listed.append(format_atom(fact))
            yield fact

    monkeypatch.setattr(Database, "facts_of", noted)
    with kb.change() as change:
        change.add_rules("r: Busy(X) :- AGGREGATE(e(X, Y)) ON X WITH COUNT(Y) AS N .")
    with kb.change() as change:
        change.add_facts("Idle(m) . e(m, n1) .")
    assert not listed
