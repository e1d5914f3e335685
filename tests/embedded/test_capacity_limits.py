"""Limits of the embedded engine's memory layout: wide tables, many arguments, limits of facts, classes."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import zodiacedge as ze
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.machine.sources import NodeReads
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, TableView
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.select import ENGINES
from zodiacedge.errors import EvaluationProblem, LimitReached
from zodiacedge.language.ast import Atom, Variable
from zodiacedge.plan.algebra import RelationVersion
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from zodiacedge.kb.knowledge_base import KnowledgeBase

CLASSES = "s(X, Y) :- s(Y, X) . s(X, Y) :- s(X, Z), s(Z, Y) ."


def wide(kb: KnowledgeBase, arity: int) -> None:
    names = ", ".join(f"X{n}" for n in range(arity))
    with kb.change() as c:
        c.add_rules(f"q({names}) :- p({names}) . r({names}) :- p({names}), q({names}), not s({names}) .")
        c.add_facts([tuple(range(n, n + arity)) for n in range(20)], "p")
    with kb.change() as c:
        c.remove_facts([tuple(range(3, 3 + arity))], "p")
        c.add_facts([tuple(range(5, 5 + arity))], "s")


@pytest.mark.parametrize("arity", [1, 32, 33, L.MASK_COLUMNS, L.MASK_COLUMNS + 1, 64, 65, L.MOST_COLUMNS])
def test_wide_relations(arity: int) -> None:
    kb = ze.open()
    wide(kb, arity)
    assert kb.derived() == {"q": 19, "r": 18}
    last = ", ".join(["_"] * (arity - 1) + [str(arity + 9)])
    assert len(kb.query(f"?- r({last}) .")) == 1


def test_a_relation_that_is_too_wide_is_refused_and_the_reference_takes_it() -> None:
    kb = ze.open()
    with pytest.raises(EvaluationProblem, match=r"E004.*129 arguments"):
        wide(kb, L.MOST_COLUMNS + 1)
    assert kb.version == 0
    wide(ze.open(engine="reference"), L.MOST_COLUMNS + 1)


def test_a_function_with_too_many_arguments_is_refused() -> None:
    kb = ze.open()
    change = kb.change()
    change.add_rules(f'p(Y) :- q(X), Y := concat({", ".join(["X"] * (L.MASK_COLUMNS + 1))}) . q("a") .')
    with pytest.raises(EvaluationProblem, match="E004"):
        kb.apply(change.collected())


def test_calls_with_many_arguments_nest() -> None:
    text = '"z"'
    for _ in range(40):
        text = f"concat({', '.join(['X'] * (L.MASK_COLUMNS - 1))}, {text})"
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(f'p(N) :- q(X), N := strlen({text}) . q("a") .')
    assert kb.query("?- p(N) .").rows == ((ze.Literal(str(40 * 59 + 1), ze.terms.XSD_INTEGER),),)


def test_calls_with_too_many_computed_numbers_are_refused() -> None:
    sums = ", ".join(f"str(X + {n})" for n in range(50))
    kb = ze.open()
    change = kb.change()
    change.add_rules(f"p(Y) :- q(X), Y := concat(concat({sums}), concat({sums})) . q(1) .")
    with pytest.raises(EvaluationProblem, match="E004"):
        kb.apply(change.collected())


@pytest.mark.parametrize("engine", ENGINES)
def test_classes_that_are_no_iris_are_counted_together(engine: str) -> None:
    kb = ze.open(engine=engine)
    with kb.change() as c:
        c.add_facts('a(b, "x") .')
        c.add_facts([(ze.iri("a"), text) for text in "xy"], RDF_TYPE)
    assert sum(kb.explicit_counts().values()) == 3


def test_tables_of_other_classes_need_not_be_looked_at() -> None:
    parts = [TableView(_table([[number]]), number) for number in range(50)]
    typed = TableView(_table([[1, 2]]), NO_CLASS)
    reads = NodeReads(lambda _: [*parts, typed], lambda _: [], lambda _: typed.table)
    sources = reads.sources(
        Atom("t", (Variable("X"), Variable("C"))), RelationVersion.NEW, exact=True, distinct_rows=True
    )
    assert len(sources) == 51
    assert max(len(s.excluded) for s in sources if s.view.member_of != NO_CLASS) <= 1


def _table(rows: list[list[int]]) -> Table:
    found = Table(len(rows[0]))
    found.insert(np.array(rows, np.int32))
    return found


@pytest.mark.parametrize("limits", [Limits(facts=1_000_000), Limits(seconds=0.01)], ids=["facts", "seconds"])
def test_limits_hold_in_modules(limits: Limits) -> None:
    kb = ze.open(limits=limits)
    change = kb.change()
    change.add_rules(CLASSES)
    change.add_facts([(n, n + 1) for n in range(4_000)], "s")
    with pytest.raises(LimitReached):
        kb.apply(change.collected())
    assert not kb.facts()


def test_a_module_hears_ctrl_c() -> None:
    kb = ze.open(limits=Limits(facts=None))
    change = kb.change()
    change.add_rules(CLASSES)
    change.add_facts([(n, n + 1) for n in range(20_000)], "s")
    over = threading.Event()

    def press() -> None:
        # A Ctrl-C that arrives in a callback of the garbage collector is lost, so it is pressed again.
        for seconds in (0.3, 3, 3, 3, 3):
            if over.wait(seconds):
                return
            signal.raise_signal(signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        kb.apply(change.collected())
    over.set()
    # The 400 million pairs would take far longer than that on any machine.
    assert time.monotonic() - start < 30
    assert not kb.rules


def test_the_facts_limit_holds_in_queries() -> None:
    kb = ze.open(limits=Limits(facts=1_000))
    with kb.change() as c:
        c.add_facts([(n,) for n in range(500)], "a")
    with pytest.raises(LimitReached, match="in the query"):
        kb.query("?- a(X), a(Y) .")
