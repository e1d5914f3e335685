"""Explanations, one question each: proofs in LUBM, in a large closure and in a class, and missing facts."""

from __future__ import annotations

from itertools import count, islice, pairwise
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import fact
from zodiacedge.terms import IRI
from zodiacedge_bench.measure.harness import clocked, settled
from zodiacedge_bench.measure.latency import Latencies

if TYPE_CHECKING:
    from zodiacedge.language.ast import Fact

# Facts of a node are taken at such a distance.
_STRIDE = 37
_CLASS = """
same(X, Z) :- same(X, Y), same(Y, Z) .
same(X, Y) :- same(Y, X) .
"""
# A student and who teaches a course of the student, if the department of the adviser is the student's.
_FIVE_ATOMS = """
taught(X, Y) :- advisor(X, A), worksFor(A, D), memberOf(X, D), src_takesCourse(X, C), src_teacherOf(Y, C) .
"""


class WrongProofError(Exception):
    """A proof is not complete, or not known to be of least height."""


def prove(name: str, kb: KnowledgeBase, proofs: int) -> Latencies:
    """Explain derived facts of every node, and return the time of each proof."""
    runs = []
    with settled():
        for derived in _derived(kb, proofs):
            run, proof = clocked(lambda derived=derived: kb.explain(derived))  # type: ignore[misc]
            if not proof.least or not proof.complete:
                raise WrongProofError(derived)
            runs.append(run)
    return Latencies(name, "proof", tuple(runs))


def miss(name: str, kb: KnowledgeBase, questions: int) -> Latencies:
    """Ask why facts of a rule of five atoms are not there, and return the time of each answer."""
    with kb.change() as c:
        c.add_rules(_FIVE_ATOMS)
    students = kb.query("ans(X) :- advisor(X, _) .").rows
    teachers = kb.query("ans(Y) :- src_teacherOf(Y, _) .").rows
    there = set(kb.query("?- taught(X, Y) .").rows)
    pairs = (
        (*students[number % len(students)], *teachers[-1 - number * _STRIDE % len(teachers)])
        for number in count(step=_STRIDE)
    )
    runs = []
    with settled():
        for pair in islice((pair for pair in pairs if pair not in there), questions):
            run, answer = clocked(lambda pair=pair: kb.why_not(fact("taught", *pair)))  # type: ignore[misc]
            if "✗" not in str(answer):
                raise WrongProofError(pair)
            runs.append(run)
    return Latencies(name, "why not", tuple(runs))


def class_of(members: int) -> KnowledgeBase:
    """Return a knowledge base with one class of equal things, connected in a chain."""
    kb = KnowledgeBase(EmbeddedEngine(), Settings())
    nodes = [IRI(f"n{n}") for n in range(members)]
    with kb.change() as c:
        c.add_rules(_CLASS)
        c.add_facts(fact("same", a, b) for a, b in pairwise(nodes))
    return kb


def _derived(kb: KnowledgeBase, proofs: int) -> list[Fact]:
    nodes = [frozenset(node.rules) for node in kb.graph().order]
    nodes = [rules for rules in nodes if kb.state.segment_size(rules)]
    each = -(-proofs // max(len(nodes), 1))
    found = [
        derived
        for rules in nodes
        for _, facts in kb.state.each(rules)
        for derived in islice(facts, 0, each * _STRIDE, _STRIDE)
    ]
    # Of every node some, whatever the number of nodes is.
    return found[:: max(len(found) // proofs, 1)][:proofs]
