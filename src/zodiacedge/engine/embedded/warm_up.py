"""Compile every kernel, so that the first run does not wait for it.

A small program that uses every kind of step is evaluated and changed, and the compiled kernels stay in the
cache.
`make setup` calls this module.
"""

from __future__ import annotations

import numpy as np

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate.closure_kernels import reach
from zodiacedge.engine.embedded.ingest.ntriples.reader import TripleReader, group_triples
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.terms.fingerprints import fingerprints
from zodiacedge.graph import HyperGraph
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.parser import ground, parse_program, parse_query
from zodiacedge.language.safety import resolve, resolve_query
from zodiacedge.terms import IRI

# More than a dictionary starts with, so that it grows.
_MANY_TERMS = 4096

_PROGRAM = """
p(X, Y) :- p(X, Z), p(Z, Y), X != Y .
s(X, Y) :- s(Y, X) .
s(X, Y) :- s(X, Z), s(Z, Y), X != Y .
t(X, Y) :- t(X, Z), p(Z, Y) .
u(X, Y, Z) :- u(X, Y, W), p(W, Z), not s(X, Z), Y < 5 .
n(X, N) :- AGGREGATE(p(X, Y)) ON X WITH COUNT(Y) AS N .
f(X, M) :- n(X, N), M := N * 2 + 1, contains(str(M), "1") = true .
p(a, b) . p(b, c) . p(c, a) . s(a, b) . t(a, a) . u(a, 1, b) .
"""


def warm() -> None:
    """Run a small program on every kernel."""
    program = parse_program(_PROGRAM)
    rules = {rule_key(rule): rule for rule in map(resolve, program.rules)}
    facts = [ground(atom) for atom in program.facts]
    settings = Settings()
    for modules in (True, False):
        engine = EmbeddedEngine(modules=modules, strategy="maintain")
        graph = HyperGraph.build(rules)
        state = engine.materialise(rules, graph, facts, settings)
        state.answer(resolve_query(parse_query("?- p(X, Y), not s(X, Y) .")), settings)
        for adding in (False, True):
            some, none = state.batch(), state.batch()
            some.add(facts[:4])
            fact_delta = state.effective_delta(some, none) if adding else state.effective_delta(none, some)
            state = state.maintain(rules, graph, fact_delta, settings).commit()
    _use_tables()
    dictionary = Dictionary()
    triples = TripleReader(dictionary, quads=False)
    triples.feed(b'<a> <p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    triples.finish()
    group_triples(triples.triples, dictionary)
    dictionary.reserve(_MANY_TERMS)
    dictionary.find(IRI("a"))
    dictionary.encode_integers(np.arange(2))
    dictionary.texts(np.zeros(1, np.int32))
    fingerprints(dictionary)


def _use_tables() -> None:
    rows = np.arange(60, dtype=np.int32).reshape(-1, 2)
    table, marked = Table(2), Table(2)
    table.insert(rows)
    table.ensure_index(1)
    table.delete(rows[:3])
    table.filter(rows, present=True)
    table.mask(rows)
    table.positions(rows)
    table.contains([6, 7])
    table.count_pairs_present(rows)
    table.reserve(_MANY_TERMS)
    marked.mark(64)
    marked.insert_unmarked(rows)
    # No nodes to search from: it is compiled all the same.
    reach(MEMORY.address(words(16)), 0, 0, 0, 0)


if __name__ == "__main__":
    warm()
